"""Sweeps: the product of lists of values, as runs that are stored one by one.

In comes a sweep file or axes, out go a folder of results and a table. A sweep that was stopped goes on.
Open ``sweep`` first, then ``run``.
"""
