# The online engine: arrivals, departures and node changes in time order.
from libc.stdint cimport int32_t, int64_t, uint64_t
from fastsim_ext.select.scan cimport Choice, Selector
from fastsim_ext.select.waiting_line cimport WaitingLine
from fastsim_ext.state.departure_queue cimport DepartureQueue
from fastsim_ext.state.node_table cimport NodeTable, Totals
from fastsim_ext.state.pod_table cimport WorkTable

cdef enum:  # Queue: order of fastsim.engine.online.plan.RULES
    DROP, FIFO, FIFO_SKIP, PRIORITY, PRIORITY_SKIP, DRF, EASY, CONSERVATIVE
cdef struct Counts:      # running counts and exact sums of demand, milli; of all pods, of those never placed
    int64_t running, pending, finished, unplaced, lost, arrived_cpu, arrived_gpu, unplaced_cpu, unplaced_gpu
cdef struct Row:         # the state after one event; 8-byte fields only, so numpy reads it as it is
    double t             # seconds
    int64_t seq, kind, pod
    Counts counts
    Totals total

cdef class OnlineLoop:
    cdef readonly NodeTable nodes
    cdef readonly WorkTable work
    cdef readonly Selector select
    cdef readonly DepartureQueue departures
    cdef readonly WaitingLine line       # of rules that let pods pass others
    cdef readonly double now, next_s      # next_s: when something happens next, after GPU_SAMPLE
    cdef readonly int64_t events, n_rows         # processed so far; timeline rows to drain
    cdef Counts counts
    cdef int queue_rule, record          # record: 0 nothing, 1 every event, 2 samples
    cdef bint freed, checked, last_batch, binds, starts_recorded     # the last: stays that begin are outcomes, too
    cdef bint draws      # which node or device a pod gets may depend on the number of attempts
    cdef double until, gpu_sample_s, sample_s, next_sample, began, area_from
    cdef const int64_t[::1] a_pod_id     # a_: of the present batch
    cdef const int32_t[::1] a_class, a_priority, a_tenant, a_node, change_node, change_adds
    cdef const uint64_t[::1] a_gpus      # a_node and a_gpus are there if ``binds``
    cdef const double[::1] a_submit, a_duration, change_t, deschedule_t
    cdef int64_t a_count, a_next, a_seq, change_next, deschedule_next, sample_k, row_room
    cdef Row* rows
    cdef Row at_capacity                 # the last row with arrived demand within capacity
    cdef double[8] area                  # integrals over time, in seconds x unit; see AREAS
    cpdef int verify(self) except -1
    cdef int verify_line(self) except -1
    cdef int loop(self, int64_t budget) except -1 nogil
    cdef int skip_void_departures(self) except -1 nogil
    cdef bint wants_node_changes(self) noexcept nogil
    cdef bint over(self) noexcept nogil
    cdef int choose(self, int cls, Choice* choice) except -1 nogil
    cdef void clock(self, double t) noexcept nogil
    cdef int process(self, int kind) except -1 nogil
    cdef int arrive(self) except -1 nogil
    cdef int start_bound(self, int32_t slot, int n, uint64_t gpus) except -1 nogil
    cdef int admit(self, int32_t slot) except -1 nogil
    cdef int drop(self, int32_t slot, int reason) except -1 nogil
    cdef int start(self, int32_t slot) except -1 nogil
    cdef int start_on(self, int32_t slot, const Choice* choice) except -1 nogil
    cdef void allocate(self, int32_t slot, const Choice* choice) noexcept nogil
    cdef void count_lost_work(self, int32_t slot) noexcept nogil
    cdef int depart(self) except -1 nogil
    cdef int release(self, int32_t slot, int reason) except -1 nogil
    cdef int change_node_now(self) except -1 nogil
    cdef void free_all(self) noexcept nogil
    cdef bint retry(self) except -1 nogil
    cdef bint retry_fitting(self) except -1 nogil
    cdef void fill_row(self, Row* row, int kind, int64_t pod) noexcept nogil
    cdef int write_row(self, int kind, int64_t pod) except -1 nogil
