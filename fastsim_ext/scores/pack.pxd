# Packing scores: integer points from what is free on one node.
from libc.stdint cimport int64_t
from fastsim_ext.types cimport Node, Pod

cdef int64_t pack_best_fit(const Node* node, const Pod* pod) noexcept nogil
cdef int64_t pack_gpus(const Node* node, const Pod* pod) noexcept nogil
cdef int64_t pack_clusters(const Node* node, const Pod* pod) noexcept nogil
cdef int64_t pack_simon(const Node* node, const Pod* pod) noexcept nogil
