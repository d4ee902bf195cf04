"""A stable sort of rows by keys of several terms: what is equal stays as it was, what is sorted is only looked at."""

from libc.stdint cimport int32_t
from fastsim_ext.sort_keys cimport MOST_TERMS

cdef enum:
    SHORT = 12           # rows that are sorted by insertion


cdef bint merge_after(const double* a, const double* b, int32_t terms) noexcept nogil:
    """Whether one key comes after another for certain."""
    cdef int32_t k
    for k in range(terms):
        if a[k] != b[k]:
            return a[k] > b[k]
    return False


cdef inline bint after(int32_t row, int32_t other, const double* keys, int32_t terms) noexcept nogil:
    return merge_after(&keys[row * <Py_ssize_t> MOST_TERMS], &keys[other * <Py_ssize_t> MOST_TERMS], terms)


cdef bint merge_sorted(int32_t* rows, int32_t* spare, int32_t n, const double* keys, int32_t terms) noexcept nogil:
    """Sort ``n`` rows, whose keys stand ``MOST_TERMS`` apart; answers whether the result stands in ``spare``."""
    cdef int32_t* other
    cdef int32_t* begun = rows
    cdef int32_t width = SHORT
    cdef int32_t a = 0
    cdef int32_t i = 1
    while i < n and not after(rows[i - 1], rows[i], keys, terms):
        i += 1
    if i >= n:
        return False
    while a < n:
        insert(rows, a, min(a + SHORT, n), keys, terms)
        a += SHORT
    while width < n:
        a = 0
        while a < n:
            join(rows, spare, a, min(a + width, n), min(a + 2 * width, n), keys, terms)
            a += 2 * width
        other = rows
        rows, spare = spare, other
        width *= 2
    return rows != begun


cdef void insert(int32_t* rows, int32_t a, int32_t b, const double* keys, int32_t terms) noexcept nogil:
    """Sort the places from ``a`` to ``b``."""
    cdef int32_t i, j, row
    for i in range(a + 1, b):
        row = rows[i]
        j = i
        while j > a and after(rows[j - 1], row, keys, terms):
            rows[j] = rows[j - 1]
            j -= 1
        rows[j] = row


cdef void join(const int32_t* source, int32_t* target, int32_t a, int32_t b, int32_t c, const double* keys,
               int32_t terms) noexcept nogil:
    """Two sorted parts, from ``a`` and from ``b`` to ``c``, become one; the first one comes first."""
    cdef int32_t i = a
    cdef int32_t j = b
    cdef int32_t at
    for at in range(a, c):
        if i < b and (j >= c or not after(source[i], source[j], keys, terms)):
            target[at] = source[i]
            i += 1
        else:
            target[at] = source[j]
            j += 1


def in_order(const double[:, ::1] key__nk, int32_t terms):
    """Numbers of the rows in the order of the first ``terms`` of their ``MOST_TERMS`` terms."""
    import numpy as np
    cdef int32_t n = <int32_t> key__nk.shape[0]
    cdef int32_t[::1] rows = np.arange(n, dtype=np.int32)
    cdef int32_t[::1] spare = np.empty(n, np.int32)
    if n == 0:
        return []
    return list(spare if merge_sorted(&rows[0], &spare[0], n, &key__nk[0, 0], terms) else rows)
