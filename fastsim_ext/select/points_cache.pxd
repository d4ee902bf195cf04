# A small cache of points, keyed by node state and device request.
from libc.stdint cimport int32_t, int64_t, uint64_t
from fastsim_ext.types cimport Pod

cdef enum:
    ENTRIES = 4096             # a power of two; few enough to stay in the cache
    NO_POINTS = -1             # not computed yet; points are never below 0
    MOST_RANKS = 1 << 15       # CPU ranks that fit a key

cdef struct CachedPoints:
    uint64_t key               # the node's state, the CPU rank afterwards, the requested devices
    int64_t generation         # of the memo that numbers the states
    int32_t points

cdef class PointsCache:
    cdef CachedPoints* entries
    cdef void clear(self) noexcept nogil
    cdef CachedPoints* entry_of(self, int64_t generation, int32_t state, int rank, const Pod* pod) noexcept nogil
