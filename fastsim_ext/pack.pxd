# Packing scores and device choice: integer points from what is free on one node.
from libc.stdint cimport int64_t, uint64_t
from fastsim_ext.types cimport Node, Pod

cdef uint64_t idle_devices(const Node* node, int count) noexcept nogil
cdef int idle_count(const Node* node) noexcept nogil
cdef int64_t free_milli(const Node* node) noexcept nogil
cdef uint64_t tightest_device(const Node* node, int milli) noexcept nogil
cdef uint64_t loosest_device(const Node* node, int milli) noexcept nogil
cdef int fitting_devices(const Node* node, int milli) noexcept nogil
cdef uint64_t nth_fitting_device(const Node* node, int milli, int nth) noexcept nogil
cdef int64_t pack_best_fit(const Node* node, const Pod* pod) noexcept nogil
cdef int64_t pack_gpus(const Node* node, const Pod* pod) noexcept nogil
cdef int64_t pack_clusters(const Node* node, const Pod* pod) noexcept nogil
cdef int64_t pack_simon(const Node* node, const Pod* pod) noexcept nogil
