# Alignment of what is free with what is asked: the dot-product family.
from libc.stdint cimport uint64_t
from fastsim_ext.types cimport Node, Pod

cdef int dot_points(const Node* node, const Pod* pod, int dim, int norm, uint64_t* gpus) noexcept nogil
