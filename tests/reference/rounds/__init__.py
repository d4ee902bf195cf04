"""Twins of the three kinds of rounds and of their kernels."""
