# The loop of ordered rounds.
cimport cython
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.rounds.job_table cimport Job
from fastsim_ext.rounds.leases cimport Task
from fastsim_ext.rounds.loop cimport RoundLoop
from fastsim_ext.rounds.ordered_jobs cimport OrderContext, OrderedJob, OrderedJobTable
from fastsim_ext.rounds.resource_shares cimport ResourceShares
from fastsim_ext.rounds.server_allocation cimport ServerAllocation

cdef struct RoundRecord:        # one round
    int64_t round, jobs, running, gpus, at_fair      # at_fair: running jobs, no faster than with a fair share
    double t, cpu_alloc, memory_alloc, cpu_used, memory_used, cpu_demand, memory_demand     # milli-CPU, MiB


@cython.final
cdef class OrderedLoop(RoundLoop):
    cdef readonly OrderedJobTable ordered_jobs
    cdef readonly ServerAllocation allocation
    cdef readonly ResourceShares shares
    cdef const double[:, ::1] need__kr         # by kind: milli-CPU, MiB, MB/s of the gang
    cdef const double[::1] speedup__k          # over the fair share, with what it needs
    cdef const double[:, ::1] step_s__kg       # by kind and model, seconds of a step at the fair share; 0: cannot run
    cdef int32_t* chosen                       # rows that are served, in order
    cdef int32_t n_chosen, chosen_room
    cdef RoundRecord* records
    cdef int64_t n_records, record_room
    cdef double begin_s, starving_s, admitted_gpus
    cdef bint whole, lease_end, gap_ends, stale_speedup, narrow, sticky, blocking
    cdef readonly double end_s, done_s
    cdef OrderContext context
    cdef int64_t demanded_gpus, reported
    cdef void begin_entry(self, const Job* job, OrderedJob* entry) noexcept nogil
    cdef int sort_jobs(self) except -1 nogil
    cdef void choose(self) noexcept nogil
    cdef void allocate_all(self) noexcept nogil
    cdef bint had_gpus(self, const Job* job) noexcept nogil
    cdef int report_arrivals(self) except -1 nogil
    cdef void begin_task(self, int32_t place, int32_t row) noexcept nogil
    cdef void list_gpus(self, Task* task, const OrderedJob* entry) noexcept nogil
    cdef void work(self, Task* task) noexcept nogil
    cdef bint is_lost(self, const Task* task) noexcept nogil
    cdef void lose(self, Task* task, Job* job) noexcept nogil
    cdef int report_departure(self, const Task* task) except -1 nogil
    cdef int record_round(self) except -1 nogil
    cdef int settle(self) except -1 nogil
