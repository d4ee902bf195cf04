# How often each number occurs in a changing collection: the largest and the smallest of them.
from libc.stdint cimport int32_t

cdef enum:
    KINDS = 128          # most distinct numbers; with more of them nothing is known

cdef struct Tally:
    int32_t[KINDS] value, count     # the distinct numbers, rising, and how often each occurs
    int32_t kinds        # distinct numbers, or KINDS + 1: there were too many

cdef void tally_clear(Tally* tally) noexcept nogil
cdef void tally_add(Tally* tally, int32_t value) noexcept nogil
cdef void tally_remove(Tally* tally, int32_t value) noexcept nogil
