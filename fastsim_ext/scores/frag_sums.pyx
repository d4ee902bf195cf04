"""Sums in the given order that were worked out lately, found again by what a target workload finds on a node.

Nodes whose devices offer the same to every request have the same fragmentation at the same CPU rank, and few
differ while millions of pods come and go. A sum has one place, and the next one that belongs there replaces it.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free as give_back
from libc.string cimport memcmp, memcpy, memset


cdef int sums_make(Sums* sums, int width) except -1 nogil:
    """Room for sums of which nobody knows any, by ``width`` numbers."""
    sums_drop(sums)
    sums.width = width
    sums.found = <int32_t*> calloc(<size_t> PLACES * width, sizeof(int32_t))
    sums.kept = <Sum*> calloc(PLACES, sizeof(Sum))
    if sums.found == NULL or sums.kept == NULL:
        with gil:
            raise MemoryError()
    return 0


cdef void sums_drop(Sums* sums) noexcept nogil:
    """Give the memory back."""
    give_back(sums.found)
    give_back(sums.kept)
    sums.found, sums.kept = NULL, NULL


cdef Sum* sums_place(const Sums* sums, const int32_t* found, int64_t free, int64_t model) noexcept nogil:
    """The place of what was found on a node with so much left, for the caller to look at and to fill at once."""
    cdef uint64_t mix = <uint64_t> free << 8 ^ <uint64_t> model
    cdef int32_t* known
    cdef Sum* kept
    cdef int j
    for j in range(sums.width):
        mix += <uint64_t> found[j] * (2 * <uint64_t> j + 1)
    mix = (mix * <uint64_t> 0x9E3779B97F4A7C15 >> 32) % PLACES
    known, kept = sums.found + <int64_t> mix * sums.width, &sums.kept[mix]
    if kept.free != free or kept.model != model or memcmp(known, found, sums.width * sizeof(int32_t)) != 0:
        memcpy(known, found, sums.width * sizeof(int32_t))
        memset(&kept.rank[0], 0, RANKS * sizeof(int32_t))
        kept.free, kept.model = free, model
    return kept
