# The loop of a run in rounds.
cimport cython
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.rounds.candidates cimport CandidateSelection
from fastsim_ext.rounds.cluster_metrics cimport ClusterMetrics
from fastsim_ext.rounds.completion_order cimport Completion
from fastsim_ext.rounds.job_table cimport Job, JobTable
from fastsim_ext.rounds.leases cimport Leases, Task
from fastsim_ext.rounds.round_log cimport RoundLog

cdef enum:  # Stop: order of fastsim.engine.shares.run.STOPS
    DONE, ASK_POLICY, WANT_ARRIVALS, PRICE_CHANGE, DRAIN, DEADLOCK, PAUSE

cdef enum:  # Stage: where the loop goes on
    AT_TOP, AT_WORK, AT_ARRIVALS, AT_CHOICE


@cython.final
cdef class ShareLoop:
    cdef readonly JobTable table
    cdef readonly Leases leases
    cdef readonly RoundLog log
    cdef readonly CandidateSelection selection
    cdef readonly ClusterMetrics metrics
    cdef const double[:, ::1] alone            # by kind and model, steps/s
    cdef const double[:, :, ::1] shared        # by kind, kind of the partner, model, steps/s
    cdef double[::1] price                     # by model, $/h
    cdef Completion* completions             # this round's tasks in the order in which they are credited
    cdef Completion* spare
    cdef double round_s, realloc_s, restart_s, until_s
    cdef bint recorded, endless, measured, estimated, last_chunk, gap_counts, whole, reset_at_zero, stale, lease_cost
    cdef bint late_deadlines
    cdef int64_t first, last                   # ids [first, last) must end; last = -1: every job
    cdef readonly double now_s, start_s, end_s, reset_s, next_price_s
    cdef readonly double began_s, wasted_gpu_s  # of the round; of restart delays in all
    cdef readonly int64_t rounds, calls, ended, max_active, job_rounds
    cdef bint allocation_wanted, ever_reset, closed, was_idle, moved
    cdef int stage, quiet, frozen
    cdef Job* pending                         # jobs to come
    cdef int64_t n_pending, at_pending, pending_room
    cdef double last_submit_s
    cdef int run_stages(self, int64_t budget) except -1 nogil
    cdef bint finished(self) noexcept nogil
    cdef void advance_time(self) noexcept nogil
    cdef double next_event_s(self) noexcept nogil
    cdef bint reset_allowed(self) noexcept nogil
    cdef void reset(self) noexcept nogil
    cdef int arrive(self) except -1 nogil
    cdef int complete(self) except -1 nogil
    cdef void credit(self, Task* task) noexcept nogil
    cdef void gain(self, Job* job, const Task* task, double steps, double spent) noexcept nogil
    cdef int close_job(self, Task* task, int32_t row) except -1 nogil
    cdef void charge_time(self, Task* task) noexcept nogil
    cdef void bill(self, const Task* task, Job* job, double seconds) noexcept nogil
    cdef int run_round(self) except -1 nogil
    cdef int measure(self) except -1 nogil
    cdef void dispatch(self, Task* task) noexcept nogil
    cdef double steps_of(self, Job* job, double rate, Task* task, double* finish_s) noexcept nogil
    cpdef int verify(self) except -1
    cdef bint starved(self, const Job* job, double steps) noexcept nogil
    cdef void fail(self, Job* job) noexcept nogil
