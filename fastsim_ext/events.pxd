# The order of events and the heap of departures.
from libc.stdint cimport int32_t, int64_t

cdef enum:  # EventKind: order at equal time; the key of the one total order is (time, kind, sequence)
    NODE, DEPARTURE, RETRY, SAMPLE, DESCHEDULE, ARRIVAL, END

cdef struct Departure:
    double t             # seconds
    int64_t seq          # order of scheduling
    int32_t slot         # who departs
    int32_t turn         # the slot's turn when this was scheduled; an older turn is void

cdef class DepartureHeap:
    cdef Departure* items
    cdef readonly int64_t size
    cdef int64_t room, scheduled
    cdef int32_t soon, later     # slots that came up to the second and the third row lately, or -1: hints, for speed
    cdef int push(self, double t, int32_t slot, int32_t turn) except -1 nogil
    cdef void pop(self) noexcept nogil
    cpdef int verify(self) except -1
