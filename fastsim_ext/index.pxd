# The fast spelling of a decision: columns for frequent pod classes, bounds for rare ones.
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.column cimport ColumnTable
from fastsim_ext.grouped cimport View
from fastsim_ext.select cimport Choice, Selector
from fastsim_ext.types cimport Node, Pod

cdef struct Habit:       # how often something is asked for
    int32_t column       # its column, or -1
    int32_t lane         # of a class, in the memo: -1 = not asked for, -3 = none
    double heat          # questions, each worth half after every window of changes of nodes
    int64_t seen         # changes up to the last question

cdef class Indexed(Selector):
    cdef readonly ColumnTable table
    cdef Habit* classes
    cdef Habit* bounds                  # by family and CPU step
    cdef int class_room
    cdef int64_t largest_cpu, next_sweep
    cdef readonly int64_t changes, built, scans, searches, looked_at
    cdef int settle(self) except -1 nogil
    cdef int know(self, int classes) except -1 nogil
    cdef bint pays(self, Habit* habit, double window, double gain, double least) noexcept nogil
    cdef int32_t column_for(self, int cls) except -2 nogil
    cdef double gain(self, const Pod* pod) noexcept nogil
    cdef Habit* bound_of(self, const Pod* pod) noexcept nogil
    cdef int32_t bound_for(self, const Pod* pod) except -2 nogil
    cdef int32_t search(self, const Pod* pod, int32_t c, int* reason) noexcept nogil
    cdef int64_t worth(self, int n, const Pod* pod, int* furthest) noexcept nogil
    cdef int64_t fresh_points(self, int term, int n, const Pod* pod) noexcept nogil
    cdef int32_t lane_for(self, int cls) except -2 nogil
    cdef void sweep(self) noexcept nogil
    cpdef int verify(self) except -1
