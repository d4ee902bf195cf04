"""A small cache of sums in the given order, keyed by what a target workload finds on a node.

Nodes whose devices offer the same to every request have the same fragmentation at the same CPU rank, and there
are few such cases while millions of pods come and go. Each key has one place; a new sum overwrites the old one.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free as free_memory
from libc.string cimport memcmp, memcpy, memset


cdef int sums_make(Sums* sums, int width) except -1 nogil:
    """Allocate an empty cache with keys of ``width`` numbers."""
    sums_drop(sums)
    sums.width = width
    sums.keys = <int32_t*> calloc(<size_t> PLACES * width, sizeof(int32_t))
    sums.sums = <Sum*> calloc(PLACES, sizeof(Sum))
    if sums.keys == NULL or sums.sums == NULL:
        with gil:
            raise MemoryError()
    return 0


cdef void sums_drop(Sums* sums) noexcept nogil:
    """Free the memory of a cache."""
    free_memory(sums.keys)
    free_memory(sums.sums)
    sums.keys, sums.sums = NULL, NULL


cdef Sum* sums_place(const Sums* sums, const int32_t* wanted, int64_t free, int64_t model) noexcept nogil:
    """The sums of a key; new ones have rank 0, and the caller writes them at once."""
    cdef uint64_t mix = <uint64_t> free << 8 ^ <uint64_t> model
    cdef int32_t* key
    cdef Sum* entry
    cdef int j
    for j in range(sums.width):
        mix += <uint64_t> wanted[j] * (2 * <uint64_t> j + 1)
    mix = (mix * <uint64_t> 0x9E3779B97F4A7C15 >> 32) % PLACES
    key, entry = sums.keys + <int64_t> mix * sums.width, &sums.sums[mix]
    if entry.free != free or entry.model != model or memcmp(key, wanted, sums.width * sizeof(int32_t)) != 0:
        memcpy(key, wanted, sums.width * sizeof(int32_t))
        memset(&entry.rank[0], 0, RANKS * sizeof(int32_t))
        entry.free, entry.model = free, model
    return entry
