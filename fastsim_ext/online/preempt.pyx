"""Preemption: the pods of lower priority to stop, on the node where that costs least.

On each node, imagine all pods of lower priority gone that may be stopped. If the pod then fits, they come back one
after another (higher priority first, then the earlier start, then the earlier arrival) while the pod still fits; those
that cannot come back are the victims.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t
from libc.stdlib cimport free, realloc
from fastsim_ext.online.node_constraints cimport ConstraintTable, NodeView
from fastsim_ext.state.pod_membership cimport PodMembership
from fastsim_ext.state.pod_table cimport Slot, WorkTable


cdef inline bint cheaper(const Cost* a, const Cost* b) noexcept nogil:
    if a.highest != b.highest:
        return a.highest < b.highest
    if a.total != b.total:
        return a.total < b.total
    if a.count != b.count:
        return a.count < b.count
    return a.first > b.first


cdef class PreemptionPlan:
    """Looks for the node on which room is made at the least cost; ties go to the smallest position."""

    def __init__(self, ConstraintTable constraints, WorkTable work, PodMembership membership):
        self.constraints, self.work, self.membership = constraints, work, membership

    def __dealloc__(self):
        free(self.lower)
        free(self.victims)
        free(self.failures)

    cdef int find(self, int32_t slot) except -1 nogil:
        """Find the ``node`` to make room on for the pod in ``slot``, or -1; ``victims`` are the pods to stop."""
        cdef int cls = self.work.slots[slot].cls
        cdef int n, k
        cdef int32_t* other
        cdef NodeView view
        cdef Cost cost, best
        self.n_victims, self.node = 0, -1
        if (cls < self.class_room and self.failures[cls].moves == self.membership.moves
                and self.work.slots[slot].priority <= self.failures[cls].priority):
            return 0         # nothing has changed since the last pod like this
        for n in range(self.constraints.nodes.count):
            if not self.constraints.nodes.present[n] or self.constraints.never_fits(n, cls):
                continue
            self.list_lower(n, self.work.slots[slot].priority)
            if self.n_lower == 0:
                continue
            self.constraints.view(n, cls, &view)
            for k in range(self.n_lower):
                self.shift(&view, self.lower[k], cls, 1)
            if self.constraints.failed_check(&view, cls) != 0:
                continue
            self.let_return(&view, cls)
            if self.total_cost(&cost) and (self.node < 0 or cheaper(&cost, &best)):
                best, self.node = cost, n
                other = self.victims
                self.victims, self.lower, self.n_victims = self.lower, other, self.n_lower
        if self.node < 0:
            self.record_failure(cls, self.work.slots[slot].priority)
        return 0

    cdef int record_failure(self, int cls, int32_t priority) except -1 nogil:
        """Note that nothing helps a class now."""
        cdef Failure* grown
        cdef int c
        if cls >= self.class_room:
            grown = <Failure*> realloc(self.failures, (2 * cls + 64) * sizeof(Failure))
            if grown == NULL:
                with gil:
                    raise MemoryError()
            for c in range(self.class_room, 2 * cls + 64):
                grown[c].moves = -1
            self.failures, self.class_room = grown, 2 * cls + 64
        self.failures[cls].moves, self.failures[cls].priority = self.membership.moves, priority
        return 0

    cdef int list_lower(self, int n, int32_t priority) except -1 nogil:
        """List the pods of node ``n`` that may be stopped, in the order in which they may come back."""
        cdef int32_t at = self.membership.first__n[n]
        cdef int32_t k
        self.n_lower = 0
        while at >= 0:
            if (self.work.slots[at].seq >= 0 and self.work.slots[at].priority < priority
                    and self.membership.members[at].preemptible):
                if self.n_lower == self.room:
                    self.widen()
                k = self.n_lower
                while k > 0 and self.returns_before(at, self.lower[k - 1]):
                    self.lower[k] = self.lower[k - 1]
                    k -= 1
                self.lower[k] = at
                self.n_lower += 1
            at = self.membership.members[at].next_on_node
        return 0

    cdef int widen(self) except -1 nogil:
        """Room for more pods on one node."""
        cdef int32_t room = 2 * self.room + 64
        cdef int32_t* lower = <int32_t*> realloc(self.lower, room * sizeof(int32_t))
        cdef int32_t* victims = NULL
        if lower != NULL:
            self.lower = lower
            victims = <int32_t*> realloc(self.victims, room * sizeof(int32_t))
        if victims == NULL:
            with gil:
                raise MemoryError()
        self.victims, self.room = victims, room
        return 0

    cdef bint returns_before(self, int32_t a, int32_t b) noexcept nogil:
        """Whether one pod may come back before another."""
        cdef const Slot* x = &self.work.slots[a]
        cdef const Slot* y = &self.work.slots[b]
        if x.priority != y.priority:
            return x.priority > y.priority
        return x.start < y.start or (x.start == y.start and x.seq < y.seq)

    cdef void shift(self, NodeView* view, int32_t slot, int cls, int sign) noexcept nogil:
        """A pod goes from (1) or comes back to (-1) the imagined node."""
        cdef const Slot* s = &self.work.slots[slot]
        self.constraints.shift(view, s.cls, s.gpus, self.membership.members[slot].group, cls, sign)

    cdef void let_return(self, NodeView* view, int cls) noexcept nogil:
        """Put pods back while the preempting pod still fits; ``lower`` keeps the others."""
        cdef int32_t k
        cdef int32_t left = 0
        for k in range(self.n_lower):
            self.shift(view, self.lower[k], cls, -1)
            if self.constraints.failed_check(view, cls) != 0:
                self.shift(view, self.lower[k], cls, 1)
                self.lower[left] = self.lower[k]
                left += 1
        self.n_lower = left

    cdef int total_cost(self, Cost* cost) noexcept nogil:
        """Cost of stopping the pods in ``lower``; returns their number."""
        cdef int32_t k
        cdef const Slot* s
        cost.total, cost.count, cost.first = 0, self.n_lower, INFINITY
        for k in range(self.n_lower):
            s = &self.work.slots[self.lower[k]]
            if k == 0:
                cost.highest = s.priority      # they stand by falling priority
            cost.total += s.priority
            if s.priority == cost.highest and s.start < cost.first:
                cost.first = s.start
        return self.n_lower
