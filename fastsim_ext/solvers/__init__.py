"""Interior point, knapsack, L-BFGS-B."""
