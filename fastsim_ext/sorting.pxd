# A stable sort of rows by keys of several terms.
from libc.stdint cimport int32_t

cdef bint merge_after(const double* a, const double* b, int32_t terms) noexcept nogil
cdef bint merge_sorted(int32_t* rows, int32_t* spare, int32_t n, const double* keys, int32_t terms) noexcept nogil
