"""Deciders: the run-time half of adaptive policies, which choose GPUs for each job in every round.

A decider takes a view of the jobs with their fitted step times and returns places on nodes.
Open ``configurations`` first, then ``sia_decider``.
"""
