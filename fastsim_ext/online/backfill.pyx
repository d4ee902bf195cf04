"""Reservations for waiting pods, from estimated durations.

EASY: only the first pod in the line that does not fit has a reservation. Conservative backfilling: every waiting pod
has one, made in the order of the line. A pod that has run longer than its estimate is taken to end now.
"""

from libc.math cimport INFINITY, isnan
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from fastsim_ext.online.earliest_fit cimport Bound, EarliestFit
from fastsim_ext.online.free_forecast cimport FreeForecast, Reservation
from fastsim_ext.online.node_constraints cimport ConstraintTable, NodeView
from fastsim_ext.select.scan cimport Choice
from fastsim_ext.state.pod_membership cimport Member, PodMembership
from fastsim_ext.state.pod_table cimport Slot, WorkTable


cdef inline bint no_better(const Bound* bound, int n, double lasts, double now, const Reservation* best) noexcept nogil:
    """Whether the bounds of node ``n`` rule out an earlier start than ``best``."""
    cdef double start = max(bound.first if lasts <= bound.gap else bound.last, now)
    if start == INFINITY or start > best.start:
        return True
    return start == best.start and n > best.node and (not best.waits or start > now)


cdef class Backfill:
    """Reservations of waiting pods on the estimated states of nodes."""

    def __init__(self, ConstraintTable constraints, WorkTable work, PodMembership membership):
        self.constraints, self.work, self.membership = constraints, work, membership
        self.forecast = FreeForecast(constraints, work, membership)
        self.earliest_fit = EarliestFit(self.forecast)
        self.valid_moves = -1
        self.stale = <bint*> calloc(max(constraints.nodes.count, 1), sizeof(bint))
        self.stale_nodes = <int32_t*> calloc(max(constraints.nodes.count, 1), sizeof(int32_t))
        if self.stale == NULL or self.stale_nodes == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.running.items)
        free(self.latest)
        free(self.walk_of)
        free(self.stale)
        free(self.stale_nodes)

    cdef double estimated_s(self, int32_t slot) noexcept nogil:
        """Estimated seconds that a waiting pod will run."""
        cdef const Member* m = &self.membership.members[slot]
        return INFINITY if isnan(m.est_left) else max(0.0, m.est_left + m.restart)

    cdef int insert_end(self, double t, int64_t seq, int cls, uint64_t gpus, int32_t group) except -1 nogil:
        """Put an end among those of a node, by time and arrival."""
        cdef Changes* of = &self.running
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
        of.items[k].gpus, of.items[k].group = gpus, group
        of.count += 1
        return 0

    cdef int list_ends(self, int n, double now) except -1 nogil:
        """List the estimated ends of the pods on node ``n``; those that never end are left out."""
        cdef int32_t at = self.membership.first__n[n]
        cdef const Slot* s
        cdef const Member* m
        self.running.count = 0
        while at >= 0:
            s, m = &self.work.slots[at], &self.membership.members[at]
            if not isnan(m.est_left):
                self.insert_end(self.forecast.end_s(at, now), s.seq, s.cls, s.gpus, m.group)
            at = m.next_on_node
        return 0

    cdef int head(self, int32_t slot, double now, Reservation* out) except -1 nogil:
        """When and where one pod after another ending makes room for a pod first; ties: the smallest position."""
        cdef int cls = self.work.slots[slot].cls
        cdef int n, k
        cdef const Changes* of
        cdef NodeView view
        out.slot, out.node, out.start = slot, -1, INFINITY
        for n in range(self.constraints.nodes.count):
            if not self.constraints.nodes.present[n] or self.constraints.never_fits(n, cls):
                continue
            self.list_ends(n, now)
            of = &self.running
            if of.count == 0 or of.items[0].t >= out.start:
                continue
            self.constraints.view(n, cls, &view)
            for k in range(of.count):
                if of.items[k].t >= out.start:
                    break
                self.constraints.shift(&view, of.items[k].cls, of.items[k].gpus, of.items[k].group, cls, 1)
                if self.constraints.failed_check(&view, cls) == 0:
                    out.node, out.start = n, of.items[k].t
                    break
        return 0

    cdef bint undisturbed(self, const Reservation* head, int32_t slot, const Choice* choice, double now,
                          double end) except -1 nogil:
        """Whether a pod that runs on the chosen devices until ``end`` leaves the head's reservation as it is."""
        cdef int cls = self.work.slots[head.slot].cls
        cdef int k
        cdef const Changes* of
        cdef NodeView view
        if head.node < 0 or choice.node != head.node or end <= head.start:
            return True
        self.list_ends(head.node, now)
        of = &self.running
        self.constraints.view(head.node, cls, &view)
        self.constraints.shift(&view, self.work.slots[slot].cls, choice.gpus, self.membership.members[slot].group,
                               cls, -1)
        for k in range(of.count):
            if of.items[k].t <= head.start:
                self.constraints.shift(&view, of.items[k].cls, of.items[k].gpus, of.items[k].group, cls, 1)
        return self.constraints.failed_check(&view, cls) == 0

    cdef bint holds_unchanged(self, double now) noexcept nogil:
        """Whether all reservations still hold: no pod came or went since, and none is overdue.

        Free amounts then change only later than now, at the same times as before; pods that could not start still wait.
        """
        return self.valid_moves == self.membership.moves and not self.forecast.overdue(now)

    cdef int renew(self, double now) except -1 nogil:
        """Drop all reservations and rebuild the forecast from the running pods."""
        cdef int n
        self.forecast.renew(now)
        self.earliest_fit.renew(now)
        self.walk += 1
        self.valid_moves = self.membership.moves
        for n in range(self.n_stale):
            self.stale[self.stale_nodes[n]] = False
        self.n_stale = 0
        for n in range(self.constraints.nodes.count):
            if self.forecast.changed[n] or self.constraints.counts_groups:
                self.mark_stale(n)
        return 0

    cdef const Reservation* last_place(self, int32_t slot) noexcept nogil:
        """The place of a pod in the last complete walk along the line; NULL if it had none."""
        return &self.latest[slot] if slot < self.room and self.walk_of[slot] == self.walk - 1 else NULL

    cdef void mark_stale(self, int n) noexcept nogil:
        """Mark node ``n``: from here on in the line its places of the last walk may be wrong."""
        if n >= 0 and not self.stale[n]:
            self.stale[n] = True
            self.stale_nodes[self.n_stale] = n
            self.n_stale += 1

    cdef int record_place(self, int32_t slot, const Reservation* place) except -1 nogil:
        """Record the place of a pod (NULL: none was searched), and mark nodes as stale where it has changed."""
        cdef const Reservation* old = self.last_place(slot)
        cdef int32_t room = 2 * slot + 64
        cdef void* grown
        if (old == NULL or place == NULL or place.node != old.node or place.start != old.start
                or place.end != old.end or place.gpus != old.gpus):
            self.mark_stale(old.node if old != NULL else -1)
            self.mark_stale(place.node if place != NULL else -1)
        if slot >= self.room:
            grown = realloc(self.latest, room * sizeof(Reservation))
            if grown != NULL:
                self.latest = <Reservation*> grown
                grown = realloc(self.walk_of, room * sizeof(int64_t))
            if grown == NULL:
                with gil:
                    raise MemoryError()
            self.walk_of = <int64_t*> grown
            while self.room < room:
                self.walk_of[self.room] = -1
                self.room += 1
        self.walk_of[slot] = -1
        if place != NULL and place.waits:
            self.latest[slot], self.walk_of[slot] = place[0], self.walk
        return 0

    cdef int started(self, int32_t slot, int n, double now) except -1 nogil:
        """A pod has started on node ``n`` during the walk.

        Reservations made before it on that node keep their time, but might now take other devices.
        """
        cdef int32_t k
        self.forecast.started(slot, n, now)
        if self.forecast.end_s(slot, now) <= now:
            self.mark_stale(n)    # a reservation of no length holds nothing, a running pod does
        if self.valid_moves >= 0:
            self.valid_moves = self.membership.moves
        for k in range(self.forecast.n_reservations):
            if self.forecast.reservations[k].node == n:
                self.valid_moves = -1
        return 0

    cdef int earliest(self, int32_t slot, double now, Reservation* out) except -1 nogil:
        """The earliest place beside all reservations made; at once before later, then the smallest position.

        Where no node is stale, no place is better than that of the last walk, and that one is still there.
        """
        cdef int cls = self.work.slots[slot].cls
        cdef double lasts = self.estimated_s(slot)
        cdef const Reservation* old = self.last_place(slot)
        cdef Bound* bounds
        cdef int k
        out.slot, out.node, out.start, out.end, out.waits, out.gpus = slot, -1, INFINITY, INFINITY, True, 0
        if old == NULL or old.start < now:
            return self.earliest_anywhere(cls, lasts, now, out)
        if old.node >= 0 and not self.stale[old.node]:
            out[0] = old[0]
            out.waits = old.start > now
        self.earliest_fit.bounds(cls, &bounds)
        if old.node >= 0 and out.node < 0:
            self.consider(old.node, cls, lasts, now, bounds, out)
        for k in range(self.n_stale):
            if self.stale_nodes[k] != old.node:
                self.consider(self.stale_nodes[k], cls, lasts, now, bounds, out)
        if old.node >= 0 and (out.start > old.start or (out.start == old.start and (
                (out.waits and old.start == now) or out.node > old.node))):
            for k in range(self.constraints.nodes.count):
                if not self.stale[k]:
                    self.consider(k, cls, lasts, now, bounds, out)
        return 0

    cdef int earliest_anywhere(self, int cls, double lasts, double now, Reservation* out) except -1 nogil:
        """Try every node, first the one with the soonest bound: then the bounds rule out most of the others."""
        cdef double least = INFINITY
        cdef double start
        cdef int n
        cdef int soonest = -1
        cdef Bound* bounds
        self.earliest_fit.bounds(cls, &bounds)
        if bounds != NULL:
            for n in range(self.constraints.nodes.count):
                start = bounds[n].first if lasts <= bounds[n].gap else bounds[n].last
                if start < least:
                    least, soonest = start, n
            if soonest >= 0:
                self.consider(soonest, cls, lasts, now, bounds, out)
        for n in range(self.constraints.nodes.count):
            if n != soonest:
                self.consider(n, cls, lasts, now, bounds, out)
        return 0

    cdef int consider(self, int n, int cls, double lasts, double now, Bound* bounds,
                      Reservation* out) except -1 nogil:
        """Take the earliest place on node ``n`` if it is the best so far."""
        if bounds != NULL:
            if no_better(&bounds[n], n, lasts, now, out):
                return 0
            self.earliest_fit.sharpen(cls, &bounds[n], n)
            if no_better(&bounds[n], n, lasts, now, out):
                return 0
        if not self.constraints.nodes.present[n] or self.constraints.never_fits(n, cls):
            return 0
        return self.forecast.earliest(n, cls, lasts, now, out)

    cdef bint allowed(self, int32_t slot, const Choice* choice, double now) except -1 nogil:
        """Whether a pod may start now on the chosen devices without touching any reservation."""
        cdef uint64_t gpus
        if not self.forecast.lasting_devices(choice.node, self.estimated_s(slot), self.work.slots[slot].cls, now,
                                             &gpus):
            return False
        return choice.gpus & ~gpus == 0

    cdef int reserve_place(self, const Reservation* reservation) except -1 nogil:
        """Add a reservation for the rest of the walk, or record that there is none."""
        self.record_place(reservation.slot, reservation)
        return self.forecast.reserve_place(reservation) if reservation.node >= 0 else 0
