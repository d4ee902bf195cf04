"""Random numbers without state; kernels only, reached by cimport."""
