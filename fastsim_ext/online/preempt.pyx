"""Preemption: the pods of lower priority to stop, on the node where that costs least.

On each node, imagine all pods of lower priority gone that may be stopped. If the pod then fits, they come back one
after another (higher priority first, then the earlier start, then the earlier arrival) while the pod still fits; those
that cannot come back are the victims. Pods that break a disruption budget come back before all others: those by which,
counted in the same order, more pods with the budget would stop than run beyond its least number.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset
from fastsim_ext.memory cimport memory_grown
from fastsim_ext.online.node_constraints cimport ConstraintTable, NodeView
from fastsim_ext.state.pod_membership cimport PodMembership
from fastsim_ext.state.pod_table cimport Slot, WorkTable


cdef int64_t RAISE = 2147483648      # makes the lowest priority 0, so that a victim more never costs less


cdef inline bint cheaper(const Cost* a, const Cost* b) noexcept nogil:
    if a.broken != b.broken:
        return a.broken < b.broken
    if a.highest != b.highest:
        return a.highest < b.highest
    if a.total != b.total:
        return a.total < b.total
    return a.first > b.first


cdef class PreemptionPlan:
    """Looks for the node on which room is made at the least cost; ties go to the smallest position."""

    def __init__(self, ConstraintTable constraints, WorkTable work, PodMembership membership):
        self.constraints, self.work, self.membership = constraints, work, membership

    def __dealloc__(self):
        free(self.lower)
        free(self.victims)
        free(self.spare)
        free(self.failures)
        free(self.budgets_of)
        free(self.budgets)
        free(self.listed)

    def add_budgets(self, int cls, budgets):
        """Disruption budgets of the pods of a class: number, and how many pods with the budget are to keep running."""
        cdef int32_t which, least, known = self.n_budgets
        if cls >= self.budget_classes:
            self.budgets_of = <ClassBudgets*> memory_grown(self.budgets_of, 2 * cls + 64, sizeof(ClassBudgets))
            memset(&self.budgets_of[self.budget_classes], 0,
                   (2 * cls + 64 - self.budget_classes) * sizeof(ClassBudgets))
            self.budget_classes = 2 * cls + 64
        self.budgets_of[cls].first, self.budgets_of[cls].count = self.n_listed, len(budgets)
        self.listed = <int32_t*> memory_grown(self.listed, self.n_listed + len(budgets) + 1, sizeof(int32_t))
        for which, least in budgets:
            if which >= self.n_budgets:
                self.n_budgets = which + 1
                self.budgets = <Budget*> memory_grown(self.budgets, self.n_budgets, sizeof(Budget))
                memset(&self.budgets[known], 0, (self.n_budgets - known) * sizeof(Budget))
                known = self.n_budgets
            self.budgets[which].least = least
            self.listed[self.n_listed] = which
            self.n_listed += 1

    cdef void count(self, int cls, int sign) noexcept nogil:
        """A pod of a class starts (1) or stops (-1)."""
        cdef int k
        if cls < self.budget_classes:
            for k in range(self.budgets_of[cls].first, self.budgets_of[cls].first + self.budgets_of[cls].count):
                self.budgets[self.listed[k]].running += sign

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
            cost.broken = self.broken_first() if self.n_budgets else 0
            cost.broken = self.let_return(&view, cls, cost.broken)
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
        cdef int32_t* spare
        if lower != NULL:
            self.lower = lower
            spare = <int32_t*> realloc(self.spare, room * sizeof(int32_t))
            if spare != NULL:
                self.spare = spare
                victims = <int32_t*> realloc(self.victims, room * sizeof(int32_t))
        if victims == NULL:
            with gil:
                raise MemoryError()
        self.victims, self.room = victims, room
        return 0

    cdef int32_t broken_first(self) noexcept nogil:
        """Put pods that break a budget before the others in ``lower``, each part in its order; their number."""
        cdef int32_t k, cls, broken = 0, others = 0
        cdef Budget* budget
        cdef int b
        cdef bint breaks
        for k in range(self.n_lower):
            cls = self.work.slots[self.lower[k]].cls
            if cls < self.budget_classes:
                for b in range(self.budgets_of[cls].first, self.budgets_of[cls].first + self.budgets_of[cls].count):
                    budget = &self.budgets[self.listed[b]]
                    budget.left = max(budget.running - budget.least, 0)
        for k in range(self.n_lower):
            cls, breaks = self.work.slots[self.lower[k]].cls, False
            if cls < self.budget_classes:
                for b in range(self.budgets_of[cls].first, self.budgets_of[cls].first + self.budgets_of[cls].count):
                    budget = &self.budgets[self.listed[b]]
                    budget.left -= 1
                    breaks = breaks or budget.left < 0
            if breaks:
                self.lower[broken] = self.lower[k]
                broken += 1
            else:
                self.spare[others] = self.lower[k]
                others += 1
        for k in range(others):
            self.lower[broken + k] = self.spare[k]
        return broken

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

    cdef int32_t let_return(self, NodeView* view, int cls, int32_t first) noexcept nogil:
        """Put pods back while the preempting pod still fits; ``lower`` keeps the others in their order of importance.

        The ``first`` pods come back first; how many of them do not.
        """
        cdef int32_t k, at
        cdef int32_t left = 0
        cdef int32_t broken = 0
        for k in range(self.n_lower):
            self.shift(view, self.lower[k], cls, -1)
            if self.constraints.failed_check(view, cls) != 0:
                self.shift(view, self.lower[k], cls, 1)
                broken += k < first
                self.lower[left] = self.lower[k]
                left += 1
        self.n_lower = left
        for k in range(broken, left if broken else 0):
            at, left = self.lower[k], k
            while left > 0 and self.returns_before(at, self.lower[left - 1]):
                self.lower[left] = self.lower[left - 1]
                left -= 1
            self.lower[left] = at
        return broken

    cdef int total_cost(self, Cost* cost) noexcept nogil:
        """Cost of stopping the pods in ``lower``; returns their number."""
        cdef int32_t k
        cdef const Slot* s
        cost.total, cost.first = 0, INFINITY
        for k in range(self.n_lower):
            s = &self.work.slots[self.lower[k]]
            if k == 0:
                cost.highest = s.priority      # they stand by falling priority
            cost.total += s.priority + RAISE
            if s.priority == cost.highest and s.start < cost.first:
                cost.first = s.start
        return self.n_lower
