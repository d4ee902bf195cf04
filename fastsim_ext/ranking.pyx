"""Candidates for GPUs, best first: a heap, since a round looks at no more of them than it has GPUs for."""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc


cdef inline bint better(const Entry* a, const Entry* b) noexcept nogil:
    if a.priority != b.priority:
        return a.priority > b.priority
    if a.deficit != b.deficit:
        return a.deficit > b.deficit
    if a.share != b.share:
        return a.share > b.share
    return a.order < b.order


cdef class Ranking:
    """A heap of entries; the best one is ``items[0]``."""

    def __dealloc__(self):
        free(self.items)

    cdef int reserve(self, int64_t count) except -1 nogil:
        """Make room for ``count`` entries."""
        cdef Entry* more
        if count > self.room:
            more = <Entry*> realloc(self.items, 2 * count * sizeof(Entry))
            if more == NULL:
                with gil:
                    raise MemoryError()
            self.items = more
            self.room = 2 * count
        return 0

    cdef void arrange(self) noexcept nogil:
        """Turn entries in any order into a heap."""
        cdef int64_t i
        for i in range(self.n // 2 - 1, -1, -1):
            self.sink(i)

    cdef void sink(self, int64_t i) noexcept nogil:
        cdef Entry moving = self.items[i]
        cdef int64_t child = 2 * i + 1
        while child < self.n:
            if child + 1 < self.n and better(&self.items[child + 1], &self.items[child]):
                child += 1
            if not better(&self.items[child], &moving):
                break
            self.items[i] = self.items[child]
            i = child
            child = 2 * i + 1
        self.items[i] = moving

    cdef void add(self, const Entry* new) noexcept nogil:
        """Put one more entry into the heap; there is room."""
        cdef int64_t i = self.n
        self.n += 1
        while i > 0 and better(new, &self.items[(i - 1) // 2]):
            self.items[i] = self.items[(i - 1) // 2]
            i = (i - 1) // 2
        self.items[i] = new[0]

    cdef void drop(self) noexcept nogil:
        """Remove the best entry."""
        self.n -= 1
        if self.n > 0:
            self.items[0] = self.items[self.n]
            self.sink(0)

    cpdef int verify(self) except -1:
        """No entry is better than the one above it."""
        cdef int64_t i
        for i in range(1, self.n):
            assert not better(&self.items[i], &self.items[(i - 1) // 2]), f"heap order broken at {i}"
        return 0
