# The active jobs of a run in rounds, in order of their ids, and the pairs of them that have a history of their own.
cimport cython
from libc.stdint cimport int32_t, int64_t

cdef enum:  # Ran
    NEVER, UNREPORTED, REPORTED

cdef struct ShareAccount:       # one candidate on one GPU model
    double received      # seconds since the last allocation, and half a round
    double deficit       # seconds of its share that it did not get
    double share         # 0 to 1
    int64_t ran          # Ran: the true rate of a pair is known once it has run

cdef struct Job:        # a job that runs on num_gpu GPUs at once
    int64_t id
    double submit_s, deadline_s, weight, total, run, cost
    double first_s, finish_s           # when it first ran, when it was complete; NaN = not yet
    double gpu_s, paused_s, left_s     # GPU seconds held; seconds between stays; when it last lost its GPUs
    double delayed_s     # seconds of restart delays while it held GPUs
    int64_t rounds       # it ran in
    int32_t kind, num_gpu, failures, tenant
    int32_t restarts, preemptions      # stays begun after the first one; stays that a time without GPUs followed
    int32_t estimated_kind        # kind by which its rates are estimated when it shares GPUs
    int32_t place        # where it goes when others have left
    int32_t task         # what it does in this round, or did in the last one; -1 = nothing
    int32_t known, settled             # the allocation has a row for it; it was there when shares were settled
    int32_t taken, holds, ended        # it has GPUs in this round; it had them in the last one

cdef struct Pair:      # two jobs that share their GPUs, rows in the table
    int32_t row, mate    # row < mate
    int32_t num_gpu

cdef void job_begin(Job* job, int64_t id, int32_t kind, int32_t num_gpu, int32_t tenant, double submit_s,
                    double total, double weight, double deadline_s) noexcept nogil
cdef double job_runs(Job* job, double now_s, bint kept, double restart_s) noexcept nogil
cdef void job_waits(Job* job, double now_s) noexcept nogil


@cython.final
cdef class JobTable:
    cdef Job* jobs
    cdef ShareAccount* accounts             # width for each gang
    cdef Pair* pairs           # in order of (mate, row)
    cdef ShareAccount* shared             # width for each couple
    cdef readonly int32_t n, n_pairs
    cdef int32_t width, room, pair_room
    cdef double half               # half a round, seconds
    cdef double owed               # deficit of a pair of two settled jobs that is new, seconds
    cdef readonly int64_t added
    cdef double* type_time         # by model
    cdef int enter(self, const Job* new) except -1 nogil
    cdef int32_t pair(self, int32_t row, int32_t mate) except -1 nogil
    cdef int32_t find(self, int32_t row, int32_t mate) noexcept nogil
    cdef void settle(self, double elapsed, bint with_pairs) noexcept nogil
    cdef int64_t possible_pairs(self) noexcept nogil
    cdef void forget_shares(self) noexcept nogil
    cdef bint drop_shares(self, int64_t pair) noexcept nogil
    cdef void move_pair(self, int64_t source, int64_t target) noexcept nogil
    cdef void compact(self) noexcept nogil
    cdef int32_t row_of(self, int64_t id) noexcept nogil
    cpdef int verify(self) except -1
