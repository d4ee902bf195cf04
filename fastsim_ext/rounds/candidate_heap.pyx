"""Candidates for GPUs, best first: a heap, since a round looks at no more of them than it has GPUs for."""

cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc


@cython.final
cdef class CandidateHeap:
    """Entries, and a heap of their places; the best one is ``items[best()]``."""

    def __dealloc__(self):
        free(self.items)
        free(self.heap)

    cdef int reserve(self, int64_t count) except -1 nogil:
        """Make room for ``count`` entries."""
        cdef Candidate* items
        cdef Place* heap
        if count <= self.room:
            return 0
        items = <Candidate*> realloc(self.items, 2 * count * sizeof(Candidate))
        if items != NULL:
            self.items = items
        heap = <Place*> realloc(self.heap, 2 * count * sizeof(Place))
        if heap != NULL:
            self.heap = heap
        if items == NULL or heap == NULL:
            with gil:
                raise MemoryError()
        self.room = 2 * count
        return 0

    cdef bint better(self, const Place* a, const Place* b) noexcept nogil:
        cdef const Candidate* x
        cdef const Candidate* y
        if a.priority != b.priority:
            return a.priority > b.priority
        x, y = &self.items[a.item], &self.items[b.item]
        if x.deficit != y.deficit:
            return x.deficit > y.deficit
        if x.share != y.share:
            return x.share > y.share
        return x.order < y.order

    cdef void arrange(self) noexcept nogil:
        """Turn the entries, in any order, into a heap."""
        cdef int64_t i
        for i in range(self.n):
            self.heap[i].priority, self.heap[i].item = self.items[i].priority, i
        self.n_heap = self.n
        for i in range(self.n_heap // 2 - 1, -1, -1):
            self.sink(i)

    cdef void sink(self, int64_t i) noexcept nogil:
        cdef Place moving = self.heap[i]
        cdef int64_t child = 2 * i + 1
        while child < self.n_heap:
            if child + 1 < self.n_heap and self.better(&self.heap[child + 1], &self.heap[child]):
                child += 1
            if not self.better(&self.heap[child], &moving):
                break
            self.heap[i] = self.heap[child]
            i = child
            child = 2 * i + 1
        self.heap[i] = moving

    cdef int32_t best(self) noexcept nogil:
        """Where the best entry stands."""
        return self.heap[0].item

    cdef void put(self, int32_t item) noexcept nogil:
        """Put an entry into the heap; there is room."""
        cdef Place new
        new.priority, new.item = self.items[item].priority, item
        self.n_heap += 1
        self.rise(self.n_heap - 1, new)

    cdef void rise(self, int64_t i, Place moving) noexcept nogil:
        """Let an entry rise from place ``i`` to where it belongs."""
        while i > 0 and self.better(&moving, &self.heap[(i - 1) // 2]):
            self.heap[i] = self.heap[(i - 1) // 2]
            i = (i - 1) // 2
        self.heap[i] = moving

    cdef void drop(self) noexcept nogil:
        """Take the best entry out of the heap."""
        cdef int64_t i = 0
        cdef int64_t child = 1
        cdef const Place* one
        self.n_heap -= 1
        # What takes the place of the best one came from the bottom and mostly returns there: it is not looked at on
        # the way down.
        while child + 1 < self.n_heap:
            one = &self.heap[child]
            if one[0].priority != one[1].priority:
                child += one[1].priority > one[0].priority
            else:
                child += self.better(&one[1], &one[0])
            self.heap[i] = self.heap[child]
            i = child
            child = 2 * i + 1
        if child < self.n_heap:
            self.heap[i] = self.heap[child]
            i = child
        self.rise(i, self.heap[self.n_heap])

    cpdef int verify(self) except -1:
        """No entry is better than the one above it."""
        cdef int64_t i
        for i in range(1, self.n_heap):
            assert not self.better(&self.heap[i], &self.heap[(i - 1) // 2]), f"heap order broken at {i}"
        return 0
