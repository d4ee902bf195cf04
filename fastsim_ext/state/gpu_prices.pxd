# Prices of GPUs over time.
from libc.stdint cimport int32_t

cdef class Tariff:
    cdef const double[::1] since_s
    cdef const double[:, ::1] price__tg
    cdef const int32_t[::1] column__n    # of the table of prices, or -1: no GPUs
    cdef double dollars(self, int n, double start, double end) noexcept nogil
