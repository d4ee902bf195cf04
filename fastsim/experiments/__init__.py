"""Many runs: sweeps, executors that spread them, and statistics, plans and reproductions made of their results.

Inputs are scenarios or ranges of values; outputs are results and tables. Each run is one call of
``fastsim.simulation``. Open ``many_runs`` first, then ``sweep``.
"""
