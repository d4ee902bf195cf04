"""What rounds look like to the metrics: allocation, fragmentation and power of the cluster.

A job in rounds holds whole GPUs, so all that counts of a node is its shape and how many of its GPUs are in use; what
that means for each quantity is looked up in a table. Sums are integers and stay exact.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc
from cpython.bytes cimport PyBytes_FromStringAndSize

# Kept over time, quantity times seconds.
AREAS = ("pods_pending", "cpu_milli_alloc", "cpu_milli_capacity", "gpu_milli_alloc", "gpu_milli_capacity", "frag",
         "power_mw")

cdef enum:
    SAMPLE = 3           # place of "sample" in fastsim.frames.EVENTS

cdef enum:               # places in fastsim.frames.COUNTS
    RUNNING, PENDING, FINISHED, UNPLACED, LOST, ARRIVED_CPU, ARRIVED_GPU

cdef enum:               # places in fastsim.frames.TOTALS
    CPU_ALLOC = 3
    MEM_ALLOC = 4
    GPU_ALLOC = 5
    CPU_CAP = 6
    GPU_CAP = 8
    FRAG = 9
    SATISFIED = 11
    CPU_MW = 16
    GPU_MW = 17


@cython.final
cdef class Gauge:
    """Running totals; a row every ``sample_s`` seconds if ``recorded``."""

    def __init__(self, node_of_gpu, shape_of_node, totals__sut, double sample_s, bint recorded):
        import numpy as np
        cdef int32_t node, k
        self.node_of_gpu, self.shape_of_node, self.totals__sut = node_of_gpu, shape_of_node, totals__sut
        if self.totals__sut.shape[2] != N_TOTALS:
            raise ValueError(f"{self.totals__sut.shape[2]} quantities, expected {N_TOTALS}")
        nodes = len(shape_of_node)
        self.used, self.fresh, self.touched = (np.zeros(nodes + 1, np.int32) for _ in range(3))
        self.mark = np.full(nodes + 1, -1, np.int64)
        self.sample_s, self.recorded = sample_s, recorded
        self.now.kind, self.now.pod = SAMPLE, -1
        for node in range(nodes):
            for k in range(N_TOTALS):
                self.now.totals[k] += self.totals__sut[self.shape_of_node[node], 0, k]
        self.at_capacity = self.now
        self.began_s = -1

    def __dealloc__(self):
        free(self.rows)

    cdef void see(self, Leases leases) noexcept nogil:
        """Bring the totals up to this round's tasks."""
        cdef int32_t i, node
        cdef int32_t n_old = self.n_touched
        self.turn += 1
        for i in range(n_old):
            self.fresh[self.touched[i]] = 0
        for i in range(leases.n_held):
            node = self.node_of_gpu[leases.gpu[i]]
            if self.mark[node] != self.turn:
                if self.mark[node] != self.turn - 1:
                    self.fresh[node] = 0
                    self.touched[self.n_touched] = node
                    self.n_touched += 1
                self.mark[node] = self.turn
            self.fresh[node] += 1
        i = 0
        while i < self.n_touched:
            node = self.touched[i]
            if self.fresh[node] != self.used[node]:
                self.change(node, self.fresh[node])
            if self.mark[node] == self.turn:
                i += 1
            else:
                self.n_touched -= 1
                self.touched[i] = self.touched[self.n_touched]

    cdef void charge(self, int64_t cpu_milli, int64_t memory_mib) noexcept nogil:
        """Jobs hold so much beside their GPUs."""
        self.now.totals[CPU_ALLOC], self.now.totals[MEM_ALLOC] = cpu_milli, memory_mib

    cdef void change(self, int32_t node, int32_t used) noexcept nogil:
        cdef const int64_t* old = &self.totals__sut[self.shape_of_node[node], self.used[node], 0]
        cdef const int64_t* new = &self.totals__sut[self.shape_of_node[node], used, 0]
        cdef int k
        for k in range(N_TOTALS):
            self.now.totals[k] += new[k] - old[k]
        self.used[node] = used

    cdef void pass_time(self, double t) noexcept nogil:
        """Everything was as it is until ``t``, seconds."""
        cdef double span = t - self.now.t
        cdef int64_t frag = 0
        cdef int k
        if self.began_s < 0:
            self.began_s, span = t, 0.0
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

    cdef void arrive(self, int32_t num_gpu) noexcept nogil:
        self.arrived_gpu += 1000 * num_gpu

    cdef void leave(self, bint finished) noexcept nogil:
        if finished:
            self.finished += 1
        else:
            self.dropped += 1

    cdef int note(self, int64_t turn, int64_t running, int64_t active) except -1 nogil:
        """A round begins with so many jobs at work, of so many."""
        self.now.seq = turn
        self.now.counts[RUNNING], self.now.counts[PENDING] = running, active - running
        self.now.counts[FINISHED], self.now.counts[UNPLACED] = self.finished, self.dropped
        self.now.counts[ARRIVED_GPU] = self.arrived_gpu
        if self.arrived_gpu <= self.now.totals[GPU_CAP]:
            self.at_capacity = self.now
        if self.recorded and self.now.t >= self.next_s:
            if self.sample_s > 0:
                self.next_s = self.now.t + self.sample_s
            self.keep_row()
        return 0

    cdef int keep_row(self) except -1 nogil:
        cdef Row* grown
        if self.n_rows == self.row_room:
            grown = <Row*> realloc(self.rows, (2 * self.row_room + 64) * sizeof(Row))
            if grown == NULL:
                with gil:
                    raise MemoryError()
            self.rows = grown
            self.row_room = 2 * self.row_room + 64
        self.rows[self.n_rows] = self.now
        self.n_rows += 1
        return 0

    def drained(self):
        """Rows since the last call, as the bytes of their records."""
        rows = PyBytes_FromStringAndSize(<char*> self.rows, self.n_rows * sizeof(Row))
        self.n_rows = 0
        return rows

    def close(self, double t, int64_t active):
        """The run is over at ``t`` seconds; jobs that are still active wait or run on outside of it."""
        self.pass_time(t)
        self.now.counts[FINISHED], self.now.counts[UNPLACED] = self.finished, self.dropped
        self.now.counts[RUNNING] = min(self.now.counts[RUNNING], active)
        self.now.counts[PENDING] = active - self.now.counts[RUNNING]

    def state(self):
        """(the row of now, the last one with arrived demand within the capacity, quantities over time)."""
        areas = dict(zip(AREAS, [self.area[k] for k in range(N_AREAS)], strict=True))
        areas["seconds"] = self.now.t - max(self.began_s, 0.0)
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
                total += self.totals__sut[self.shape_of_node[node], self.used[node], k]
            assert total == self.now.totals[k], f"total {k} is {self.now.totals[k]}, its nodes have {total}"
        return 0
