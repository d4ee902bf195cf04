"""Records of a run in rounds that have not been drained: jobs that have ended, tasks of rounds."""

cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy
from cpython.bytes cimport PyBytes_FromStringAndSize
from fastsim_ext.memory cimport memory_grown
from fastsim_ext.rounds.leases cimport Task


@cython.final
cdef class RoundLog:
    """Two growing lists of records."""

    def __dealloc__(self):
        free(self.ended_jobs)
        free(self.tasks)
        free(self.gpu)

    cdef int close(self, const Job* job) except -1 nogil:
        """Add a job that has ended."""
        if self.n_ended == self.ended_room:
            self.ended_jobs = <Job*> memory_grown(self.ended_jobs, 2 * self.ended_room + 64, sizeof(Job))
            self.ended_room = 2 * self.ended_room + 64
        self.ended_jobs[self.n_ended] = job[0]
        self.n_ended += 1
        return 0

    cdef int note(self, Leases leases, int32_t task, int64_t turn, double now_s) except -1 nogil:
        """Add the record of a candidate in a round, and its GPUs if it did not hold them before."""
        cdef const Task* t = &leases.tasks[task]
        cdef int64_t held = -1 if t.kept else self.hold(&leases.gpu[t.held], t.num_gpu)
        if self.n_tasks == self.task_room:
            self.tasks = <TaskRecord*> memory_grown(self.tasks, 2 * self.task_room + 64, sizeof(TaskRecord))
            self.task_room = 2 * self.task_room + 64
        self.tasks[self.n_tasks] = TaskRecord(
            turn, t.id, t.mate_id, now_s, t.finish_s, t.priority, t.deficit, t.model, t.num_gpu, held
        )
        self.n_tasks += 1
        return 0

    cdef int64_t hold(self, const int32_t* gpu, int32_t count) except -2 nogil:
        """Add GPUs; returns the number of all that were added before."""
        cdef int64_t before = self.n_gpu
        if self.n_gpu + count > self.gpu_room:
            self.gpu = <int32_t*> memory_grown(self.gpu, 2 * (self.gpu_room + count), sizeof(int32_t))
            self.gpu_room = 2 * (self.gpu_room + count)
        memcpy(&self.gpu[self.n_gpu], gpu, count * sizeof(int32_t))
        self.n_gpu += count
        return self.gpu_drained + before

    cdef int64_t undrained(self) noexcept nogil:
        """Number of records that have not been drained."""
        return self.n_ended + self.n_tasks

    def drained(self):
        """(jobs, tasks, GPUs of tasks) since the last call, as the bytes of their records."""
        parts = (PyBytes_FromStringAndSize(<char*> self.ended_jobs, self.n_ended * sizeof(Job)),
                 PyBytes_FromStringAndSize(<char*> self.tasks, self.n_tasks * sizeof(TaskRecord)),
                 PyBytes_FromStringAndSize(<char*> self.gpu, self.n_gpu * sizeof(int32_t)))
        self.gpu_drained += self.n_gpu
        self.n_ended = self.n_tasks = self.n_gpu = 0
        return parts
