"""Metrics of the cluster in rounds: allocation, fragmentation and power.

A job in rounds holds whole GPUs, so all that counts of a node is its shape and how many of its GPUs are in use; what
that means for each quantity is looked up in a table. Sums are integers and stay exact.

Jobs come and go while a round lasts. What they change is collected, and follows in order of time before the next round
is seen. A job that is done gives its GPUs back at once; all others hold them until the next round begins.
"""

cimport cython
from libc.math cimport INFINITY, NAN, isnan
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, qsort
from libc.string cimport memcpy
from cpython.bytes cimport PyBytes_FromStringAndSize
from fastsim_ext.memory cimport memory_grown

# Kept over time, quantity times seconds.
AREAS = ("pods_pending", "cpu_milli_alloc", "cpu_milli_capacity", "gpu_milli_alloc", "gpu_milli_capacity", "frag",
         "power_mw")

cdef enum:               # places in fastsim.engine.tables.EVENTS; at one time, in this order
    DEPARTURE = 1
    SAMPLE = 3
    ARRIVAL = 5
    END = 6

cdef enum:               # places in fastsim.engine.tables.COUNTS
    RUNNING, PENDING, FINISHED, UNPLACED, LOST, ARRIVED_CPU, ARRIVED_GPU

cdef enum:               # places in fastsim.engine.tables.TOTALS
    CPU_ALLOC = 3
    MEM_ALLOC = 4
    GPU_ALLOC = 5
    CPU_CAP = 6
    GPU_CAP = 8
    FRAG = 9
    SATISFIED = 11
    CPU_MW = 16
    GPU_MW = 17


cdef int compare_changes(const void* first, const void* second) noexcept nogil:
    """Order changes by time, departures before arrivals, then as they were recorded."""
    cdef const Change* a = <const Change*> first
    cdef const Change* b = <const Change*> second
    if a.t != b.t:
        return -1 if a.t < b.t else 1
    if a.kind != b.kind:
        return -1 if a.kind < b.kind else 1
    return -1 if a.order < b.order else 1


