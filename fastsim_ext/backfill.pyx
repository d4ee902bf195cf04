"""Reservations for waiting pods, from the durations the scheduler is told.

EASY: only the first pod in the line that does not fit has a reservation. Conservative backfilling: every waiting pod
has one, made in the order of the line. A pod that has run longer than was told is believed to end now.
"""

from libc.math cimport INFINITY, isnan
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from fastsim_ext.demand cimport DemandTable, Look
from fastsim_ext.roster cimport Member, Roster
from fastsim_ext.select cimport Choice
from fastsim_ext.work cimport Slot, WorkTable


cdef class Backfill:
    """Looks ahead on one node after another."""

    def __init__(self, DemandTable demand, WorkTable work, Roster roster):
        self.demand, self.work, self.roster = demand, work, roster
        self.known_moves = -1
        self.lists = <Changes*> calloc(max(demand.nodes.count, 1), sizeof(Changes))
        if self.lists == NULL:
            raise MemoryError()

    def __dealloc__(self):
        cdef int n
        if self.lists != NULL:
            for n in range(self.demand.nodes.count):
                free(self.lists[n].items)
        free(self.lists)
        free(self.made)

    cdef double told(self, int32_t slot) noexcept nogil:
        """Seconds that a waiting pod is believed to run."""
        cdef const Member* m = &self.roster.members[slot]
        return INFINITY if isnan(m.est_left) else max(0.0, m.est_left + m.restart)

    cdef int note(self, int n, double t, int64_t seq, int cls, uint64_t gpus, int32_t group, int sign) except -1 nogil:
        """Put a change among those of a node, by time and arrival."""
        cdef Changes* of = &self.lists[n]
        cdef Change* grown
        cdef int32_t k = of.count
        if k == of.room:
            grown = <Change*> realloc(of.items, (2 * k + 16) * sizeof(Change))
            if grown == NULL:
                with gil:
                    raise MemoryError()
            of.items, of.room = grown, 2 * k + 16
        while k > 0 and (of.items[k - 1].t > t or (of.items[k - 1].t == t and of.items[k - 1].seq > seq)):
            of.items[k] = of.items[k - 1]
            k -= 1
        of.items[k].t, of.items[k].seq, of.items[k].cls = t, seq, cls
        of.items[k].gpus, of.items[k].group, of.items[k].sign = gpus, group, sign
        of.count += 1
        return 0

    cdef int ends(self, int n, double now) except -1 nogil:
        """List the believed ends of the pods on node ``n``; those that never end are left out."""
        cdef int32_t at = self.roster.first__n[n]
        cdef const Slot* s
        cdef const Member* m
        cdef double t
        self.lists[n].count = 0
        while at >= 0:
            s, m = &self.work.slots[at], &self.roster.members[at]
            if not isnan(m.est_left):
                t = max(s.began + (m.est_left + m.restart), now)
                self.note(n, t, s.seq, s.cls, s.gpus, m.group, 1)
            at = m.following
        return 0

    cdef int head(self, int32_t slot, double now, Reservation* out) except -1 nogil:
        """When and where one pod after another ending makes room for a pod first; ties: the smallest position."""
        cdef int cls = self.work.slots[slot].cls
        cdef int n, k
        cdef const Changes* of
        cdef Look look
        out.slot, out.node, out.start = slot, -1, INFINITY
        for n in range(self.demand.nodes.count):
            if not self.demand.nodes.present[n] or self.demand.hopeless(n, cls):
                continue
            self.ends(n, now)
            of = &self.lists[n]
            if of.count == 0 or of.items[0].t >= out.start:
                continue
            self.demand.look(n, cls, &look)
            for k in range(of.count):
                if of.items[k].t >= out.start:
                    break
                self.demand.shift(&look, of.items[k].cls, of.items[k].gpus, of.items[k].group, cls, 1)
                if self.demand.stage(&look, cls) == 0:
                    out.node, out.start = n, of.items[k].t
                    break
        return 0

    cdef bint undisturbed(self, const Reservation* head, int32_t slot, const Choice* choice, double now,
                          double end) except -1 nogil:
        """Whether a pod that runs on the chosen devices until ``end`` leaves the head's reservation as it is."""
        cdef int cls = self.work.slots[head.slot].cls
        cdef int k
        cdef const Changes* of
        cdef Look look
        if head.node < 0 or choice.node != head.node or end <= head.start:
            return True
        self.ends(head.node, now)
        of = &self.lists[head.node]
        self.demand.look(head.node, cls, &look)
        self.demand.shift(&look, self.work.slots[slot].cls, choice.gpus, self.roster.members[slot].group, cls, -1)
        for k in range(of.count):
            if of.items[k].t <= head.start:
                self.demand.shift(&look, of.items[k].cls, of.items[k].gpus, of.items[k].group, cls, 1)
        return self.demand.stage(&look, cls) == 0

    cdef bint same(self, double now) noexcept nogil:
        """Whether every promise made would be made again: nobody has come or gone since, and nobody is overdue.

        Then free amounts change only later than now, at the same times as before; who could not start still cannot.
        """
        cdef int n
        if self.known_moves != self.roster.moves:
            return False
        for n in range(self.demand.nodes.count):
            if self.lists[n].count > 0 and self.lists[n].items[0].t <= now:
                return False
        return True

    cdef int renew(self, double now) except -1 nogil:
        """Forget all promises and look at the running pods again."""
        cdef int n
        self.n_made = 0
        for n in range(self.demand.nodes.count):
            self.ends(n, now)
        self.known_moves = self.roster.moves
        return 0

    cdef int started(self, int n, double now) except -1 nogil:
        """A pod has started on node ``n`` during the walk."""
        cdef int32_t k
        self.ends(n, now)
        for k in range(self.n_made):
            if self.made[k].node == n:
                self.expect(&self.made[k])
        self.known_moves = self.roster.moves
        return 0

    cdef int expect(self, const Reservation* r) except -1 nogil:
        """Note that a pod with a reservation will come and go."""
        cdef const Slot* s = &self.work.slots[r.slot]
        cdef int32_t group = self.roster.members[r.slot].group
        self.note(r.node, r.start, s.seq, s.cls, r.gpus, group, -1)
        if r.end < INFINITY:
            self.note(r.node, r.end, s.seq, s.cls, r.gpus, group, 1)
        return 0

    cdef int apply(self, Look* look, int at, int cls) noexcept nogil:
        """Let everything of one time happen; answers the number of the next change."""
        cdef const Changes* of = &self.lists[look.n]
        cdef double t = of.items[at].t
        while at < of.count and of.items[at].t == t:
            self.demand.shift(look, of.items[at].cls, of.items[at].gpus, of.items[at].group, cls, of.items[at].sign)
            at += 1
        return at

    cdef bint floor(self, const Look* state, int at, double start, double lasts, int cls, Look* low) noexcept nogil:
        """The least of everything free from a state on for some seconds; whether the class fits into it."""
        cdef Look then
        cdef int g
        cdef const Changes* of = &self.lists[state.n]
        if self.demand.stage(state, cls) != 0:
            return False
        then = state[0]
        low[0] = state[0]
        while at < of.count and of.items[at].t < start + lasts:
            at = self.apply(&then, at, cls)
            low.cpu_left, low.mem_left = min(low.cpu_left, then.cpu_left), min(low.mem_left, then.mem_left)
            low.pods, low.group_pods = max(low.pods, then.pods), max(low.group_pods, then.group_pods)
            for g in range(self.demand.nodes.num_gpu[low.n]):
                low.gpu_left[g] = min(low.gpu_left[g], then.gpu_left[g])
                low.gpu_mem_left[g] = min(low.gpu_mem_left[g], then.gpu_mem_left[g])
            for g in range(self.demand.n_extra):
                low.extra_left[g] = min(low.extra_left[g], then.extra_left[g])
            if self.demand.stage(low, cls) != 0:
                return False
        return True

    cdef int earliest(self, int32_t slot, double now, Reservation* out) except -1 nogil:
        """The earliest place beside all reservations made; at once before later, then the smallest position."""
        cdef int cls = self.work.slots[slot].cls
        cdef double lasts = self.told(slot)
        cdef double start
        cdef int n, at
        cdef Look state, low
        out.slot, out.node, out.start, out.waits = slot, -1, INFINITY, True
        for n in range(self.demand.nodes.count):
            if not self.demand.nodes.present[n] or self.demand.hopeless(n, cls):
                continue
            self.demand.look(n, cls, &state)
            at, start = 0, now
            while True:
                if start > out.start or (start == out.start and (not out.waits or at > 0)):
                    break    # no sooner than what was found
                if self.floor(&state, at, start, lasts, cls, &low):
                    out.node, out.start, out.waits, out.end = n, start, at > 0, start + lasts
                    out.gpus = self.demand.tightest(&low, cls)
                    break
                if at == self.lists[n].count:
                    break
                start = self.lists[n].items[at].t
                at = self.apply(&state, at, cls)
        return 0

    cdef bint allowed(self, int32_t slot, const Choice* choice, double now) except -1 nogil:
        """Whether a pod may start now on the chosen devices without touching any reservation."""
        cdef int cls = self.work.slots[slot].cls
        cdef Look state, low
        self.demand.look(choice.node, cls, &state)
        if not self.floor(&state, 0, now, self.told(slot), cls, &low):
            return False
        return choice.gpus & ~self.demand.fitting(&low, cls) == 0

    cdef int promise(self, const Reservation* given) except -1 nogil:
        """Keep a reservation for the rest of the walk."""
        cdef Reservation* grown
        if self.n_made == self.made_room:
            grown = <Reservation*> realloc(self.made, (2 * self.made_room + 64) * sizeof(Reservation))
            if grown == NULL:
                with gil:
                    raise MemoryError()
            self.made, self.made_room = grown, 2 * self.made_room + 64
        self.made[self.n_made] = given[0]
        self.n_made += 1
        return self.expect(given)
