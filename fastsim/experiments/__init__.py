"""Many runs: which ones, where, how often, and what they say together.

In come scenarios or ranges of them, out go results, tables and answers such as the fewest nodes that are enough.
Nothing here simulates: each run is one call of ``fastsim.simulation``.
Open ``many_runs`` first, then ``sweep``.
"""
