"""Linear programs behind policies that share time; jobs that are alike become one column.

A program takes a view of the jobs and returns shares of the time. Solvers have no notion of jobs.
Open ``share_program`` first, then ``objectives``.
"""
