"""Pod classes, the pods in the system, the waiting line and the outcomes.

Pods that ask for the same are one class. A pod lives in a slot while it waits or runs; what became
of it leaves as an outcome row, so memory follows the pods in the system and not the trace.
"""

from libc.math cimport NAN
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy
from cpython.bytes cimport PyBytes_FromStringAndSize
from fastsim_ext.types cimport Pod


cdef void* grown(void* items, int64_t room, size_t size) except NULL nogil:
    """``items`` with room for ``room`` entries of ``size`` bytes."""
    cdef void* fresh = realloc(items, room * size)
    if fresh == NULL:
        with gil:
            raise MemoryError()
    return fresh


cdef work_spans(const Outcome* row, int64_t n, double[:, ::1] room):
    """The seconds of ``n`` outcome rows into three rows; see WorkTable.spans()."""
    cdef int64_t waits = 0
    cdef int64_t ends = 0
    cdef int64_t losses = 0
    cdef int64_t preemptions = 0
    if room.shape[0] != 3 or room.shape[1] < n:
        raise ValueError(f"room of {room.shape[0]} rows of {room.shape[1]}, expected 3 of {n}")
    with nogil:
        for _ in range(n):
            if row.attempt == 0 and row.node >= 0 and row.closes & INTERVAL:
                room[0, waits] = row.start - row.submit
                waits += 1
            if row.reason == FINISHED:
                room[1, ends] = row.end - row.submit
                ends += 1
            if row.closes & POD:
                preemptions += row.preemptions
                if row.lost > 0:
                    room[2, losses] = row.lost
                    losses += 1
            row += 1
    return waits, ends, losses, preemptions


def spans_of(const unsigned char[::1] rows, double[:, ::1] room):
    """The same as WorkTable.spans() of outcome rows that were drained, as bytes."""
    if rows.shape[0] % <int64_t> sizeof(Outcome):
        raise ValueError(f"{rows.shape[0]} bytes are no outcome rows")
    if not rows.shape[0]:
        return 0, 0, 0, 0
    return work_spans(<const Outcome*> &rows[0], rows.shape[0] // <int64_t> sizeof(Outcome), room)


cdef class WorkTable:
    """Owner of classes, slots, the waiting line (a linked list of slots) and outcomes."""

    def __cinit__(self):
        self.free_slot = self.head = self.tail = -1

    def __dealloc__(self):
        free(self.classes)
        free(self.slots)
        free(self.outcomes)

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

    def drain(self):
        """The outcome rows so far, as bytes; they are forgotten here."""
        cdef int64_t n = self.n_outcomes
        self.n_outcomes = 0
        return PyBytes_FromStringAndSize(<char*> self.outcomes, n * sizeof(Outcome))

    def spans(self, double[:, ::1] room):
        """Seconds into three rows: waits until the first start, arrival to end if finished, work lost by those gone.

        Answers how many there are of each, and how often pods that are gone were stopped for others. The outcome rows
        so far are forgotten here.
        """
        found = work_spans(self.outcomes, self.n_outcomes, room)
        self.n_outcomes = 0
        return found

    def snapshot(self):
        """(every slot as bytes, the ends of its lists): all that restore() needs. Outcomes must have been drained."""
        if self.n_outcomes:
            raise ValueError(f"{self.n_outcomes} outcome rows are not drained yet")
        ends = {"free": self.free_slot, "head": self.head, "tail": self.tail, "waiting": self.waiting}
        return PyBytes_FromStringAndSize(<char*> self.slots, self.n_slots * sizeof(Slot)), ends

    def restore(self, const unsigned char[::1] slots, ends):
        """Take over the pods of a snapshot(); their classes must have been added."""
        cdef int32_t s
        cdef int32_t count = <int32_t> (slots.shape[0] // <int64_t> sizeof(Slot))
        if slots.shape[0] % <int64_t> sizeof(Slot) or self.n_slots:
            raise ValueError(f"{slots.shape[0]} bytes are no snapshot, or the table is not empty")
        if count:
            self.slots = <Slot*> grown(self.slots, count, sizeof(Slot))
            memcpy(self.slots, &slots[0], slots.shape[0])
        self.slot_room = self.n_slots = count
        self.free_slot, self.head, self.tail = ends["free"], ends["head"], ends["tail"]
        self.waiting = ends["waiting"]
        for s in range(count):
            if self.slots[s].seq != -1:
                self.known_class(self.slots[s].cls)
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
                       int32_t priority) except -1 nogil:
        """A slot for a pod that has arrived; its node is -1 until it is placed."""
        cdef int32_t slot = self.free_slot
        cdef Slot* s
        if slot >= 0:
            self.free_slot = self.slots[slot].after
        else:
            if self.n_slots == self.slot_room:
                self.slots = <Slot*> grown(self.slots, 2 * self.slot_room + 64, sizeof(Slot))
                self.slot_room = 2 * self.slot_room + 64
            slot = self.n_slots
            self.n_slots += 1
            self.slots[slot].turn = 0
        s = &self.slots[slot]
        s.seq, s.pod_id, s.submit, s.duration, s.start, s.first_start = seq, pod_id, submit, duration, NAN, NAN
        s.began = s.lost = 0.0
        s.preemptions = 0
        s.cls, s.node, s.priority, s.attempt, s.gpus = cls, -1, priority, 0, 0
        s.before = s.after = -1
        return slot

    cdef int known_class(self, int cls) except -1:
        """Refuse a class that was never added."""
        if not 0 <= cls < self.n_classes:
            raise IndexError(f"no pod class {cls}")
        return 0

    cdef int known_slot(self, int32_t slot) except -1:
        """Refuse a slot in which no pod runs."""
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
        """The same pods stand in another order."""
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

    cdef int note(self, int32_t slot, int reason, double end, int closes) except -1 nogil:
        """Write the outcome row of the pod's present attempt, ending at ``end`` seconds; ``closes`` says what ends."""
        cdef Slot* s = &self.slots[slot]
        cdef Outcome* row
        if self.n_outcomes == self.outcome_room:
            self.outcomes = <Outcome*> grown(self.outcomes, 2 * self.outcome_room + 1024, sizeof(Outcome))
            self.outcome_room = 2 * self.outcome_room + 1024
        row = &self.outcomes[self.n_outcomes]
        row.seq, row.pod_id, row.node, row.attempt, row.gpus = s.seq, s.pod_id, s.node, s.attempt, s.gpus
        row.reason, row.closes = reason, closes
        row.submit, row.first_start, row.start, row.end = s.submit, s.first_start, s.start, end
        row.preemptions, row.lost = s.preemptions, s.lost
        self.n_outcomes += 1
        return 0

    cpdef int verify(self) except -1:
        """The waiting line is linked both ways, and only pods without a node stand in it."""
        cdef int32_t at = self.head
        cdef int32_t last = -1
        cdef int64_t n = 0
        while at >= 0:
            assert self.slots[at].before == last, f"waiting line broken at slot {at}"
            assert self.slots[at].node < 0, f"slot {at} waits and runs"
            last, at, n = at, self.slots[at].after, n + 1
        assert last == self.tail and n == self.waiting, f"{n} pods in a line of {self.waiting}"
        return 0
