"""Curvature of a function, from the last steps of a search; kernels only."""
