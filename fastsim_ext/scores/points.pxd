# Raw points by kernel number, and their upper bound for pods with more CPU.
from libc.stdint cimport int64_t, uint64_t
from fastsim_ext.scores.frag_grouped cimport View
from fastsim_ext.types cimport Node, Pod, Typical

cdef int64_t points_raw(int kernel, const Node* node, const Pod* pod, const Typical* typical, int dim, int norm,
                        uint64_t* gpus) noexcept nogil
cdef int64_t points_alone(int kernel, const Node* node, const Pod* pod, const Typical* typical, int dim,
                          int norm) noexcept nogil
cdef int64_t points_viewed(int kernel, const Pod* pod, const Typical* typical, int dim, int norm,
                           View* view) noexcept nogil
cdef bint points_bounded(int kernel) noexcept nogil
cdef int64_t points_bound(int kernel, const Pod* pod, int64_t most_cpu, View* view) noexcept nogil
cdef int points_frag(const Pod* pod, bint bound, const Typical* typical, View* view) noexcept nogil
