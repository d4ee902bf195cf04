"""Linear, integer and multiple-choice programs; they know no jobs.

In come coefficients, out go values and the seconds that it took.
Open ``highs`` first.
"""
