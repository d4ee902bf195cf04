"""Linear, integer and multiple-choice programs, without a notion of jobs.

A solver takes coefficients and returns values; it counts its CPU seconds.
Open ``highs`` first.
"""
