"""Containers that share GPUs, under a scheduler that reads metrics.

In come pods with profiles of their use, out go their stays and what GPUs reported.
Open ``plan`` first: policies plug in there. Then ``run``.
"""
