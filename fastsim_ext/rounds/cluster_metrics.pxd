# Metrics of the cluster in rounds: allocation, fragmentation and power.
cimport cython
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.rounds.leases cimport Leases
from fastsim_ext.rounds.node_presence cimport NodePresence

cdef enum:
    N_COUNTS = 9         # as fastsim.engine.tables.COUNTS
    N_TOTALS = 18        # as fastsim.engine.tables.TOTALS
    N_AREAS = 7          # as fastsim_ext.rounds.cluster_metrics.AREAS

cdef struct Change:      # a job comes or goes between the beginnings of two rounds
    double t
    int64_t job, order, cpu_milli, memory_mib
    int64_t at           # where the GPUs that it gives back begin in the list of them
    int32_t kind, num_gpu
    int64_t finished

cdef struct Row:         # as fastsim.engine.tables.ROW
    double t
    int64_t seq, kind, pod
    int64_t counts[N_COUNTS]
    int64_t totals[N_TOTALS]


@cython.final
cdef class ClusterMetrics:
    cdef const int32_t[::1] node_of_gpu, shape_of_node
    cdef const int64_t[:, :, ::1] totals__sut  # by shape of node, GPUs in use, quantity
    cdef unsigned char[::1] absent             # by node
    cdef int32_t[::1] used, fresh, touched     # by node; the nodes in use in the last round
    cdef int64_t[::1] mark                     # by node: the last round that used it
    cdef int64_t round_number
    cdef int32_t n_touched
    cdef readonly int64_t finished, dropped, arrived, arrived_gpu
    cdef double sample_s, next_s
    cdef bint recorded, arrivals_seen           # news: jobs have come since the last round began
    cdef Row now, at_capacity
    cdef double area[N_AREAS]
    cdef double began_s
    cdef Row* rows
    cdef int64_t n_rows, row_room
    cdef Change* changes               # not yet in the totals, each list of GPUs in one row
    cdef int32_t* freed
    cdef int64_t n_changes, change_room, n_freed, freed_room
    cdef void count_gpus(self, Leases leases) noexcept nogil
    cdef void see_nodes(self, NodePresence presence) noexcept nogil
    cdef void charge(self, int64_t cpu_milli, int64_t memory_mib) noexcept nogil
    cdef void change(self, int32_t node, int32_t used) noexcept nogil
    cdef int arrive(self, double t, int64_t job, int32_t num_gpu) except -1 nogil
    cdef int depart(self, double t, int64_t job, bint finished, const int32_t* gpu, int32_t num_gpu,
                    int64_t cpu_milli, int64_t memory_mib) except -1 nogil
    cdef int apply_changes(self, double t) except -1 nogil
    cdef void apply_change(self, const Change* change) noexcept nogil
    cdef void pass_time(self, double t) noexcept nogil
    cdef void update_counts(self) noexcept nogil
    cdef int begin_round(self, int64_t number, int64_t running) except -1 nogil
    cdef int append_row(self) except -1 nogil
    cpdef int verify(self) except -1