@cython.final
cdef class ClusterMetrics:
    """Running totals from the first arrival on. A row for each change if ``recorded``, or else one at the beginning of
    a round every ``sample_s`` seconds; the last one is that of the end."""

    def __init__(self, node_of_gpu, shape_of_node, totals__sut, double sample_s, bint recorded):
        import numpy as np
        cdef int32_t node, k
        self.node_of_gpu, self.shape_of_node, self.totals__sut = node_of_gpu, shape_of_node, totals__sut
        if self.totals__sut.shape[2] != N_TOTALS:
            raise ValueError(f"{self.totals__sut.shape[2]} quantities, expected {N_TOTALS}")
        nodes = len(shape_of_node)
        self.used, self.fresh, self.touched = (np.zeros(nodes + 1, np.int32) for _ in range(3))
        self.mark = np.full(nodes + 1, -1, np.int64)
        self.absent = np.zeros(nodes + 1, np.uint8)
        self.sample_s, self.recorded = sample_s, recorded
        self.now.kind, self.now.pod = SAMPLE, -1
        for node in range(nodes):
            for k in range(N_TOTALS):
                self.now.totals[k] += self.totals__sut[self.shape_of_node[node], 0, k]
        self.at_capacity = self.now
        self.began_s, self.next_s = NAN, -INFINITY

    def __dealloc__(self):
        free(self.rows)
        free(self.changes)
        free(self.freed)

    cdef void count_gpus(self, Leases leases) noexcept nogil:
        """Bring the totals up to this round's tasks."""
        cdef int32_t i, node
        cdef int32_t n_old = self.n_touched
        self.round_number += 1
        for i in range(n_old):
            self.fresh[self.touched[i]] = 0
        for i in range(leases.n_held):
            node = self.node_of_gpu[leases.gpu[i]]
            if self.mark[node] != self.round_number:
                if self.mark[node] != self.round_number - 1:
                    self.fresh[node] = 0
                    self.touched[self.n_touched] = node
                    self.n_touched += 1
                self.mark[node] = self.round_number
            self.fresh[node] += 1
        i = 0
        while i < self.n_touched:
            node = self.touched[i]
            if self.fresh[node] != self.used[node]:
                self.change(node, self.fresh[node])
            if self.mark[node] == self.round_number:
                i += 1
            else:
                self.n_touched -= 1
                self.touched[i] = self.touched[self.n_touched]

    cdef void see_nodes(self, NodePresence presence) noexcept nogil:
        """Nodes that are absent in this round have no part in the totals; no job is there."""
        cdef int32_t node, k
        cdef int sign
        for node in range(self.shape_of_node.shape[0]):
            if self.absent[node] == (presence.away[node] > 0):
                continue
            sign = 1 if self.absent[node] else -1
            self.absent[node] = not self.absent[node]
            for k in range(N_TOTALS):
                self.now.totals[k] += sign * self.totals__sut[self.shape_of_node[node], self.used[node], k]

    cdef void charge(self, int64_t cpu_milli, int64_t memory_mib) noexcept nogil:
        """Jobs hold so much beside their GPUs."""
        self.now.totals[CPU_ALLOC], self.now.totals[MEM_ALLOC] = cpu_milli, memory_mib

    cdef void change(self, int32_t node, int32_t used) noexcept nogil:
        cdef const int64_t* old = &self.totals__sut[self.shape_of_node[node], self.used[node], 0]
        cdef const int64_t* new = &self.totals__sut[self.shape_of_node[node], used, 0]
        cdef int k
        if not self.absent[node]:
            for k in range(N_TOTALS):
                self.now.totals[k] += new[k] - old[k]
        self.used[node] = used

    cdef int arrive(self, double t, int64_t job, int32_t num_gpu) except -1 nogil:
        """A job comes at second ``t``."""
        cdef int64_t at = self.n_changes
        if at == self.change_room:
            self.changes = <Change*> memory_grown(self.changes, 2 * at + 64, sizeof(Change))
            self.change_room = 2 * at + 64
        self.changes[at] = Change(t, job, at, 0, 0, self.n_freed, ARRIVAL, num_gpu, False)
        self.n_changes += 1
        return 0

    cdef int depart(self, double t, int64_t job, bint finished, const int32_t* gpu, int32_t num_gpu,
                    int64_t cpu_milli, int64_t memory_mib) except -1 nogil:
        """A job ends at second ``t`` and frees these GPUs; none if other jobs hold them, too."""
        cdef Change* change
        self.arrive(t, job, num_gpu)
        change = &self.changes[self.n_changes - 1]
        change.kind, change.finished = DEPARTURE, finished
        change.cpu_milli, change.memory_mib = cpu_milli, memory_mib
        if self.n_freed + num_gpu > self.freed_room:
            self.freed_room = 2 * (self.freed_room + num_gpu)
            self.freed = <int32_t*> memory_grown(self.freed, self.freed_room, sizeof(int32_t))
        if num_gpu:
            memcpy(&self.freed[self.n_freed], gpu, num_gpu * sizeof(int32_t))
        self.n_freed += num_gpu
        return 0

    cdef int apply_changes(self, double t) except -1 nogil:
        """Apply the recorded changes in order, then advance time to second ``t``."""
        cdef int64_t i
        qsort(self.changes, self.n_changes, sizeof(Change), compare_changes)
        for i in range(self.n_changes):
            self.apply_change(&self.changes[i])
            if self.recorded and not self.sample_s > 0:
                self.append_row()
        self.n_changes = self.n_freed = 0
        self.pass_time(t)
        self.now.kind, self.now.pod = SAMPLE, -1
        return 0

    cdef void apply_change(self, const Change* change) noexcept nogil:
        """A job comes or goes."""
        cdef int64_t i
        cdef int32_t node
        if isnan(self.began_s):
            self.began_s = self.now.t = change.t
        self.now.kind, self.now.pod = change.kind, change.job
        if change.t < self.now.t:  # reported late; it has waited since
            self.area[0] += self.now.t - change.t
        else:
            self.pass_time(change.t)
        if change.kind == ARRIVAL:
            self.arrived += 1
            self.arrived_gpu += 1000 * change.num_gpu
            self.arrivals_seen = True
        else:
            self.finished += change.finished
            self.dropped += not change.finished
            self.now.counts[RUNNING] -= 1
            self.now.totals[CPU_ALLOC] -= change.cpu_milli
            self.now.totals[MEM_ALLOC] -= change.memory_mib
            for i in range(change.at, change.at + change.num_gpu):
                node = self.node_of_gpu[self.freed[i]]
                self.change(node, self.used[node] - 1)
        self.update_counts()

    cdef void pass_time(self, double t) noexcept nogil:
        """Everything was as it is until ``t``, seconds; before the first arrival nothing counts."""
        cdef double span = t - self.now.t
        cdef int64_t frag = 0
        cdef int k
        if isnan(self.began_s):
            return
        for k in range(FRAG, CPU_MW):
            frag += self.now.totals[k]
        frag -= self.now.totals[SATISFIED]
        self.area[0] += span * self.now.counts[PENDING]
        self.area[1] += span * self.now.totals[CPU_ALLOC]
        self.area[2] += span * self.now.totals[CPU_CAP]
        self.area[3] += span * self.now.totals[GPU_ALLOC]
        self.area[4] += span * self.now.totals[GPU_CAP]
        self.area[5] += span * frag
        self.area[6] += span * (self.now.totals[CPU_MW] + self.now.totals[GPU_MW])
        self.now.t = t

    cdef void update_counts(self) noexcept nogil:
        """Update the counts of jobs; arrived jobs that neither ended nor run are pending."""
        self.now.counts[FINISHED], self.now.counts[UNPLACED] = self.finished, self.dropped
        self.now.counts[PENDING] = self.arrived - self.finished - self.dropped - self.now.counts[RUNNING]
        self.now.counts[ARRIVED_GPU] = self.arrived_gpu

    cdef int begin_round(self, int64_t number, int64_t running) except -1 nogil:
        """Begin a round with so many running jobs."""
        if isnan(self.began_s):
            return 0
        self.now.seq, self.now.counts[RUNNING] = number, running
        self.update_counts()
        if self.arrivals_seen and self.arrived_gpu <= self.now.totals[GPU_CAP]:
            self.at_capacity = self.now
        self.arrivals_seen = False
        if self.recorded and self.now.t >= self.next_s:
            if self.sample_s > 0:
                self.next_s = self.now.t + self.sample_s
            self.append_row()
        return 0

    cdef int append_row(self) except -1 nogil:
        if self.n_rows == self.row_room:
            self.rows = <Row*> memory_grown(self.rows, 2 * self.row_room + 64, sizeof(Row))
            self.row_room = 2 * self.row_room + 64
        self.rows[self.n_rows] = self.now
        self.n_rows += 1
        return 0

    def drained(self):
        """Rows since the last call, as the bytes of their records."""
        rows = PyBytes_FromStringAndSize(<char*> self.rows, self.n_rows * sizeof(Row))
        self.n_rows = 0
        return rows

    def close(self, double t):
        """The run is over at ``t`` seconds."""
        self.apply_changes(t)
        self.now.kind = END
        if self.recorded and not isnan(self.began_s):
            self.append_row()

    def state(self):
        """(the row of now, the last one with arrived demand within the capacity, quantities over time)."""
        areas = dict(zip(AREAS, [self.area[k] for k in range(N_AREAS)], strict=True))
        areas["seconds"] = 0.0 if isnan(self.began_s) else self.now.t - self.began_s
        first = PyBytes_FromStringAndSize(<char*> &self.now, sizeof(Row))
        return first, PyBytes_FromStringAndSize(<char*> &self.at_capacity, sizeof(Row)), areas

    cpdef int verify(self) except -1:
        """Totals are the sums over all nodes."""
        cdef int64_t total
        cdef int32_t node, k
        for k in range(N_TOTALS):
            if k == CPU_ALLOC or k == MEM_ALLOC:
                continue  # no matter of nodes
            total = 0
            for node in range(self.shape_of_node.shape[0]):
                if self.absent[node]:
                    continue
                total += self.totals__sut[self.shape_of_node[node], self.used[node], k]
            assert total == self.now.totals[k], f"total {k} is {self.now.totals[k]}, its nodes have {total}"
        return 0
