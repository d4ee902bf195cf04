"""Linear, integer and multiple-choice programs; they know no jobs.

A solver takes coefficients and returns values; it counts its CPU seconds.
Open ``highs`` first.
"""
