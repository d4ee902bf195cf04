"""Dot-product scores; kernels only, reached by cimport."""
