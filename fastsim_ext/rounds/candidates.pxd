# Selection of the jobs that run in a round, and of their GPU models.
cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t
from fastsim_ext.random cimport Mersenne
from fastsim_ext.rounds.job_table cimport JobTable, ShareAccount
from fastsim_ext.rounds.leases cimport Leases

cdef struct Candidate:
    double priority, deficit, share
    int64_t order        # of equal ones the smallest comes first
    int32_t row, mate    # mate = -1: a job by itself
    int32_t pair       # its row, if the pair has one
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


@cython.final
cdef class CandidateSelection:
    cdef JobTable table
    cdef Leases leases
    cdef CandidateHeap heap
    cdef Mersenne shuffler
    cdef const double[:, ::1] alone            # by kind and model, steps/s
    cdef const double[:, :, ::1] shared        # by kind, kind of the partner, model, steps/s
    cdef int32_t[::1] fastest, visit, free
    cdef bint pairs, shuffled, strict, one_line, reserves
    cdef int32_t unplaced                      # jobs that may still be taken
    cdef void choose(self) noexcept nogil
    cdef int reserve(self) except -1 nogil
    cdef void line(self, int32_t first, int32_t count) noexcept nogil
    cdef void enter_singles(self, int32_t model, int64_t before) noexcept nogil
    cdef void enter_pairs(self, int32_t model, int64_t before) noexcept nogil
    cdef void enter_stream(self, int32_t model, int64_t before, int32_t stream) noexcept nogil
    cdef bint next_pair(self, Candidate* entry) noexcept nogil
    cdef bint can_share(self, int32_t row, int32_t mate, int32_t model, bint ran) noexcept nogil
    cdef bint mix(self, int32_t kind, int32_t other, int32_t model) noexcept nogil
    cdef double priority(self, const ShareAccount* account, int32_t model) noexcept nogil
    cdef void take(self, const Candidate* entry) noexcept nogil
