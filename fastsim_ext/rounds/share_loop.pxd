# The loop of rounds of shares.
cimport cython
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.rounds.candidates cimport CandidateSelection
from fastsim_ext.rounds.completion_order cimport Completion
from fastsim_ext.rounds.job_table cimport Job
from fastsim_ext.rounds.leases cimport Task
from fastsim_ext.rounds.loop cimport RoundLoop


@cython.final
cdef class ShareLoop(RoundLoop):
    cdef readonly CandidateSelection selection
    cdef const double[:, ::1] alone            # by kind and model, steps/s
    cdef const double[:, :, ::1] shared        # by kind, kind of the partner, model, steps/s
    cdef Completion* completions             # this round's tasks in the order in which they are credited
    cdef Completion* spare
    cdef double realloc_s
    cdef bint endless, estimated, last_chunk, gap_counts, whole, reset_at_zero, stale, lease_cost
    cdef bint late_deadlines
    cdef readonly double start_s, end_s, reset_s, began_s      # began_s: of the round
    cdef bint allocation_wanted, ever_reset, was_idle, moved
    cdef int frozen
    cdef double last_submit_s
    cdef void go_on(self) noexcept nogil
    cdef double next_event_s(self) noexcept nogil
    cdef bint reset_allowed(self) noexcept nogil
    cdef void reset(self) noexcept nogil
    cdef void credit(self, Task* task) noexcept nogil
    cdef void gain(self, Job* job, const Task* task, double steps, double spent) noexcept nogil
    cdef int close_job(self, Task* task, int32_t row) except -1 nogil
    cdef void charge_time(self, Task* task) noexcept nogil
    cdef void bill(self, const Task* task, Job* job, double seconds) noexcept nogil
    cdef void dispatch(self, Task* task) noexcept nogil
    cdef double steps_of(self, Job* job, double rate, Task* task, double* finish_s) noexcept nogil
    cdef bint starved(self, const Job* job, double steps) noexcept nogil
    cdef void fail(self, Job* job) noexcept nogil
