"""The common parts of all rounds: options, batches of jobs, the driver, tables, checkpoints.

In come a workload and a compiled loop, out goes the outcome of a run and its tables.
Open ``options`` first, then ``driver`` and ``outcome``.
"""
