# Distinct requests and their numbers: an open-addressing map whose keys are stored once.
from libc.stdint cimport int32_t, int64_t, uint64_t

cdef struct Request:     # one distinct request; 8-byte rows, so numpy reads it as it is
    int64_t cpu, mem     # milli-CPU, MiB
    int32_t num_gpu, milli               # devices; milli of each
    int64_t models       # number of the list of GPU models, 0 = any

cdef class RequestIndex:
    cdef Request* requests               # by class id
    cdef int32_t* table                  # class id or -1 by hash, linear probing
    cdef int64_t width   # entries of the table, a power of two; half as many requests have space
    cdef readonly int64_t count
    cdef int64_t home(self, const Request* request) noexcept nogil
    cdef int32_t number(self, const Request* request) except -1 nogil
    cdef int widen(self) except -1 nogil
    cpdef int verify(self) except -1
