"""Rounds of jobs that adapt: Sia, Pollux.

In come jobs, applications and a decider, out go records of jobs and stays. A job fits step times to its measurements.
Open ``plan`` first: policies plug in there. Then ``run``.
"""
