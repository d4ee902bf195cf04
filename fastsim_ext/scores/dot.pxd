# Dot-product scores: alignment of a node's free resources with a pod's request.
from libc.stdint cimport uint64_t
from fastsim_ext.types cimport Node, Pod

cdef int dot_points(const Node* node, const Pod* pod, int dim, int norm, uint64_t* gpus) noexcept nogil
