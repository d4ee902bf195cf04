"""A linear program by the homogeneous self-dual embedding: the same steps as
``fastsim/policies/solvers/interior_point.py``.

That module says what the numbers mean and where they come from; this one takes the steps without numpy.
"""
