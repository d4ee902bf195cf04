"""Interior point, knapsack, L-BFGS-B.

Coefficients in, values out; nothing here depends on jobs.
Open ``self_dual_embedding`` first.
"""
