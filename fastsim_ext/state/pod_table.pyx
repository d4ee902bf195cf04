"""Pod classes, the pods in the system, the waiting line and the outcomes.

Pods with equal requests form one class. A pod has a slot while it waits or runs and then becomes an
outcome row, so memory follows the pods in the system and not the length of the trace.
"""

from libc.math cimport NAN, isnan
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy
from cpython.bytes cimport PyBytes_FromStringAndSize
from fastsim_ext.state.gpu_prices cimport Tariff
from fastsim_ext.state.node_table cimport NodeTable
from fastsim_ext.state.pod_outcomes cimport FINISHED, INTERVAL, NODE_LOST, POD, PREEMPTED, Outcome, outcome_spans
from fastsim_ext.types cimport FULL, Pod


cdef void* grown(void* items, int64_t room, size_t size) except NULL nogil:
    """``items`` with room for ``room`` entries of ``size`` bytes."""
    cdef void* fresh = realloc(items, room * size)
    if fresh == NULL:
        with gil:
            raise MemoryError()
    return fresh


cdef class WorkTable:
    """Owner of classes, slots, the waiting line (a linked list of slots) and outcomes."""

    def __cinit__(self):
        self.free_slot = self.head = self.tail = -1

    def __dealloc__(self):
        free(self.classes)
        free(self.slots)
        free(self.accounts)
        free(self.outcomes)
        free(self.tenant_held)

    def add_class(self, int64_t cpu, int64_t mem, int num_gpu, int milli, uint64_t models, int64_t mig=0):
        """A new pod class: milli-CPU, MiB, devices, milli of each, allowed models as bits (0 = any), milli of its
        instances of partitioned GPUs."""
        cdef Pod* pod
        if self.n_classes == self.class_room:
            self.classes = <Pod*> grown(self.classes, 2 * self.class_room + 64, sizeof(Pod))
            self.class_room = 2 * self.class_room + 64
        pod = &self.classes[self.n_classes]
        pod.cpu, pod.mem, pod.num_gpu, pod.milli, pod.models, pod.mig = cpu, mem, num_gpu, milli, models, mig
        self.n_classes += 1
        return self.n_classes - 1

    def add_classes(self, const int64_t[::1] cpu, const int64_t[::1] mem, const int32_t[::1] num_gpu,
                    const int32_t[::1] milli, const uint64_t[::1] models, const int64_t[::1] mig):
        """New pod classes, column by column; units as in add_class()."""
        cdef int64_t k
        if not len(cpu) == len(mem) == len(num_gpu) == len(milli) == len(models) == len(mig):
            raise ValueError("the columns of the classes have different lengths")
        for k in range(cpu.shape[0]):
            self.add_class(cpu[k], mem[k], num_gpu[k], milli[k], models[k], mig[k])

    def use_tariff(self, Tariff tariff):
        """Charge GPUs by ``tariff`` from now on."""
        self.tariff = tariff

    def paid(self):
        """($ of the pods that have left or None, GPU seconds that they held by tenant)."""
        held = [self.tenant_held[k] / FULL for k in range(self.n_tenants)]
        return None if self.tariff is None else self.cost, held

    def drain(self):
        """Remove and return the outcome rows so far, as bytes."""
        cdef int64_t n = self.n_outcomes
        self.n_outcomes = 0
        return PyBytes_FromStringAndSize(<char*> self.outcomes, n * sizeof(Outcome))

    def spans(self, double[:, ::1] room):
        """Write the values of the outcome rows, and remove those: (count of each value, preemptions, restarts).

        A row each for seconds of waits until the first start, of completion times and of lost work; slowdowns over the
        ideal time; seconds of pauses; wasted GPU seconds. Preemptions and restarts are those of pods that have left.
        """
        counts = outcome_spans(self.outcomes, self.n_outcomes, room)
        self.n_outcomes = 0
        return counts

    def snapshot(self):
        """(slots and accounts as bytes, ends of the lists and sums over pods that are gone): all that restore() needs.

        Outcomes must have been drained.
        """
        if self.n_outcomes:
            raise ValueError(f"{self.n_outcomes} outcome rows are not drained yet")
        ends = {"free": self.free_slot, "head": self.head, "tail": self.tail, "waiting": self.waiting,
                "cost": self.cost, "tenant_held": [self.tenant_held[k] for k in range(self.n_tenants)]}
        slots = PyBytes_FromStringAndSize(<char*> self.slots, self.n_slots * sizeof(Slot))
        return slots + PyBytes_FromStringAndSize(<char*> self.accounts, self.n_slots * sizeof(Account)), ends

    def restore(self, const unsigned char[::1] slots, ends):
        """Restore the pods of a snapshot(); their classes must have been added."""
        cdef int32_t s
        cdef int64_t each = sizeof(Slot) + sizeof(Account)
        cdef int32_t count = <int32_t> (slots.shape[0] // each)
        if slots.shape[0] % each or self.n_slots:
            raise ValueError(f"{slots.shape[0]} bytes are no snapshot, or the table is not empty")
        if count:
            self.slots = <Slot*> grown(self.slots, count, sizeof(Slot))
            self.accounts = <Account*> grown(self.accounts, count, sizeof(Account))
            memcpy(self.slots, &slots[0], count * sizeof(Slot))
            memcpy(self.accounts, &slots[0] + count * sizeof(Slot), count * sizeof(Account))
        self.slot_room = self.n_slots = count
        self.free_slot, self.head, self.tail = ends["free"], ends["head"], ends["tail"]
        self.waiting, self.cost = ends["waiting"], ends["cost"]
        for s, held in enumerate(ends["tenant_held"]):
            self.add_tenants(s)
            self.tenant_held[s] = held
        for s in range(count):
            if self.slots[s].seq != -1:
                self.check_class(self.slots[s].cls)
        self.verify()

    def present(self):
        """Arrival numbers of all pods that wait or run, in no particular order."""
        cdef int32_t s
        return [self.slots[s].seq for s in range(self.n_slots) if self.slots[s].seq >= 0]

    def running(self):
        """(slot, seq, class, node, devices as bits, start in s) of every running pod, by seq."""
        rows = []
        cdef int32_t s
        for s in range(self.n_slots):
            if self.slots[s].seq >= 0 and self.slots[s].node >= 0:
                rows.append((s, self.slots[s].seq, self.slots[s].cls, self.slots[s].node, self.slots[s].gpus,
                             self.slots[s].start))
        return sorted(rows, key=lambda row: row[1])

    cdef int32_t enter(self, int64_t seq, int64_t pod_id, int32_t cls, double submit, double duration,
                       int32_t priority, int32_t tenant) except -1 nogil:
        """Take a slot for a pod that has arrived; its node is -1 until it is placed."""
        cdef int32_t slot = self.free_slot
        cdef Slot* s
        cdef Account* a
        if slot >= 0:
            self.free_slot = self.slots[slot].after
        else:
            if self.n_slots == self.slot_room:
                self.slots = <Slot*> grown(self.slots, 2 * self.slot_room + 64, sizeof(Slot))
                self.accounts = <Account*> grown(self.accounts, 2 * self.slot_room + 64, sizeof(Account))
                self.slot_room = 2 * self.slot_room + 64
            slot = self.n_slots
            self.n_slots += 1
            self.slots[slot].turn = 0
        s = &self.slots[slot]
        s.seq, s.pod_id, s.submit, s.duration, s.start, s.first_start = seq, pod_id, submit, duration, NAN, NAN
        s.began = s.lost = 0.0
        a = &self.accounts[slot]
        a.ideal, a.tenant = duration, tenant
        a.delay = a.left = a.paused = a.held = a.delayed = a.cost = 0.0
        if tenant >= self.n_tenants:
            self.add_tenants(tenant)
        s.preemptions = 0
        s.cls, s.node, s.priority, s.attempt, s.gpus = cls, -1, priority, 0, 0
        s.before = s.after = -1
        return slot

    cdef int add_tenants(self, int32_t tenant) except -1 nogil:
        """Add sums for the tenants up to this number."""
        cdef int32_t k
        if tenant >= self.tenant_room:
            self.tenant_held = <double*> grown(self.tenant_held, 2 * tenant + 16, sizeof(double))
            self.tenant_room = 2 * tenant + 16
        for k in range(self.n_tenants, tenant + 1):
            self.tenant_held[k] = 0.0
        self.n_tenants = tenant + 1
        return 0

    cdef int check_class(self, int cls) except -1:
        """Raise IndexError unless the class exists."""
        if not 0 <= cls < self.n_classes:
            raise IndexError(f"no pod class {cls}")
        return 0

    cdef int check_slot(self, int32_t slot) except -1:
        """Raise IndexError unless a pod runs in the slot."""
        if not 0 <= slot < self.n_slots or self.slots[slot].seq == -1 or self.slots[slot].node < 0:
            raise IndexError(f"no pod runs in slot {slot}")
        return 0

    cdef void leave(self, int32_t slot) noexcept nogil:
        """Free the slot of a pod that has left the system."""
        cdef Slot* s = &self.slots[slot]
        s.turn += 1
        s.seq = -1
        s.after = self.free_slot
        self.free_slot = slot

    cdef void queue(self, int32_t slot, bint by_priority) noexcept nogil:
        """Join the waiting line: at its end, or behind the last pod of at least this priority."""
        cdef int32_t at = self.tail
        while by_priority and at >= 0 and self.slots[at].priority < self.slots[slot].priority:
            at = self.slots[at].before
        self.queue_behind(slot, at)

    cdef void queue_behind(self, int32_t slot, int32_t at) noexcept nogil:
        """Join the waiting line behind a pod, or with -1 at its head."""
        cdef Slot* s = &self.slots[slot]
        s.before = at
        if at >= 0:
            s.after = self.slots[at].after
            self.slots[at].after = slot
        else:
            s.after = self.head
            self.head = slot
        if s.after >= 0:
            self.slots[s.after].before = slot
        else:
            self.tail = slot
        self.waiting += 1

    cdef void relink(self, const int32_t* slots, int32_t n) noexcept nogil:
        """Put the waiting line into another order."""
        cdef int32_t i
        self.head = slots[0] if n else -1
        self.tail = slots[n - 1] if n else -1
        for i in range(n):
            self.slots[slots[i]].before = slots[i - 1] if i else -1
            self.slots[slots[i]].after = slots[i + 1] if i + 1 < n else -1

    cdef void unqueue(self, int32_t slot) noexcept nogil:
        """Leave the waiting line."""
        cdef Slot* s = &self.slots[slot]
        if s.before >= 0:
            self.slots[s.before].after = s.after
        else:
            self.head = s.after
        if s.after >= 0:
            self.slots[s.after].before = s.before
        else:
            self.tail = s.before
        s.before = s.after = -1
        self.waiting -= 1

    cdef void close_stay(self, int32_t slot, double now) noexcept nogil:
        """Charge a stay that ends, and the pause before it, to the account."""
        cdef const Slot* s = &self.slots[slot]
        cdef Account* a = &self.accounts[slot]
        cdef const Pod* pod = &self.classes[s.cls]
        if s.attempt > 0:
            a.paused += s.start - a.left
        if a.delay > 0:
            a.delayed += max(0.0, min(now, s.began + a.delay) - s.start)
        a.held += (now - s.start) * (pod.num_gpu * pod.milli + pod.mig)
        if self.tariff is not None:
            a.cost += self.tariff.dollars(s.node, s.start, now) * (pod.num_gpu * pod.milli + pod.mig) / FULL
        a.left = now

    cdef int note(self, int32_t slot, int reason, double now, int closes) except -1 nogil:
        """Write the outcome row of the pod's present attempt at ``now`` seconds; ``closes`` is what ends."""
        cdef const Slot* s = &self.slots[slot]
        cdef Account* a = &self.accounts[slot]
        cdef const Pod* pod = &self.classes[s.cls]
        cdef Outcome* row
        if self.n_outcomes == self.outcome_room:
            self.outcomes = <Outcome*> grown(self.outcomes, 2 * self.outcome_room + 1024, sizeof(Outcome))
            self.outcome_room = 2 * self.outcome_room + 1024
        if closes & INTERVAL and s.node >= 0:
            self.close_stay(slot, now)
        elif closes & POD and not isnan(s.first_start):
            a.paused += now - a.left
        row = &self.outcomes[self.n_outcomes]
        row.seq, row.pod_id, row.node, row.attempt, row.gpus = s.seq, s.pod_id, s.node, s.attempt, s.gpus
        row.reason, row.closes = reason, closes
        row.submit, row.first_start, row.start = s.submit, s.first_start, s.start
        row.end = now if FINISHED == reason or NODE_LOST <= reason <= PREEMPTED else NAN
        row.preemptions, row.lost, row.ideal = s.preemptions, s.lost, a.ideal
        row.paused = NAN if isnan(s.first_start) else a.paused
        row.gpu_s = a.held / FULL
        row.wasted = (s.lost + a.delayed) * (pod.num_gpu * pod.milli + pod.mig) / FULL
        row.cost = NAN if self.tariff is None else a.cost
        if closes & POD:
            self.cost += a.cost
            if a.tenant >= 0:
                self.tenant_held[a.tenant] += a.held
        self.n_outcomes += 1
        return 0

    def frag_without(self, NodeTable nodes, int node, slots):
        """Fragmentation of a node in milli-GPU without these of its pods."""
        cdef int32_t slot
        nodes.check_node(node)
        for slot in slots:
            self.check_slot(slot)
            if self.slots[slot].node != node:
                raise ValueError(f"slot {slot} runs on node {self.slots[slot].node}, not on {node}")
        for slot in slots:
            nodes.release(node, &self.classes[self.slots[slot].cls], self.slots[slot].gpus)
        frag = nodes.exactly(node).frag
        for slot in slots:
            nodes.allocate(node, &self.classes[self.slots[slot].cls], self.slots[slot].gpus)
        return frag

    cpdef int verify(self) except -1:
        """Check that the waiting line is linked both ways and has only pods without a node."""
        cdef int32_t at = self.head
        cdef int32_t last = -1
        cdef int64_t n = 0
        while at >= 0:
            assert self.slots[at].before == last, f"waiting line broken at slot {at}"
            assert self.slots[at].node < 0, f"slot {at} waits and runs"
            last, at, n = at, self.slots[at].after, n + 1
        assert last == self.tail and n == self.waiting, f"{n} pods in a line of {self.waiting}"
        return 0
