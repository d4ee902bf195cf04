"""The order of events and the heap of departures."""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy
from cpython.bytes cimport PyBytes_FromStringAndSize
from fastsim_ext.ahead cimport ahead


cdef enum:
    FAN = 4
    NEAR = 8192          # departures that a cache holds


cdef inline bint sooner(const Departure* a, const Departure* b) noexcept nogil:
    return a.t < b.t or (a.t == b.t and a.seq < b.seq)


cdef class DepartureHeap:
    """A heap by (time, sequence); the soonest departure is ``items[0]``.

    Each departure has FAN others below it, side by side, so a heap of many is shallow and few of its places are
    far apart in memory.
    """

    def __cinit__(self):
        self.soon = self.later = -1

    def __dealloc__(self):
        free(self.items)

    def snapshot(self):
        """(every departure as bytes, how many were ever scheduled): all that restore() needs."""
        return PyBytes_FromStringAndSize(<char*> self.items, self.size * sizeof(Departure)), self.scheduled

    def restore(self, const unsigned char[::1] items, int64_t scheduled):
        """Take over the departures of a snapshot()."""
        cdef int64_t count = items.shape[0] // <int64_t> sizeof(Departure)
        cdef Departure* grown
        if items.shape[0] % <int64_t> sizeof(Departure) or self.size:
            raise ValueError(f"{items.shape[0]} bytes are no snapshot, or the heap is not empty")
        if count:
            grown = <Departure*> realloc(self.items, count * sizeof(Departure))
            if grown == NULL:
                raise MemoryError()
            memcpy(grown, &items[0], items.shape[0])
            self.items = grown
        self.room = self.size = count
        self.scheduled = scheduled
        self.verify()

    cdef int push(self, double t, int32_t slot, int32_t turn) except -1 nogil:
        """Schedule a departure; its sequence is the order of the calls."""
        cdef int64_t i = self.size
        cdef int64_t up
        cdef Departure new
        cdef Departure* grown
        if self.size == self.room:
            grown = <Departure*> realloc(self.items, (2 * self.room + 64) * sizeof(Departure))
            if grown == NULL:
                with gil:
                    raise MemoryError()
            self.items = grown
            self.room = 2 * self.room + 64
        new.t, new.seq, new.slot, new.turn = t, self.scheduled, slot, turn
        self.scheduled += 1
        self.size += 1
        while i > 0:
            up = (i - 1) // FAN
            if not sooner(&new, &self.items[up]):
                break
            self.items[i] = self.items[up]
            i = up
        self.items[i] = new
        return 0

    cdef void pop(self) noexcept nogil:
        """Drop the soonest departure."""
        cdef int64_t i = 0
        cdef int64_t child, other, end
        cdef int row = 0
        cdef Departure last
        self.size -= 1
        last = self.items[self.size]
        while FAN * i + 1 < self.size:
            child = FAN * i + 1
            end = min(child + FAN, self.size)
            if self.size > NEAR:
                for other in range(FAN * child + 1, min(FAN * (child + FAN) + 1, self.size), 2):
                    ahead(&self.items[other])    # one of them comes up next
            for other in range(child + 1, end):
                if sooner(&self.items[other], &self.items[child]):
                    child = other
            if not sooner(&self.items[child], &last):
                break
            self.items[i] = self.items[child]
            if row == 1:
                self.soon = self.items[i].slot
            elif row == 2:
                self.later = self.items[i].slot
            row += 1
            i = child
        if self.size > 0:
            self.items[i] = last

    cpdef int verify(self) except -1:
        """No departure is later than its children."""
        cdef int64_t i
        for i in range(1, self.size):
            assert not sooner(&self.items[i], &self.items[(i - 1) // FAN]), f"heap order broken at {i}"
        return 0
