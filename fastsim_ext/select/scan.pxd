# One pod, one decision: filter, score, normalise, weigh, pick the node, pick its devices.
from libc.stdint cimport int32_t, int64_t, uint64_t
from fastsim_ext.state.node_table cimport NodeTable
from fastsim_ext.state.pod_table cimport WorkTable
from fastsim_ext.types cimport Node, Pod

cdef struct Choice:
    int node             # position, or -1
    int reason           # Reason of a failure, see pod_outcomes
    uint64_t gpus        # devices, as bits

cdef int misfit(const Node* node, const Pod* pod, int pods, int max_pods) noexcept nogil
cdef void normalised(int64_t[::1] raw__f, int count, int normalise) noexcept nogil

cdef class NodeFilter:       # keeps some classes from nodes, whatever these have left
    cdef int refusal(self, int n, int cls) noexcept nogil

cdef class Selector:
    cdef NodeTable nodes
    cdef WorkTable work
    cdef const int32_t[::1] kernel, normalise, dim, norm       # by term of the plan
    cdef const int64_t[::1] weight
    cdef int gpu_pick, gpu_dim, gpu_norm
    cdef uint64_t seed
    cdef readonly uint64_t attempts
    cdef bint uncached   # node records are modified: use no stored points
    cdef object scorer   # the user's scorers: (term, class) -> int64 points of every node
    cdef int32_t[::1] feasible__f        # positions of the f-th feasible node
    cdef int64_t[::1] raw__f, total__f
    cpdef int verify(self) except -1
    cdef void prefetch(self, int n) noexcept nogil
    cdef int choose(self, int cls, Choice* choice) except -1 nogil
    cdef int check_binding(self, int cls, int n, uint64_t gpus, Choice* choice) except -1 nogil
    cdef int feasible(self, const Pod* pod, int* stage) noexcept nogil
    cdef int furthest(self, const Pod* pod) noexcept nogil
    cdef int rank(self, int cls, const Pod* pod, int count) except -1 nogil
    cdef int add_term(self, int term, int cls, const Pod* pod, int count) except -1 nogil
    cdef int score(self, int term, int cls, const Pod* pod, int count) except -1 nogil
    cdef int python_points(self, int term, int cls, int count) except -1
    cdef uint64_t devices(self, int n, const Node* node, const Pod* pod, int pick) noexcept nogil
