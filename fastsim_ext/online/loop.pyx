"""The online engine: arrivals, departures and node changes in time order, one decision a pod.

One total order of events holds: (time, kind, sequence), kinds as in ``state/departure_queue.pxd``.
"""

from libc.math cimport INFINITY, NAN, ceil, isnan
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy
from cpython.bytes cimport PyBytes_FromStringAndSize
from fastsim_ext.memory cimport memory_grown
from fastsim_ext.select.scan cimport Choice, Selector
from fastsim_ext.select.waiting_line cimport BY_JOINING, BY_PRIORITY, WaitingLine
from fastsim_ext.state.departure_queue cimport ARRIVAL, DEPARTURE, DESCHEDULE, END, NODE, RETRY, SAMPLE, DepartureQueue
from fastsim_ext.state.node_table cimport NodeTable, Totals
from fastsim_ext.state.pod_outcomes cimport EVICTED, FINISHED, INTERVAL, NODE_LOST, PENDING, POD, RUNNING, START
from fastsim_ext.state.pod_table cimport Slot, WorkTable
from fastsim_ext.types cimport DESCHEDULE_DUE, DONE, GPU_SAMPLE, PAUSE, WANT_ARRIVALS, WANT_NODE_CHANGES, Pod

cdef enum:
    DRAIN_ROWS = 1024      # outcome rows that are drained at a time when a run ends

AREAS = ("gpu_milli_alloc", "gpu_milli_capacity", "cpu_milli_alloc", "cpu_milli_capacity", "memory_mib_alloc", "frag",
         "power_mw", "pods_pending")


