"""A small cache of sums in the given order; kernels only, reached by cimport."""
