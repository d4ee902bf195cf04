# Records of a run in rounds that have not been drained.
cimport cython
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.rounds.job_table cimport Job
from fastsim_ext.rounds.leases cimport Leases

cdef struct TaskRecord:      # one candidate in one round
    int64_t round, id, mate_id
    double t, finish_s, priority, deficit
    int32_t model, num_gpu
    int64_t held         # where its GPUs begin among those of the log, or -1: those of the last round


@cython.final
cdef class RoundLog:
    cdef Job* ended_jobs                  # jobs that have ended
    cdef TaskRecord* tasks
    cdef int32_t* gpu                  # of the tasks, each time they change
    cdef int64_t n_ended, ended_room, n_tasks, task_room, n_gpu, gpu_room, gpu_drained
    cdef int close(self, const Job* job) except -1 nogil
    cdef int note(self, Leases leases, int32_t task, int64_t turn, double now_s) except -1 nogil
    cdef int64_t hold(self, const int32_t* gpu, int32_t count) except -2 nogil
    cdef int64_t undrained(self) noexcept nogil
