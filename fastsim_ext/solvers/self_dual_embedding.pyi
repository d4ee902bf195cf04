"""A linear program by the homogeneous self-dual embedding, and arithmetic of small dense matrices.

The steps are those of ``fastsim/policies/solvers/interior_point.py``, without numpy; that module explains the numbers.
"""
