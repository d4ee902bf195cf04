"""Packing scores; kernels only, reached by cimport."""
