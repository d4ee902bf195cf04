"""Policies that share out time: which part of it each job spends on each GPU model.

In comes a setting, out goes a plan with an allocator. One file each, declarations without numpy.
Open ``max_min_fairness`` first.
"""
