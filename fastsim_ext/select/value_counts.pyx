"""How often each number occurs in a changing collection: the largest and the smallest of them.

Raw points of one class over the nodes take few distinct values in a known range, so each is counted where it
stands; an end that vanished is looked for when it is asked for.
"""

from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memset

cdef enum:
    ROW = 32             # numbers of a row


cdef class ValueCountsTable:
    """A tally that Python can hold."""

    cdef ValueCounts tally

    def __init__(self):
        tally_clear(&self.tally)

    def add(self, int32_t value):
        """One more of a number."""
        tally_add(&self.tally, value)

    def remove(self, int32_t value):
        """One less of a number that is there."""
        tally_remove(&self.tally, value)

    def ends(self):
        """(smallest, largest) number, or None if there is none; one outside the span hides them."""
        cdef int32_t least, most
        if self.tally.beyond:
            raise OverflowError(f"found {self.tally.beyond} numbers beyond {LOWEST} to {LOWEST + SPAN - 1}")
        return (least, most) if tally_ends(&self.tally, &least, &most) else None


cdef void tally_clear(ValueCounts* tally) noexcept nogil:
    """Forget all."""
    memset(tally, 0, sizeof(ValueCounts))
    tally.low = SPAN - 1


cdef bint tally_ends(ValueCounts* tally, int32_t* least, int32_t* most) noexcept nogil:
    """The smallest and the largest number within the span; False if there is none."""
    cdef int32_t low = tally.low
    cdef int32_t high = tally.high
    while low < SPAN and tally.count[low] == 0:
        low += 1
        while low & ((1 << BLOCK) - 1) == 0 and low < SPAN and tally.block[low >> BLOCK] == 0:
            low += 1 << BLOCK
    if low >= SPAN:
        tally.low, tally.high = SPAN - 1, 0
        return False
    while tally.count[high] == 0:
        high -= 1
        while (high + 1) & ((1 << BLOCK) - 1) == 0 and tally.block[high >> BLOCK] == 0:
            high -= 1 << BLOCK
    tally.low, tally.high = low, high
    least[0], most[0] = low + LOWEST, high + LOWEST
    return True


def places(a, b):
    """The positions at which two rows of 32 numbers differ, in order."""
    cdef int32_t[ROW] left, right
    cdef uint32_t bits
    if len(a) != ROW or len(b) != ROW:
        raise ValueError(f"rows of {len(a)} and {len(b)} numbers, expected {ROW}")
    for i in range(ROW):
        left[i], right[i] = a[i], b[i]
    bits = unlike_row(&left[0], &right[0])
    found = []
    while bits:
        found.append(unlike_first(bits))
        bits &= bits - 1
    return found
