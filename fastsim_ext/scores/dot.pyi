"""Alignment of what is free with what is asked; kernels only, reached by cimport."""
