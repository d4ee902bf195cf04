"""Demands of many pod classes, side by side; kernels only, reached by cimport."""
