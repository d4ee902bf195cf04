"""Raw points of every kernel and their upper bound; kernels only, reached by cimport."""
