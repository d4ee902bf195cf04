"""Sweeps: the product of lists of values, as runs that are stored one by one.

The input is a sweep file, the output a folder of results and a table of all. A stopped sweep goes on where it was.
Open ``sweep`` first, then ``run``.
"""
