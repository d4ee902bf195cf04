# A small cache of sums in the given order, keyed by what a target workload finds on a node.
from libc.stdint cimport int32_t, int64_t, uint64_t

cdef enum:
    PLACES = 512               # a power of two; few enough to stay in the cache
    RANKS = 8                  # sums of one place, by CPU rank modulo this

cdef struct Sum:
    int64_t free, model        # milli left on all devices; the node's model
    double[RANKS] frag         # milli-GPU
    int32_t[RANKS] rank        # the CPU rank of each, plus 1; 0: none

cdef struct Sums:
    int width                  # numbers of a key: what the groups find on a node
    int32_t* keys              # by place
    Sum* sums

cdef int sums_make(Sums* sums, int width) except -1 nogil
cdef void sums_drop(Sums* sums) noexcept nogil
cdef Sum* sums_place(const Sums* sums, const int32_t* wanted, int64_t free, int64_t model) noexcept nogil
