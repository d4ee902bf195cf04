# Fragmentation of a node for a target workload, and the score that grows from it.
from libc.stdint cimport int32_t, int64_t, uint64_t
from fastsim_ext.types cimport Node, Pod, Typical

cdef enum:
    UNUSABLE = 4  # classes of a device request, without the satisfied one

ctypedef fused share_t:   # float64 frequencies for scores, exact integers for metrics
    double
    int64_t

cdef void frag_classes(int64_t cpu_left, const int32_t* gpu_left, const Node* node, const Typical* typical,
                       const share_t* share, share_t* out__k) noexcept nogil
cdef int64_t frag_unusable(const int32_t* gpu_left, const Node* node, const Typical* typical) noexcept nogil
cdef double frag_amount(int64_t cpu_left, const int32_t* gpu_left, const Node* node,
                        const Typical* typical) noexcept nogil
cdef int frag_points(double before, double after) noexcept nogil
cdef int frag_growth(const Node* node, const Pod* pod, const Typical* typical, uint64_t* gpus) noexcept nogil
