"""Distinct requests and their numbers: an open-addressing map whose keys are stored once.

A trace of ten million pods may have a million distinct requests, so a request takes its 32 bytes and
eight to sixteen bytes of table, without a Python object.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from cpython.bytes cimport PyBytes_FromStringAndSize


cdef inline uint64_t mixed(uint64_t x) noexcept nogil:
    """Hash of ``x``, a bijection: multiplies by odd numbers and folds the high half."""
    x ^= x >> 32
    x *= <uint64_t> 0xD6E8FEB86659FD93
    x ^= x >> 32
    x *= <uint64_t> 0xD6E8FEB86659FD93
    x ^= x >> 32
    return x


cdef class RequestIndex:
    """Numbers requests densely, in order of first appearance."""

    def __dealloc__(self):
        free(self.requests)
        free(self.table)

    def intern(self, const int64_t[::1] cpu, const int64_t[::1] mem, const int16_t[::1] num_gpu,
               const int16_t[::1] milli, const int32_t[::1] models, int32_t[::1] out):
        """Write class ids (int32) of the rows to ``out``; milli-CPU, MiB, devices, milli of each, model list."""
        cdef int64_t i
        cdef int64_t rows = cpu.shape[0]
        cdef Request request
        if not len(cpu) == len(mem) == len(num_gpu) == len(milli) == len(models) == len(out):
            raise ValueError("the columns of a batch have different lengths")
        with nogil:
            for i in range(rows):
                request.cpu, request.mem, request.models = cpu[i], mem[i], models[i]
                request.num_gpu, request.milli = num_gpu[i], milli[i]
                out[i] = self.number(&request)

    def rows(self, int64_t first):
        """The requests from class ``first`` on, as bytes."""
        if not 0 <= first <= self.count:
            raise IndexError(f"no pod class {first}")
        return PyBytes_FromStringAndSize(<char*> (self.requests + first), (self.count - first) * sizeof(Request))

    def row(self, int64_t k):
        """The request of class ``k``, as bytes."""
        if not 0 <= k < self.count:
            raise IndexError(f"no pod class {k}")
        return PyBytes_FromStringAndSize(<char*> (self.requests + k), sizeof(Request))

    cdef int64_t home(self, const Request* r) noexcept nogil:
        """The place at which the search for a request begins."""
        cdef uint64_t devices = (<uint64_t> r.num_gpu << 48) ^ (<uint64_t> r.milli << 32) ^ <uint64_t> r.models
        return <int64_t> (mixed(mixed(mixed(<uint64_t> r.cpu) ^ <uint64_t> r.mem) ^ devices) & (self.width - 1))

    cdef int32_t number(self, const Request* request) except -1 nogil:
        """The class id of a request, new or known."""
        cdef int64_t at
        cdef const Request* known
        if 2 * self.count >= self.width:
            self.widen()
        at = self.home(request)
        while self.table[at] >= 0:
            known = &self.requests[self.table[at]]
            if (known.cpu == request.cpu and known.mem == request.mem and known.num_gpu == request.num_gpu
                    and known.milli == request.milli and known.models == request.models):
                return self.table[at]
            at = (at + 1) & (self.width - 1)
        self.table[at] = <int32_t> self.count
        self.requests[self.count] = request[0]
        self.count += 1
        return self.table[at]

    cdef int widen(self) except -1 nogil:
        """Double the table and insert every request again."""
        cdef int64_t k, at
        cdef int64_t width = 2 * self.width if self.width else 1024
        cdef Request* requests = <Request*> realloc(self.requests, (width // 2) * sizeof(Request))
        cdef int32_t* table = <int32_t*> malloc(width * sizeof(int32_t))
        if requests != NULL:
            self.requests = requests
        if requests == NULL or table == NULL or width // 2 > 2147483647:
            free(table)
            with gil:
                raise MemoryError()
        free(self.table)
        self.table, self.width = table, width
        for at in range(width):
            table[at] = -1
        for k in range(self.count):
            at = self.home(&self.requests[k])
            while table[at] >= 0:
                at = (at + 1) & (width - 1)
            table[at] = <int32_t> k
        return 0

    cpdef int verify(self) except -1:
        """Check that every request is found by its hash, once."""
        cdef int64_t at
        cdef int64_t filled = 0
        cdef int64_t before = self.count
        for at in range(self.width):
            if self.table[at] >= 0:
                filled += 1
                assert self.number(&self.requests[self.table[at]]) == self.table[at], f"class {self.table[at]} is lost"
        assert filled == self.count == before, f"{filled} entries for {before} classes"
        return 0
