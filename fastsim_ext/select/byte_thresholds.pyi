"""What many pod classes ask of a node as numbers of one byte; kernels only, reached by cimport."""
