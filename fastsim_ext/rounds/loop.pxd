# The common part of all runs in rounds: time, arrivals, records.
from libc.stdint cimport int64_t
from fastsim_ext.rounds.cluster_metrics cimport ClusterMetrics
from fastsim_ext.rounds.job_table cimport Job, JobTable
from fastsim_ext.rounds.leases cimport Leases
from fastsim_ext.rounds.node_presence cimport NodePresence
from fastsim_ext.rounds.round_log cimport RoundLog

cdef enum:  # Stage: where the loop goes on
    AT_TOP, AT_WORK, AT_ARRIVALS, AT_NODES, AT_CHOICE


cdef class RoundLoop:
    cdef readonly JobTable table
    cdef readonly Leases leases
    cdef readonly RoundLog log
    cdef readonly ClusterMetrics metrics
    cdef readonly NodePresence presence       # None: all nodes are there all the time
    cdef double[::1] price                    # by model, $/h
    cdef double round_s, restart_s, until_s
    cdef int64_t first, last                  # ids [first, last) must end; last = -1: every job
    cdef bint recorded, measured, closed
    cdef readonly double now_s, next_price_s
    cdef readonly double wasted_gpu_s         # by restart delays
    cdef readonly int64_t rounds, calls, ended, max_active, job_rounds
    cdef int stage, quiet                     # quiet: rounds in a row in which nothing happened
    cdef Job* pending                         # jobs to come
    cdef int64_t n_pending, at_pending, pending_room
    cdef const double[::1] value              # of columns that an order reads, by id, MOST_TERMS each
    # the same for all
    cdef int run_stages(self, int64_t budget) except -1 nogil
    cdef void link_tasks(self) noexcept nogil
    cdef int note_round(self, int64_t cpu_milli, int64_t memory_mib) except -1 nogil
    cdef int close(self, const Job* job) except -1 nogil
    # refined by subclasses
    cdef bint wants_arrivals(self) noexcept nogil
    cdef bint finished(self) noexcept nogil
    cdef int64_t undrained(self) noexcept nogil
    cdef bint stuck(self) noexcept nogil
    cdef int arrive(self) except -1 nogil
    cdef void see_nodes(self) noexcept nogil
    cdef void nodes_changed(self) noexcept nogil
    cdef bint admits(self, const Job* job) noexcept nogil
    cpdef int verify(self) except -1
    # of subclasses, in the order of a round
    cdef void advance_time(self) noexcept nogil
    cdef int complete(self) except -1 nogil
    cdef int enter(self, Job* new) except -1 nogil
    cdef bint asks(self) except -1 nogil
    cdef int run_round(self) except -1 nogil
