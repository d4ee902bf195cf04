"""Rounds from shares of the time (Gavel), and their ideal without rounds.

In come jobs, rates and an allocator, out go records of tasks.
Open ``plan`` first: policies plug in there. Then ``run``.
"""
