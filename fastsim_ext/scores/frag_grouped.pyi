"""Fragmentation over a target workload grouped by device request; kernels only, reached by cimport."""
