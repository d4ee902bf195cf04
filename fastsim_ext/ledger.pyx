"""What a run in rounds leaves behind until somebody takes it away: jobs that have ended, tasks of rounds."""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc
from cpython.bytes cimport PyBytes_FromStringAndSize


cdef void* grown(void* items, int64_t count, int64_t size) except NULL nogil:
    cdef void* more = realloc(items, count * size)
    if more == NULL:
        with gil:
            raise MemoryError()
    return more


cdef class Ledger:
    """Two growing lists of records."""

    def __dealloc__(self):
        free(self.gone)
        free(self.moments)

    cdef int close(self, const Gang* gang) except -1 nogil:
        """Note a job that has ended."""
        if self.n_gone == self.gone_room:
            self.gone = <Gang*> grown(self.gone, 2 * self.gone_room + 64, sizeof(Gang))
            self.gone_room = 2 * self.gone_room + 64
        self.gone[self.n_gone] = gang[0]
        self.n_gone += 1
        return 0

    cdef int note(self, const Task* task, int64_t turn, double now_s) except -1 nogil:
        """Note what a candidate does in a round."""
        if self.n_moments == self.moment_room:
            self.moments = <Moment*> grown(self.moments, 2 * self.moment_room + 64, sizeof(Moment))
            self.moment_room = 2 * self.moment_room + 64
        self.moments[self.n_moments] = Moment(
            turn, task.id, task.mate_id, now_s, task.finish_s, task.priority, task.deficit, task.model, task.num_gpu
        )
        self.n_moments += 1
        return 0

    cdef int64_t waiting(self) noexcept nogil:
        """Records that nobody has taken yet."""
        return self.n_gone + self.n_moments

    def drained(self):
        """(jobs, tasks) since the last call, as the bytes of their records."""
        both = (PyBytes_FromStringAndSize(<char*> self.gone, self.n_gone * sizeof(Gang)),
                PyBytes_FromStringAndSize(<char*> self.moments, self.n_moments * sizeof(Moment)))
        self.n_gone = self.n_moments = 0
        return both
