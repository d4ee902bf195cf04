"""Which devices of a node are free or fit; kernels only, reached by cimport."""
