"""Policies for adaptive jobs: one file each, declarations without numpy.

In comes a setting, out goes a plan with a decider of ``fastsim.policies.deciders``.
Open ``sia`` first.
"""
