# Who runs in a round, and on what.
cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t
from fastsim_ext.random cimport Mersenne
from fastsim_ext.rounds.candidate_heap cimport Candidate, CandidateHeap
from fastsim_ext.rounds.job_table cimport JobTable, ShareAccount
from fastsim_ext.rounds.leases cimport Leases


@cython.final
cdef class CandidateSelection:
    cdef JobTable table
    cdef Leases leases
    cdef CandidateHeap ranking
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
    cdef void enter_couples(self, int32_t model, int64_t before) noexcept nogil
    cdef void enter_stream(self, int32_t model, int64_t before, int32_t stream) noexcept nogil
    cdef bint next_pair(self, Candidate* entry) noexcept nogil
    cdef bint can_share(self, int32_t row, int32_t mate, int32_t model, bint ran) noexcept nogil
    cdef bint mix(self, int32_t kind, int32_t other, int32_t model) noexcept nogil
    cdef double priority(self, const ShareAccount* claim, int32_t model) noexcept nogil
    cdef void take(self, const Candidate* entry) noexcept nogil
