"""Interior point, knapsack, L-BFGS-B.

In come coefficients, out go values; they know no jobs.
Open ``self_dual_embedding`` first.
"""
