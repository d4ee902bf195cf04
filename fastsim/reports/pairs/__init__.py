"""Two runs of one workload, job by job: why one is faster than the other.

Inputs are results, outputs differences of completion times and their parts. Open ``paired_jobs`` first.
"""
