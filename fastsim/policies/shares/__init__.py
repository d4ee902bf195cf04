"""Share policies: the part of its time that each job spends on each GPU model.

A policy takes a setting and returns a plan with an allocator. One file each, declarations without numpy.
Open ``max_min_fairness`` first.
"""
