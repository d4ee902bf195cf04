"""What the jobs and pods of a run add up to: restarts, slowdown, GPU hours, cost, tenants.

In come columns of what each had, out goes one value for the summary.
Open ``job_totals`` first.
"""
