"""How often each number occurs in a changing collection: the largest and the smallest of them.

Raw points of one class over the nodes take few distinct values, so both ends are kept by counting.
"""

from libc.stdint cimport int32_t
from libc.string cimport memmove


cdef class Counted:
    """A tally that Python can hold."""

    cdef Tally tally

    def __init__(self):
        tally_clear(&self.tally)

    def add(self, int32_t value):
        """One more of a number."""
        tally_add(&self.tally, value)

    def remove(self, int32_t value):
        """One less of a number that is there."""
        tally_remove(&self.tally, value)

    def ends(self):
        """(smallest, largest) number, or None if there is none; KINDS + 1 distinct ones are too many."""
        if self.tally.kinds > KINDS:
            raise OverflowError(f"more than {KINDS} distinct numbers")
        return (self.tally.value[0], self.tally.value[self.tally.kinds - 1]) if self.tally.kinds > 0 else None


cdef void tally_clear(Tally* tally) noexcept nogil:
    """Forget all."""
    tally.kinds = 0


cdef inline int place_of(const Tally* tally, int32_t value) noexcept nogil:
    """Where a number is, or where it belongs."""
    cdef int low = 0
    cdef int high = tally.kinds
    cdef int middle
    while low < high:
        middle = (low + high) // 2
        if tally.value[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


cdef void tally_add(Tally* tally, int32_t value) noexcept nogil:
    """One more of a number."""
    cdef int at
    if tally.kinds > KINDS:
        return
    at = place_of(tally, value)
    if at < tally.kinds and tally.value[at] == value:
        tally.count[at] += 1
        return
    if tally.kinds < KINDS:
        memmove(&tally.value[at + 1], &tally.value[at], (tally.kinds - at) * sizeof(int32_t))
        memmove(&tally.count[at + 1], &tally.count[at], (tally.kinds - at) * sizeof(int32_t))
        tally.value[at], tally.count[at] = value, 1
    tally.kinds += 1


cdef void tally_remove(Tally* tally, int32_t value) noexcept nogil:
    """One less of a number that is there."""
    cdef int at
    if tally.kinds > KINDS:
        return
    at = place_of(tally, value)
    tally.count[at] -= 1
    if tally.count[at] == 0:
        tally.kinds -= 1
        memmove(&tally.value[at], &tally.value[at + 1], (tally.kinds - at) * sizeof(int32_t))
        memmove(&tally.count[at], &tally.count[at + 1], (tally.kinds - at) * sizeof(int32_t))
