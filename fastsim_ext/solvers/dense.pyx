"""Symmetric matrices, row after row, and equations with them; only the upper triangle is read and written."""

cimport cython


@cython.cdivision(True)
cdef void dense_factor(double* a, int n) noexcept nogil:
    """Turn ``a`` into its factors: the pivots, and right of each what it takes of the rows below.

    Without square roots and without exchanges: the matrices are positive but for rounding. A pivot of 0 makes
    infinities, in the checked build too: whoever takes steps notices that they lead nowhere.
    """
    cdef int k, i, j
    cdef double part
    cdef double* pivot
    cdef double* row
    for k in range(n):
        pivot = a + k * n
        for i in range(k + 1, n):
            part = pivot[i] / pivot[k]
            if part == 0:
                continue
            row = a + i * n
            for j in range(i, n):
                row[j] -= part * pivot[j]


@cython.cdivision(True)
cdef void dense_solve(const double* a, int n, double* b) noexcept nogil:
    """Replace ``b`` by the solution for a factored matrix."""
    cdef int k, j
    cdef double part
    cdef const double* row
    for k in range(n):
        row = a + k * n
        part = b[k] / row[k]
        for j in range(k + 1, n):
            b[j] -= part * row[j]
    for k in range(n - 1, -1, -1):
        row = a + k * n
        part = b[k]
        for j in range(k + 1, n):
            part -= row[j] * b[j]
        b[k] = part / row[k]
