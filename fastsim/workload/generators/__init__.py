"""Synthetic workloads: one recipe per file, and how they draw.

In come options and a seed, out goes a workload; same seed, same bytes.
Open ``recipes`` first: it lists them.
"""
