"""Reservations for waiting pods, from estimated durations.

EASY: only the first pod in the line that does not fit, the head, has a reservation. When a node first has room for it
is kept until pods come to the node or leave it. Conservative backfilling: every waiting pod has one, made in the order
of the line. A pod that has run longer than its estimate is taken to end now.
"""

from libc.math cimport INFINITY, isnan
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from fastsim_ext.online.earliest_fit cimport Bound, EarliestFit
from fastsim_ext.online.free_forecast cimport FreeForecast, Reservation
from fastsim_ext.online.node_constraints cimport ConstraintTable, NodeView
from fastsim_ext.select.scan cimport Choice
from fastsim_ext.select.waiting_line cimport FreeRoom
from fastsim_ext.state.pod_membership cimport Member, PodMembership
from fastsim_ext.state.pod_table cimport Slot, WorkTable
from fastsim_ext.types cimport FULL, Pod


cdef inline bint no_better(const Bound* bound, int n, double lasts, double now, const Reservation* best) noexcept nogil:
    """Whether the bounds of node ``n`` rule out an earlier start than ``best``."""
    cdef double start = max(bound.first if lasts <= bound.gap else bound.last, now)
    if start == INFINITY or start > best.start:
        return True
    return start == best.start and n > best.node and (not best.waits or start > now)


