"""Power draw of a node and the score that comes from it; kernels only, reached by cimport."""
