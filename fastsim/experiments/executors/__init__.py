"""Where runs are spread: this process, its threads, other processes, Ray, Dask.

In come a function and items, out go the answers in the order of the items, whoever worked them out.
Open ``executor`` first: it has the three methods that each place has.
"""
