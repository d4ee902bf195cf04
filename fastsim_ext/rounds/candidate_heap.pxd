# Candidates for GPUs, best first.
cimport cython
from libc.stdint cimport int32_t, int64_t

cdef struct Candidate:
    double priority, deficit, share
    int64_t order        # of equal ones the smallest comes first
    int32_t row, mate    # mate = -1: a job by itself
    int32_t couple       # its row, if the pair has one
    int32_t model
    int32_t stream       # > 0: stands for all further pairs of this class

cdef struct Place:       # what decides most comparisons, apart from the rest
    double priority
    int64_t item


@cython.final
cdef class CandidateHeap:
    cdef Candidate* items                  # in the order in which they came
    cdef Place* heap
    cdef int32_t n, n_heap, room
    cdef int reserve(self, int64_t count) except -1 nogil
    cdef void arrange(self) noexcept nogil
    cdef bint better(self, const Place* a, const Place* b) noexcept nogil
    cdef void sink(self, int64_t i) noexcept nogil
    cdef int32_t best(self) noexcept nogil
    cdef void put(self, int32_t item) noexcept nogil
    cdef void rise(self, int64_t i, Place moving) noexcept nogil
    cdef void drop(self) noexcept nogil
    cpdef int verify(self) except -1
