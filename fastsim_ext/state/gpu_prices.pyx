"""Prices of GPUs over time: a row for every change, a column for every model."""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t

cdef enum:
    HOUR = 3600          # seconds


cdef class Tariff:
    """Prices of the nodes: row `t` of ``price__tg`` ($/h of a GPU) holds from ``since_s[t]`` on, row 0 also before.

    ``column__n`` is the column of each node, -1 if it has no GPUs.
    """

    def __init__(self, since_s, price__tg, column__n):
        cdef int32_t column
        self.since_s, self.price__tg, self.column__n = since_s, price__tg, column__n
        if not len(since_s) or price__tg.shape[0] != len(since_s):
            raise ValueError(f"{price__tg.shape[0]} rows of prices, expected {len(since_s)}, and one or more")
        for column in self.column__n:
            if column >= self.price__tg.shape[1]:
                raise ValueError(f"no column {column} of {self.price__tg.shape[1]}")

    def cost(self, int n, double start, double end):
        """Price of one GPU of node ``n`` from ``start`` to ``end`` (seconds), $."""
        if not 0 <= n < self.column__n.shape[0]:
            raise IndexError(f"no node {n}")
        return self.dollars(n, start, end)

    cdef double dollars(self, int n, double start, double end) noexcept nogil:
        """The same as cost(), without a check of the position."""
        cdef Py_ssize_t low = 0
        cdef Py_ssize_t high = self.since_s.shape[0]
        cdef Py_ssize_t middle
        cdef double sum = 0.0
        cdef double upto
        if self.column__n[n] < 0:
            return 0.0
        while high - low > 1:    # the last row that holds at the start
            middle = (low + high) // 2
            if self.since_s[middle] <= start:
                low = middle
            else:
                high = middle
        while start < end:
            upto = self.since_s[low + 1] if low + 1 < self.since_s.shape[0] else INFINITY
            sum += (min(end, upto) - start) * self.price__tg[low, self.column__n[n]]
            start = min(end, upto)
            low += 1
        return sum / HOUR
