# The nodes that are there in a round, and those that go away before it ends.
cimport cython
from libc.stdint cimport int32_t, int64_t


@cython.final
cdef class NodePresence:
    cdef const int32_t[::1] node_of_gpu
    cdef int32_t[::1] away              # by node: reasons to be absent
    cdef double[::1] leaves_s           # by node: when it goes away in this round, infinite if it stays
    cdef const double[::1] t            # changes that were fed: second, node, whether it comes
    cdef const int32_t[::1] node
    cdef const int32_t[::1] comes
    cdef int64_t at                     # the next change
    cdef bint closed
    cdef readonly double seen_s         # beginning of the round
    cdef bint wants(self, double until_s) noexcept nogil
    cdef bint advance(self, double now_s, double until_s) noexcept nogil
    cdef double next_s(self) noexcept nogil
    cdef bint is_absent(self, int32_t gpu) noexcept nogil
    cdef bint goes(self, const int32_t* gpus, int32_t count, double finish_s) noexcept nogil
