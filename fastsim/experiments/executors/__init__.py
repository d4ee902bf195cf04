"""Executors of many runs: this process, its threads, other processes, Ray, Dask.

An executor applies a function to items and returns the answers in the order of the items.
Open ``executor`` first: it defines the interface.
"""
