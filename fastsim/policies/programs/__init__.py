"""Linear programs behind policies that share time; jobs that are alike become one column.

In come a view of the jobs and an objective, out go shares of the time. Solvers know nothing of jobs.
Open ``share_program`` first, then ``objectives``.
"""
