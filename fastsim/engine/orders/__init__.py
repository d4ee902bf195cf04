"""Rounds in an order, with CPUs and memory of servers (Synergy).

In come jobs with demands and sort keys, out go records of jobs and rounds.
Open ``plan`` first: policies plug in there. Then ``run``.
"""
