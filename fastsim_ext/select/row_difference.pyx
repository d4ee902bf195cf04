"""Where two rows of numbers differ, as bits."""

from libc.stdint cimport int32_t, uint32_t

cdef enum:
    ROW = 32             # numbers of a row


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
