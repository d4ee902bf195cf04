# What jobs have measured, as a tree: every new measurement leads from one lesson to the next.
cimport cython
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.adaptive.goodput cimport Perf

cdef struct Measurements:      # all measurements from the root to here
    int32_t parent       # the same without the last one; the root is its own
    int32_t most_replicas
    int64_t nodes, replicas, atomic    # of the last measurement
    double turn_s, step_s
    Perf perf            # what all of them were fitted with


@cython.final
cdef class LearnedPerformance:
    cdef object fit
    cdef dict known
    cdef Measurements* rows
    cdef readonly int32_t n
    cdef int32_t room
    cdef bint has(self, int32_t lesson, int64_t nodes, int64_t replicas, int64_t atomic) noexcept
    cdef int32_t after(self, int32_t lesson, int64_t nodes, int64_t replicas, int64_t atomic, double turn_s,
                       double step_s) except -1
    cdef int32_t grown(self, int32_t lesson, int64_t nodes, int64_t replicas, int64_t atomic, double turn_s,
                       double step_s, bint fitted) except -1
