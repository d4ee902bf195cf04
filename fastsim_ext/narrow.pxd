# Columns whose figures and totals take one byte.
from libc.stdint cimport int8_t
from fastsim_ext.column cimport ColumnTable
from fastsim_ext.grouped cimport View
from fastsim_ext.hurdles cimport Hurdles
from fastsim_ext.needs cimport ROOM

cdef class NarrowTable(ColumnTable):
    cdef Hurdles hurdles
    cdef int8_t[ROOM] worth      # of one node, by column
    cdef int learn(self, int n, char* row, View* view) except -1 nogil