cdef class Backfill:
    """Reservations of waiting pods on the estimated states of nodes."""

    def __init__(self, ConstraintTable constraints, WorkTable work, PodMembership membership):
        cdef int32_t n
        self.constraints, self.work, self.membership = constraints, work, membership
        self.forecast = FreeForecast(constraints, work, membership)
        self.earliest_fit = EarliestFit(self.forecast)
        self.valid_moves = -1
        self.stale = <bint*> calloc(max(constraints.nodes.count, 1), sizeof(bint))
        self.stale_nodes = <int32_t*> calloc(max(constraints.nodes.count, 1), sizeof(int32_t))
        self.head_slot, self.leaves = -1, 1
        while self.leaves < constraints.nodes.count:
            self.leaves *= 2
        self.first_ends = <double*> calloc(2 * self.leaves, sizeof(double))
        self.moved = <bint*> calloc(max(constraints.nodes.count, 1), sizeof(bint))
        self.moved_nodes = <int32_t*> calloc(max(constraints.nodes.count, 1), sizeof(int32_t))
        if (self.stale == NULL or self.stale_nodes == NULL or self.first_ends == NULL or self.moved == NULL
                or self.moved_nodes == NULL):
            raise MemoryError()
        for n in range(2 * self.leaves):
            self.first_ends[n] = INFINITY

    def __dealloc__(self):
        free(self.running.items)
        free(self.latest)
        free(self.walk_of)
        free(self.stale)
        free(self.stale_nodes)
        free(self.first_ends)
        free(self.moved)
        free(self.moved_nodes)

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

    cdef void note_change(self, int n) noexcept nogil:
        """A pod has come to node ``n`` or has left it."""
        if not self.moved[n]:
            self.moved[n] = True
            self.moved_nodes[self.n_moved] = n
            self.n_moved += 1

    cdef int first_end(self, int n, int cls, double now, double* out) except -1 nogil:
        """The first end of a pod on node ``n`` that makes room for the class; infinite if none does."""
        cdef int k
        cdef const Changes* of = &self.running
        cdef NodeView view
        out[0] = INFINITY
        if not self.constraints.nodes.present[n] or self.constraints.never_fits(n, cls):
            return 0
        self.list_ends(n, now)
        self.constraints.view(n, cls, &view)
        for k in range(of.count):
            self.constraints.shift(&view, of.items[k].cls, of.items[k].gpus, of.items[k].group, cls, 1)
            if self.constraints.failed_check(&view, cls) == 0:
                out[0] = of.items[k].t
                return 0
        return 0

    cdef int renew_end(self, int n, int cls, double now) except -1 nogil:
        """Work out the first end of node ``n`` again, and the least ones that it may change."""
        cdef int32_t cell = self.leaves + n
        self.first_end(n, cls, now, &self.first_ends[cell])
        while cell > 1:
            cell //= 2
            self.first_ends[cell] = min(self.first_ends[2 * cell], self.first_ends[2 * cell + 1])
        return 0

    cdef int head(self, int32_t slot, double now, Reservation* out) except -1 nogil:
        """When and where one pod after another ending makes room for a pod first; ties: the smallest position.

        The first such end of a node is kept until pods come to it or leave it. Ends that are past count as now. Under
        rules of spread it depends on the other nodes and on the order of the pods that are overdue, too.
        """
        cdef int cls = self.work.slots[slot].cls
        cdef bint spreads = self.constraints.spread.n_rules > 0
        cdef int32_t cell = 1
        cdef int n
        if spreads or slot != self.head_slot or self.membership.members[slot].joined != self.head_joined:
            self.head_slot, self.head_joined = slot, self.membership.members[slot].joined
            self.beside_moves = -1
            for n in range(self.constraints.nodes.count):
                self.note_change(n)
        while self.n_moved > 0:
            n = self.moved_nodes[self.n_moved - 1]
            self.renew_end(n, cls, now if spreads else -INFINITY)
            self.n_moved -= 1
            self.moved[n] = False
        out.slot, out.node, out.start = slot, -1, max(self.first_ends[1], now)
        if out.start < INFINITY:
            while cell < self.leaves:
                cell = 2 * cell + (self.first_ends[2 * cell] > out.start)
            out.node = cell - self.leaves
        return 0

    cdef void view_at_start(self, const Reservation* head, double now, NodeView* view) noexcept nogil:
        """The head's node when its reservation begins, with the pods that run now and are estimated to end later."""
        cdef int cls = self.work.slots[head.slot].cls
        cdef int32_t at = self.membership.first__n[head.node]
        cdef const Slot* s
        self.constraints.view(head.node, cls, view)
        while at >= 0:
            if self.forecast.end_s(at, now) <= head.start:
                s = &self.work.slots[at]
                self.constraints.shift(view, s.cls, s.gpus, self.membership.members[at].group, cls, 1)
            at = self.membership.members[at].next_on_node

    cdef bint undisturbed(self, const Reservation* head, int32_t slot, const Choice* choice, double now,
                          double end) except -1 nogil:
        """Whether a pod that runs on the chosen devices until ``end`` leaves the head's reservation as it is."""
        cdef int cls = self.work.slots[head.slot].cls
        cdef NodeView view
        if head.node < 0 or choice.node != head.node or end <= head.start:
            return True
        self.view_at_start(head, now, &view)
        self.constraints.shift(&view, self.work.slots[slot].cls, choice.gpus, self.membership.members[slot].group,
                               cls, -1)
        return self.constraints.failed_check(&view, cls) == 0

    cdef const FreeRoom* room_beside(self, const Reservation* head, double now) noexcept nogil:
        """No less than a pod may take of the head's node if it lasts longer than until the reservation begins.

        One that shares a device takes it of a device that the head does not need, or leaves the head's share of it.
        """
        cdef int cls = self.work.slots[head.slot].cls
        cdef const Pod* pod = &self.work.classes[cls]
        cdef FreeRoom* out = &self.beside
        cdef int n = head.node
        cdef int g, spare = -pod.num_gpu
        cdef int64_t left
        cdef uint64_t serving = 0
        cdef NodeView view
        if (out.node == n and self.beside_s == head.start and self.beside_moves == self.membership.moved__n[n]):
            return out
        self.beside_s, self.beside_moves = head.start, self.membership.moved__n[n]
        self.view_at_start(head, now, &view)
        if pod.num_gpu > 0:
            serving = self.constraints.fitting(&view, cls)
        for g in range(self.constraints.nodes.num_gpu[n]):
            spare += (serving >> g) & 1
        out.node, out.until = n, INFINITY
        out.cpu = min(self.constraints.nodes.cpu_left[n], view.cpu_left - pod.cpu)
        out.mem = min(self.constraints.nodes.mem_left[n], view.mem_left - pod.mem)
        if view.pods + 1 >= self.constraints.nodes.max_pods[n]:
            out.cpu = -1
        out.gpu[0], out.gpu[1], out.gpu[2] = 0, 0, spare
        for g in range(self.constraints.nodes.num_gpu[n]):
            left = self.constraints.nodes.gpu_left__ng[n, g]
            if not (serving >> g) & 1:
                out.gpu[2] += left == FULL
            elif spare == 0:
                left = min(left, view.gpu_left[g] - pod.milli)
            out.gpu[1] = max(out.gpu[1], left)
        out.gpu[2] = min(out.gpu[2], self.constraints.nodes.records[n].idle)
        return out

    cdef int verify(self) except -1:
        """The ends that are kept for a head that still waits are those that would be found again."""
        cdef int32_t slot = self.head_slot
        cdef double end
        cdef int n
        for n in range(self.constraints.nodes.count if slot >= 0 and self.work.slots[slot].node < 0 else 0):
            if (not self.moved[n] and not self.constraints.spread.n_rules and self.work.slots[slot].seq >= 0
                    and self.membership.members[slot].joined == self.head_joined):
                self.first_end(n, self.work.slots[slot].cls, -INFINITY, &end)
                assert end == self.first_ends[self.leaves + n], f"node {n} has room at another time"
        return 0

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
        cdef double lasts = self.membership.estimated_s(slot)
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
        if not self.forecast.lasting_devices(choice.node, self.membership.estimated_s(slot),
                                             self.work.slots[slot].cls, now, &gpus):
            return False
        return choice.gpus & ~gpus == 0

    cdef int reserve_place(self, const Reservation* reservation) except -1 nogil:
        """Add a reservation for the rest of the walk, or record that there is none."""
        self.record_place(reservation.slot, reservation)
        return self.forecast.reserve_place(reservation) if reservation.node >= 0 else 0
