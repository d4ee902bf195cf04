"""Sums in the given order that were worked out lately; kernels only, reached by cimport."""
