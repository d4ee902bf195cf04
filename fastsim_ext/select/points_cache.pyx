"""A small cache of points, keyed by node state and device request.

The fragmentation a pod adds to a node follows from the node's state, the requested devices and the
CPU rank of what is left. That is less than the pod's class, so rare classes share entries with others
of their family. Each key has one place; a new entry overwrites the one in its place.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free
from fastsim_ext.types cimport Pod


cdef class PointsCache:
    """The latest points; keys hold the state numbers of one memo."""

    def __cinit__(self):
        self.entries = <CachedPoints*> calloc(ENTRIES, sizeof(CachedPoints))
        if self.entries == NULL:
            raise MemoryError()
        self.clear()

    def __dealloc__(self):
        free(self.entries)

    def find(self, int64_t generation, int32_t state, int rank, int num_gpu, int milli):
        """Points for a state of this generation, a CPU rank and a request for devices, or None."""
        cdef Pod pod = Pod(0, 0, num_gpu, milli, 0, 0)
        points = self.entry_of(generation, state, rank, &pod).points
        return None if points == NO_POINTS else points

    def store(self, int64_t generation, int32_t state, int rank, int num_gpu, int milli, int32_t points):
        """Store points, overwriting the entry in the same place."""
        cdef Pod pod = Pod(0, 0, num_gpu, milli, 0, 0)
        self.entry_of(generation, state, rank, &pod).points = points

    cdef void clear(self) noexcept nogil:
        """Drop all entries: state numbers have lost their meaning."""
        cdef int i
        for i in range(ENTRIES):
            self.entries[i].points = NO_POINTS

    cdef CachedPoints* entry_of(self, int64_t generation, int32_t state, int rank, const Pod* pod) noexcept nogil:
        """The entry of a key; its points are NO_POINTS if new, and the caller then writes them."""
        cdef uint64_t key = <uint64_t> state << 32 | <uint64_t> rank << 17 | <uint64_t> pod.num_gpu << 10
        cdef CachedPoints* entry
        key |= <uint64_t> pod.milli
        entry = &self.entries[(key * <uint64_t> 0x9E3779B97F4A7C15) >> 52]
        if entry.key != key or entry.generation != generation:
            entry.key, entry.generation, entry.points = key, generation, NO_POINTS
        return entry
