# How often each number occurs in a changing collection: the largest and the smallest of them.
from libc.stdint cimport int32_t

cdef enum:
    LOWEST = -7168       # numbers from here on are counted each by itself,
    SPAN = 8192          # so many of them; of others it is only known how many there are
    BLOCK = 6            # bits of the numbers of one block

cdef struct ValueCounts:
    int32_t[SPAN] count              # how often each occurs, from LOWEST on
    int32_t[SPAN >> BLOCK] block     # the same by blocks of them
    int32_t beyond       # numbers outside the span
    int32_t low, high    # places; no number that occurs is outside them

cdef inline void tally_add(ValueCounts* tally, int32_t value) noexcept nogil:
    """One more of a number."""
    cdef int32_t at
    if not LOWEST <= value < LOWEST + SPAN:
        tally.beyond += 1
        return
    at = value - LOWEST
    tally.count[at] += 1
    tally.block[at >> BLOCK] += 1
    tally.low = min(tally.low, at)
    tally.high = max(tally.high, at)

cdef inline void tally_remove(ValueCounts* tally, int32_t value) noexcept nogil:
    """One less of a number that is there."""
    cdef int32_t at
    if not LOWEST <= value < LOWEST + SPAN:
        tally.beyond -= 1
        return
    at = value - LOWEST
    tally.count[at] -= 1
    tally.block[at >> BLOCK] -= 1

cdef void tally_clear(ValueCounts* tally) noexcept nogil
cdef bint tally_ends(ValueCounts* tally, int32_t* least, int32_t* most) noexcept nogil