cdef class OnlineLoop:
    """One run: feed() arrivals, advance() until it needs more, then finish()."""

    def __init__(self, NodeTable nodes, WorkTable work, Selector select, options):
        self.nodes, self.work, self.select, self.departures = nodes, work, select, DepartureQueue()
        self.queue_rule, self.record, self.checked = options["queue"], options["record"], options["checked"]
        self.until, self.sample_s = options["until_s"], options["sample_s"]
        self.change_t, self.change_node = options["change_t"], options["change_node"]
        self.change_adds, self.deschedule_t = options["change_adds"], options["deschedule_t"]
        self.next_sample, self.area_from, self.gpu_sample_s = -INFINITY, -INFINITY, INFINITY
        self.starts_recorded, self.draws = options.get("starts_recorded", False), options.get("draws", True)
        searched = not self.draws and self.queue_rule in (FIFO_SKIP, PRIORITY_SKIP, EASY)
        self.line = WaitingLine(nodes, work, searched, BY_PRIORITY if self.queue_rule == PRIORITY_SKIP else BY_JOINING)

    def __dealloc__(self):
        free(self.rows)

    def feed(self, a_pod_id, a_class, a_submit, a_duration, a_priority, a_tenant, a_node, a_gpus, bint last):
        """The next batch of arrivals, in time order; ``last`` if there are no more."""
        columns = (a_pod_id, a_class, a_submit, a_duration, a_priority, a_tenant, a_node, a_gpus)
        if len({len(column) for column in columns if column is not None}) > 1:
            raise ValueError("the columns of a batch have different lengths")
        self.a_pod_id, self.a_class, self.a_priority, self.a_tenant = a_pod_id, a_class, a_priority, a_tenant
        self.a_submit, self.a_duration, self.a_node, self.a_gpus = a_submit, a_duration, a_node, a_gpus
        self.a_count, self.a_next = len(a_submit), 0
        self.last_batch, self.binds = last, a_node is not None
        if self.next_sample == -INFINITY and self.sample_s > 0 and self.a_count > 0:
            self.sample_k = <int64_t> ceil(self.a_submit[0] / self.sample_s)
            self.next_sample = self.sample_k * self.sample_s

    def advance(self, int64_t budget):
        """Process up to ``budget`` events; returns the Status for which it stopped."""
        cdef int status
        with nogil:
            status = self.loop(budget)
        return status

    def sample_gpus_at(self, double t):
        """Return GPU_SAMPLE before any event after second ``t``, and before arrivals at ``t``."""
        self.gpu_sample_s = t

    def reach_end(self):
        """Advance to the second at which the run stops, if there are pods that have not left."""
        left = self.counts.running > 0 or self.counts.pending > 0 or self.a_next < self.a_count or not self.last_batch
        if self.a_seq and left and self.now < self.until < INFINITY:
            self.clock(self.until)

    def finish(self, drained=None):
        """Close the run: running and waiting pods leave as they are, the last row is written.

        ``drained`` is called whenever ``DRAIN_ROWS`` outcome rows are there, so that they never take much memory.
        """
        cdef int32_t s
        for s in range(self.work.n_slots):
            if self.work.slots[s].seq >= 0:
                self.work.note(s, RUNNING if self.work.slots[s].node >= 0 else PENDING, self.now, INTERVAL | POD)
                if drained is not None and self.work.n_outcomes >= DRAIN_ROWS:
                    drained()
        if self.record:
            self.write_row(END, -1)
        self.nodes.trusted = not self.checked
        self.verify()
        self.nodes.trusted = False

    def drain_rows(self):
        """Remove and return the timeline rows so far, as bytes."""
        cdef int64_t n = self.n_rows
        self.n_rows = 0
        return PyBytes_FromStringAndSize(<char*> self.rows, n * sizeof(Row))

    def state(self):
        """(row of now, last row with arrived demand within capacity, integrals over time by AREAS and the seconds)."""
        cdef Row row
        self.fill_row(&row, END, -1)
        areas = dict(zip(AREAS, [self.area[k] for k in range(8)], strict=True))
        areas["seconds"] = self.now - self.began if self.events else 0.0
        first = PyBytes_FromStringAndSize(<char*> &row, sizeof(Row))
        return first, PyBytes_FromStringAndSize(<char*> &self.at_capacity, sizeof(Row)), areas

    def snapshot(self):
        """State of the loop between two calls, apart from its tables; all that restore() needs."""
        return {
            "counts": self.counts, "now": self.now, "events": self.events, "freed": self.freed,
            "next_sample": self.next_sample, "sample_k": self.sample_k, "began": self.began,
            "area_from": self.area_from, "area": [self.area[k] for k in range(8)], "arrived": self.a_seq,
            "change_next": self.change_next, "deschedule_next": self.deschedule_next,
            "attempts": self.select.attempts if self.draws else 0, "at_capacity": self.state()[1].hex(),
        }

    def restore(self, state):
        """Take over a snapshot(); every fed pod had arrived then."""
        cdef bytes row = bytes.fromhex(state["at_capacity"])
        if len(row) != sizeof(Row):
            raise ValueError(f"a row of {len(row)} bytes is no row of this version")
        memcpy(&self.at_capacity, <const char*> row, sizeof(Row))
        self.counts, self.now, self.events, self.freed = state["counts"], state["now"], state["events"], state["freed"]
        self.next_sample, self.sample_k, self.began = state["next_sample"], state["sample_k"], state["began"]
        self.area_from, self.a_seq = state["area_from"], state["arrived"]
        for k in range(8):
            self.area[k] = state["area"][k]
        self.change_next, self.deschedule_next = state["change_next"], state["deschedule_next"]
        self.select.attempts = state["attempts"]
        self.line.rebuild()
        self.verify()

    def evict(self, int32_t slot):
        """Take a running pod off its node; it keeps its slot and departure for move()."""
        self.work.check_slot(slot)
        cdef Slot* s = &self.work.slots[slot]
        self.nodes.release(s.node, &self.work.classes[s.cls], s.gpus)
        self.work.note(slot, EVICTED, self.now, INTERVAL)
        s.node = -1
        self.counts.running -= 1
        self.line.free_all()

    def move(self, int32_t slot):
        """Place an evicted pod again, keeping its departure; lost if it fits nowhere. True if placed."""
        cdef Slot* s
        cdef Choice choice
        if not 0 <= slot < self.work.n_slots or self.work.slots[slot].seq < 0 or self.work.slots[slot].node >= 0:
            raise IndexError(f"no evicted pod is in slot {slot}")
        s = &self.work.slots[slot]
        self.choose(s.cls, &choice)
        if choice.node < 0:
            self.counts.lost += 1
            self.count_lost_work(slot)
            self.work.note(slot, EVICTED, self.now, POD)
            self.work.leave(slot)
            return False
        s.attempt += 1
        self.allocate(slot, &choice)
        if self.starts_recorded:
            self.work.note(slot, RUNNING, self.now, START)
        return True

    def trial(self, int cls):
        """Place a pod that leaves no trace in the counts; its slot for discard(), or -1."""
        cdef Choice choice
        cdef int32_t slot
        self.work.check_class(cls)
        self.choose(cls, &choice)
        if choice.node < 0:
            return -1
        slot = self.work.enter(-2, -1, cls, self.now, NAN, 0, -1)
        self.allocate(slot, &choice)
        self.counts.running -= 1
        return slot

    def discard(self, int32_t slot):
        """Undo a trial()."""
        self.work.check_slot(slot)
        cdef Slot* s = &self.work.slots[slot]
        self.nodes.release(s.node, &self.work.classes[s.cls], s.gpus)
        self.work.leave(slot)
        self.line.free_all()

    def note_deschedule(self):
        """Close a deschedule event: its timeline row, and waiting pods may fit now."""
        self.free_all()
        if self.record == 1:
            self.write_row(DESCHEDULE, -1)

    @property
    def arrived(self):
        """Pods that have arrived so far."""
        return self.a_seq

    cpdef int verify(self) except -1:
        """Every table's invariants, and that pods hold what is not free; seldom also those of a large selector."""
        cdef int32_t s
        cdef int64_t cpu = 0, mem = 0, gpu = 0
        cdef const Pod* pod
        self.nodes.verify()
        self.work.verify()
        self.departures.verify()
        self.line.verify()
        if self.checked and self.events % (1 + self.nodes.count // 16) == 0:
            self.select.verify()
            self.verify_line()
        for s in range(self.work.n_slots):
            if self.work.slots[s].seq != -1 and self.work.slots[s].node >= 0:
                pod = &self.work.classes[self.work.slots[s].cls]
                cpu += pod.cpu
                mem += pod.mem
                gpu += pod.num_gpu * pod.milli + pod.mig
        total = self.nodes.totals()
        assert (cpu, mem, gpu) == (total["cpu_alloc"], total["mem_alloc"], total["gpu_alloc"]), (
            f"pods hold {cpu, mem, gpu}, nodes gave {total}")
        assert self.counts.pending == self.work.waiting, f"{self.counts.pending} pending, {self.work.waiting} waiting"
        return 0

    cdef int verify_line(self) except -1:
        """No waiting pod that need not be tried would fit a node."""
        return self.line.verify_tried(None)

    cdef int loop(self, int64_t budget) except -1 nogil:
        """Take the smallest event by (time, kind) until something needs the caller."""
        cdef int kind
        cdef double t
        while budget > 0:
            self.skip_void_departures()
            if self.wants_node_changes():
                return WANT_NODE_CHANGES
            kind, t = END, INFINITY
            if self.a_next < self.a_count:
                kind, t = ARRIVAL, self.a_submit[self.a_next]
            elif not self.last_batch:
                return WANT_ARRIVALS
            if self.deschedule_next < self.deschedule_t.shape[0] and self.deschedule_t[self.deschedule_next] <= t:
                kind, t = DESCHEDULE, self.deschedule_t[self.deschedule_next]
            if self.departures.size > 0 and self.departures.items[0].t <= t:
                kind, t = DEPARTURE, self.departures.items[0].t
            if self.change_next < self.change_t.shape[0] and self.change_t[self.change_next] <= t:
                kind, t = NODE, self.change_t[self.change_next]
            # A sample or a retry comes before deschedules and arrivals, after nodes and departures.
            if self.next_sample > -INFINITY and kind != END and (
                    self.next_sample < t or (self.next_sample == t and kind > SAMPLE)):
                kind, t = SAMPLE, self.next_sample
            if self.freed and (t > self.now or kind > RETRY):
                kind, t = RETRY, self.now
            if kind == END or t > self.until or ((t > self.now or kind == SAMPLE) and self.over()):
                return DONE
            if t > self.gpu_sample_s or (t == self.gpu_sample_s and kind > SAMPLE):
                self.next_s = t
                return GPU_SAMPLE
            self.clock(t)
            if kind == DESCHEDULE:
                self.deschedule_next += 1
                self.events += 1
                return DESCHEDULE_DUE
            self.process(kind)
            if self.checked:
                with gil:
                    self.verify()
            budget -= 1
        return PAUSE

    cdef int skip_void_departures(self) except -1 nogil:
        """Drop departures of pods that left earlier, and prefetch the nodes of the next ones."""
        cdef int32_t soon
        while (self.departures.size > 0
                and self.work.slots[self.departures.items[0].slot].turn != self.departures.items[0].turn):
            self.departures.pop()
        soon = self.departures.prefetch(self.work.slots)
        if soon >= 0 and self.work.slots[soon].node >= 0:
            self.select.prefetch(self.work.slots[soon].node)
        return 0

    cdef bint wants_node_changes(self) noexcept nogil:
        """Whether the next node change is not known yet."""
        return False

    cdef bint over(self) noexcept nogil:
        """Whether every pod has come and left: what happens later is no part of the run."""
        return self.counts.running + self.counts.pending == 0 and self.a_next == self.a_count and self.last_batch

    cdef int choose(self, int cls, Choice* choice) except -1 nogil:
        """Choose the node and devices of a pod of class ``cls``, or the Reason why none fits."""
        return self.select.choose(cls, choice)

    cdef void clock(self, double t) noexcept nogil:
        """Advance the time, and add the state so far to the integrals over it."""
        cdef double dt = t - self.area_from
        cdef Totals* total = &self.nodes.total
        if self.a_seq == 0:  # means over time begin with the first arrival
            self.began = t
        elif dt > 0:
            self.area[0] += dt * total.gpu_alloc
            self.area[1] += dt * total.gpu_cap
            self.area[2] += dt * total.cpu_alloc
            self.area[3] += dt * total.cpu_cap
            self.area[4] += dt * total.mem_alloc
            self.area[5] += dt * (total.frag[0] + total.frag[1] + total.frag[3] + total.frag[4] + total.frag[5]
                                  + total.frag[6])
            self.area[6] += dt * (total.cpu_mw + total.gpu_mw)
            self.area[7] += dt * self.counts.pending
        self.now = self.area_from = t

    cdef int process(self, int kind) except -1 nogil:
        """Process one event and write its timeline row."""
        cdef int64_t pod = -1
        cdef bint shown = True
        self.events += 1
        if kind == ARRIVAL:
            pod = self.a_pod_id[self.a_next]
            self.arrive()
        elif kind == DEPARTURE:
            pod = self.work.slots[self.departures.items[0].slot].pod_id
            self.depart()
        elif kind == NODE:
            self.change_node_now()
        elif kind == RETRY:
            shown = self.retry()
        else:
            self.sample_k += 1   # a multiple, not a running sum, so that rounding never builds up
            self.next_sample = self.sample_k * self.sample_s
        if self.record == (2 if kind == SAMPLE else 1) and shown:
            self.write_row(kind, pod)
        return 0

    cdef int arrive(self) except -1 nogil:
        """Handle the next arrival: the pod is started, enqueued or dropped."""
        cdef int64_t i = self.a_next, seq = self.a_seq
        cdef int32_t cls = self.a_class[i]
        cdef const Pod* pod = &self.work.classes[cls]
        cdef int32_t slot = self.work.enter(seq, self.a_pod_id[i], cls, self.a_submit[i], self.a_duration[i],
                                            self.a_priority[i], self.a_tenant[i])
        self.a_seq += 1
        self.counts.arrived_cpu += pod.cpu
        self.counts.arrived_gpu += pod.num_gpu * pod.milli + pod.mig
        if self.binds and self.a_node[i] >= 0:
            self.start_bound(slot, self.a_node[i], self.a_gpus[i])
        else:
            self.admit(slot)
        self.a_next += 1
        if self.counts.arrived_gpu <= self.nodes.total.gpu_cap:
            self.fill_row(&self.at_capacity, ARRIVAL, self.a_pod_id[i])
        return 0

    cdef int start_bound(self, int32_t slot, int n, uint64_t gpus) except -1 nogil:
        """Start an arriving pod on the node that it is bound to; it leaves if there is no room."""
        cdef Choice choice
        self.select.check_binding(self.work.slots[slot].cls, n, gpus, &choice)
        if choice.node < 0:
            return self.drop(slot, choice.reason)
        return self.start_on(slot, &choice)

    cdef int admit(self, int32_t slot) except -1 nogil:
        """Start, enqueue or drop a pod that has just arrived."""
        cdef int reason = self.nodes.lasting_obstacle(&self.work.classes[self.work.slots[slot].cls])
        if reason:
            return self.drop(slot, reason)
        if self.queue_rule != DROP:
            self.work.queue(slot, self.queue_rule >= PRIORITY)
            self.line.join(slot)
            self.counts.pending += 1
        if self.queue_rule in (DROP, FIFO_SKIP, PRIORITY_SKIP) or self.work.head == slot:
            reason = self.start(slot)
            if reason and self.queue_rule == DROP:
                self.drop(slot, reason)
        return 0

    cdef int drop(self, int32_t slot, int reason) except -1 nogil:
        """Drop a pod that was never placed."""
        cdef const Pod* pod = &self.work.classes[self.work.slots[slot].cls]
        self.counts.unplaced += 1
        self.counts.unplaced_cpu += pod.cpu
        self.counts.unplaced_gpu += pod.num_gpu * pod.milli + pod.mig
        self.work.note(slot, reason, self.now, INTERVAL | POD)
        self.work.leave(slot)
        return 0

    cdef int start(self, int32_t slot) except -1 nogil:
        """Start a pod that waits or has just arrived; 0, or the Reason why it fits nowhere."""
        cdef Choice choice
        cdef Slot* s = &self.work.slots[slot]
        self.choose(s.cls, &choice)
        if choice.node < 0:
            return choice.reason
        if self.queue_rule != DROP:
            self.line.leave(slot)
            self.work.unqueue(slot)
            self.counts.pending -= 1
        return self.start_on(slot, &choice)

    cdef int start_on(self, int32_t slot, const Choice* choice) except -1 nogil:
        """Start a pod on the chosen node and devices, and schedule its departure."""
        cdef Slot* s = &self.work.slots[slot]
        self.allocate(slot, choice)
        s.began = self.now
        if not isnan(s.duration):
            self.departures.push(self.now + s.duration, slot, s.turn)
        if self.starts_recorded:
            self.work.note(slot, RUNNING, self.now, START)
        return 0

    cdef void allocate(self, int32_t slot, const Choice* choice) noexcept nogil:
        """Allocate the chosen node and devices to a pod."""
        cdef Slot* s = &self.work.slots[slot]
        s.node, s.gpus, s.start = choice.node, choice.gpus, self.now
        if s.attempt == 0:
            s.first_start = self.now
        self.nodes.allocate(s.node, &self.work.classes[s.cls], s.gpus)
        self.counts.running += 1

    cdef void count_lost_work(self, int32_t slot) noexcept nogil:
        """Count all work of a pod that stops before its end as lost."""
        cdef Slot* s = &self.work.slots[slot]
        s.lost = s.lost + (self.now - s.began)

    cdef int depart(self) except -1 nogil:
        """Handle the soonest departure."""
        cdef int32_t slot = self.departures.items[0].slot
        self.departures.pop()
        self.line.free_node(self.work.slots[slot].node)
        self.release(slot, FINISHED)
        self.counts.finished += 1
        self.freed = self.work.waiting > 0
        return 0

    cdef void free_all(self) noexcept nogil:
        """Any waiting pod may fit now; only a pod that departs frees its node alone."""
        self.freed = self.work.waiting > 0
        self.line.free_all()

    cdef int release(self, int32_t slot, int reason) except -1 nogil:
        """Remove a running pod from its node and the system."""
        cdef Slot* s = &self.work.slots[slot]
        self.nodes.release(s.node, &self.work.classes[s.cls], s.gpus)
        self.work.note(slot, reason, self.now, INTERVAL | POD)
        self.work.leave(slot)
        self.counts.running -= 1
        return 0

    cdef int change_node_now(self) except -1 nogil:
        """Add a node, or remove one with every pod on it (smallest arrival first)."""
        cdef int n = self.change_node[self.change_next]
        cdef int32_t s, first
        if self.change_adds[self.change_next]:
            self.nodes.add_node(n)
            self.free_all()
        else:
            while self.nodes.pods[n] > 0:
                first = -1
                for s in range(self.work.n_slots):
                    if self.work.slots[s].seq >= 0 and self.work.slots[s].node == n and (
                            first < 0 or self.work.slots[s].seq < self.work.slots[first].seq):
                        first = s
                self.count_lost_work(first)
                self.release(first, NODE_LOST)
                self.counts.lost += 1
            self.nodes.remove_node(n)
        self.change_next += 1
        return 0

    cdef bint retry(self) except -1 nogil:
        """Try the waiting pods once, in the order of the line; True if one was placed."""
        cdef int32_t slot = self.work.head, after
        cdef bint placed = False
        self.freed = False
        if self.line.known():
            return self.retry_fitting()
        while slot >= 0:
            after = self.work.slots[slot].after
            if self.start(slot) == 0:
                placed = True
            elif self.queue_rule in (FIFO, PRIORITY):
                break
            slot = after
        self.line.settle(True)
        return placed

    cdef bint retry_fitting(self) except -1 nogil:
        """Try the waiting pods that fit a node which was freed since all were tried; True if one was placed."""
        cdef int32_t slot = self.line.first()
        cdef bint placed = False
        while slot >= 0:
            placed = self.start(slot) == 0 or placed
            slot = self.line.following()
        self.line.settle(True)
        return placed

    cdef void fill_row(self, Row* row, int kind, int64_t pod) noexcept nogil:
        row.t, row.seq, row.kind, row.pod = self.now, self.events, kind, pod
        row.counts, row.total = self.counts, self.nodes.total

    cdef int write_row(self, int kind, int64_t pod) except -1 nogil:
        """Append the state of now to the timeline."""
        if self.n_rows == self.row_room:
            self.rows = <Row*> memory_grown(self.rows, 2 * self.row_room + 1024, sizeof(Row))
            self.row_room = 2 * self.row_room + 1024
        self.fill_row(&self.rows[self.n_rows], kind, pod)
        self.n_rows += 1
        return 0
