# What a run in rounds leaves behind until somebody takes it away.
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.gangs cimport Gang
from fastsim_ext.leases cimport Task

cdef struct Moment:      # one candidate in one round
    int64_t round, id, mate_id
    double t, finish_s, priority, deficit
    int32_t model, num_gpu

cdef class Ledger:
    cdef Gang* gone                    # jobs that have ended
    cdef Moment* moments
    cdef int64_t n_gone, gone_room, n_moments, moment_room
    cdef int close(self, const Gang* gang) except -1 nogil
    cdef int note(self, const Task* task, int64_t turn, double now_s) except -1 nogil
    cdef int64_t waiting(self) noexcept nogil
