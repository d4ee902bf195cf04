# Points that were worked out lately, found again by what they follow from.
from libc.stdint cimport int32_t, int64_t, uint64_t
from fastsim_ext.types cimport Pod

cdef enum:
    ANSWERS = 4096             # a power of two; few enough to stay in the cache
    NO_ANSWER = -1             # nobody has worked out the points yet; points are never below 0
    MOST_RANKS = 1 << 15       # CPU ranks that a question has room for

cdef struct CachedPoints:
    uint64_t question          # the node's state, the CPU rank afterwards, the devices asked for
    int64_t generation         # of the memo that numbers the states
    int32_t points

cdef class PointsCache:
    cdef CachedPoints* kept
    cdef void forget(self) noexcept nogil
    cdef CachedPoints* place(self, int64_t generation, int32_t state, int rank, const Pod* pod) noexcept nogil
