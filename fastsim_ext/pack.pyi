"""Packing scores and device choice; kernels only, reached by cimport."""
