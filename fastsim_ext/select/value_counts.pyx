"""A multiset of numbers in a known range, with its smallest and its largest; comparison of rows of 32 numbers.

Raw points of one class over the nodes take few distinct values in a known range, so there is a counter for each
value. After the removal of an extreme the next one is searched for at the next query.
"""

from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memset

cdef enum:
    ROW = 32             # numbers of a row


cdef class ValueCountsTable:
    """A multiset for tests in Python."""

    cdef ValueCounts counts

    def __init__(self):
        counts_clear(&self.counts)

    def add(self, int32_t value):
        """Add a number."""
        counts_add(&self.counts, value)

    def remove(self, int32_t value):
        """Remove a number, which must be there."""
        counts_remove(&self.counts, value)

    def ends(self):
        """(smallest, largest) number, or None if empty; OverflowError if a number is outside the span."""
        cdef int32_t least, most
        if self.counts.beyond:
            raise OverflowError(f"found {self.counts.beyond} numbers beyond {LOWEST} to {LOWEST + SPAN - 1}")
        return (least, most) if counts_ends(&self.counts, &least, &most) else None


cdef void counts_clear(ValueCounts* counts) noexcept nogil:
    """Remove all numbers."""
    memset(counts, 0, sizeof(ValueCounts))
    counts.low = SPAN - 1


cdef bint counts_ends(ValueCounts* counts, int32_t* least, int32_t* most) noexcept nogil:
    """The smallest and the largest number within the span; False if there is none."""
    cdef int32_t low = counts.low
    cdef int32_t high = counts.high
    while low < SPAN and counts.count[low] == 0:
        low += 1
        while low & ((1 << BLOCK) - 1) == 0 and low < SPAN and counts.block[low >> BLOCK] == 0:
            low += 1 << BLOCK
    if low >= SPAN:
        counts.low, counts.high = SPAN - 1, 0
        return False
    while counts.count[high] == 0:
        high -= 1
        while (high + 1) & ((1 << BLOCK) - 1) == 0 and counts.block[high >> BLOCK] == 0:
            high -= 1 << BLOCK
    counts.low, counts.high = low, high
    least[0], most[0] = low + LOWEST, high + LOWEST
    return True


def differing_positions(a, b):
    """The positions at which two rows of 32 numbers differ, in order."""
    cdef int32_t[ROW] left, right
    cdef uint32_t bits
    if len(a) != ROW or len(b) != ROW:
        raise ValueError(f"rows of {len(a)} and {len(b)} numbers, expected {ROW}")
    for i in range(ROW):
        left[i], right[i] = a[i], b[i]
    bits = differing(&left[0], &right[0])
    positions = []
    while bits:
        positions.append(lowest_bit(bits))
        bits &= bits - 1
    return positions
