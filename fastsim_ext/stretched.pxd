# Columns of plans whose totals depend on extremes over the nodes.
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.column cimport Column, ColumnTable

cdef class StretchedTable(ColumnTable):
    cdef void keep(self, int term, int n, int first, int last) noexcept nogil
    cdef void add_up_row(self, int n, int first, int last) noexcept nogil
    cdef int64_t stretched_total(self, const Column* column, int64_t place) noexcept nogil
    cdef bint ends_moved(self, int32_t c) noexcept nogil
