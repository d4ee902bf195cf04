"""Rounds in an order, with CPUs and memory of servers (Synergy).

In come jobs with what they need and a sort key, out go records of rounds.
Open ``plan`` first: it is the socket of policies. Then ``run``.
"""
