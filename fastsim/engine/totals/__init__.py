"""Totals of the jobs and pods of a run: restarts, slowdown, GPU hours, cost, tenants.

In come columns of jobs or pods, out go figures of the summary.
Open ``job_totals`` first.
"""
