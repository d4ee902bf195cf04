# The loop of a run in ordered rounds.
cimport cython
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.rounds.cluster_metrics cimport ClusterMetrics
from fastsim_ext.rounds.job_table cimport Job, JobTable
from fastsim_ext.rounds.leases cimport Leases, Task
from fastsim_ext.rounds.ordered_jobs cimport OrderContext, OrderedJob, OrderedJobTable
from fastsim_ext.rounds.resource_shares cimport ResourceShares
from fastsim_ext.rounds.round_log cimport RoundLog
from fastsim_ext.rounds.server_allocation cimport ServerAllocation

cdef struct RoundRecord:        # one round
    int64_t round, jobs, running, gpus, at_fair      # at_fair: jobs at work that go no faster than with a fair share
    double t, cpu_alloc, memory_alloc, cpu_used, memory_used, cpu_demand, memory_demand     # milli-CPU, MiB


@cython.final
cdef class OrderedLoop:
    cdef readonly JobTable table
    cdef readonly OrderedJobTable stakes
    cdef readonly ServerAllocation seats
    cdef readonly ResourceShares portions
    cdef readonly Leases leases
    cdef readonly RoundLog ledger
    cdef readonly ClusterMetrics gauge
    cdef const double[:, ::1] need__kr         # by kind: milli-CPU, MiB, MB/s of the gang
    cdef const double[::1] speedup__k          # over the fair share, with what it needs
    cdef const double[:, ::1] step_s__kg       # by kind and model, seconds of a step at the fair share; 0: cannot run
    cdef double[::1] price                     # by model, $/h
    cdef int32_t* chosen                       # rows that are served, in order
    cdef int32_t n_chosen, chosen_room
    cdef RoundRecord* records
    cdef int64_t n_records, record_room, first, last     # ids [first, last) must end; last = -1: every job
    cdef double round_s, begin_s, restart_s, until_s, starving_s, admitted_gpus
    cdef bint recorded, gauged, whole, lease_end, gap_ends, stale_speedup, narrow, sticky, blocking, closed
    cdef readonly double now_s, end_s, next_price_s, done_s, spoilt_gpu_s
    cdef readonly int64_t rounds, calls, ended, max_active, job_rounds
    cdef OrderContext yard
    cdef Job* pending                         # jobs to come
    cdef int64_t n_pending, at_pending, pending_room, asked_gpus, told
    cdef int stage, quiet
    cdef int play(self, int64_t budget) except -1 nogil
    cdef bint finished(self) noexcept nogil
    cdef void tick(self) noexcept nogil
    cdef int arrive(self) except -1 nogil
    cdef OrderedJob fresh(self, const Job* gang) noexcept nogil
    cdef int line_up(self) except -1 nogil
    cdef void choose(self) noexcept nogil
    cdef bint admits(self, const Job* gang) noexcept nogil
    cdef void seat_all(self) noexcept nogil
    cdef bint keeps(self, const Job* gang) noexcept nogil
    cdef int tell_gauge(self) except -1 nogil
    cdef void begin_task(self, int32_t place, int32_t row) noexcept nogil
    cdef int run_round(self) except -1 nogil
    cdef void seat_gpus(self, Task* task, const OrderedJob* stake) noexcept nogil
    cdef void work(self, Task* task) noexcept nogil
    cdef int hand_back(self, const Task* task) except -1 nogil
    cdef int measure(self) except -1 nogil
    cdef int settle(self) except -1 nogil
    cpdef int verify(self) except -1
