"""Points that were worked out lately, found again by what they follow from.

What fragmentation a pod adds to a node follows from the node's state, the devices asked for and the
CPU rank of what is left; that is less than the pod's class, so classes that come seldom share answers
with others of their family. An answer has one place, and the next one that belongs there replaces it.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free
from fastsim_ext.types cimport Pod


cdef class PointsCache:
    """The last answers; they belong to one memo, whose numbers of states they know."""

    def __cinit__(self):
        self.kept = <CachedPoints*> calloc(ANSWERS, sizeof(CachedPoints))
        if self.kept == NULL:
            raise MemoryError()
        self.forget()

    def __dealloc__(self):
        free(self.kept)

    def find(self, int64_t generation, int32_t state, int rank, int num_gpu, int milli):
        """Points for a state of this generation, a CPU rank and a request for devices, or None."""
        cdef Pod pod = Pod(0, 0, num_gpu, milli, 0, 0)
        points = self.place(generation, state, rank, &pod).points
        return None if points == NO_ANSWER else points

    def keep(self, int64_t generation, int32_t state, int rank, int num_gpu, int milli, int32_t points):
        """Keep what was worked out; what had the same place is gone."""
        cdef Pod pod = Pod(0, 0, num_gpu, milli, 0, 0)
        self.place(generation, state, rank, &pod).points = points

    cdef void forget(self) noexcept nogil:
        """Forget all: numbers of states mean something else from now on."""
        cdef int i
        for i in range(ANSWERS):
            self.kept[i].points = NO_ANSWER

    cdef CachedPoints* place(self, int64_t generation, int32_t state, int rank, const Pod* pod) noexcept nogil:
        """The place of an answer, with its points or NO_ANSWER, which the caller then replaces."""
        cdef uint64_t question = <uint64_t> state << 32 | <uint64_t> rank << 17 | <uint64_t> pod.num_gpu << 10
        cdef CachedPoints* answer
        question |= <uint64_t> pod.milli
        answer = &self.kept[(question * <uint64_t> 0x9E3779B97F4A7C15) >> 52]
        if answer.question != question or answer.generation != generation:
            answer.question, answer.generation, answer.points = question, generation, NO_ANSWER
        return answer
