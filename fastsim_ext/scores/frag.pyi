"""Fragmentation of a node and the score that grows from it; kernels only, reached by cimport."""
