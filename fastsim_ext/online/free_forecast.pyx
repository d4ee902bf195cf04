"""Forecast of the free amounts of every node, state by state.

Running pods end at their estimates, overdue ones now; pods with a reservation start and end as reserved. A state holds
until the next one begins; all changes at one time make one state.
"""

from libc.math cimport INFINITY, isnan
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy, memmove
from fastsim_ext.online.node_constraints cimport ClassConstraints, ConstraintTable, NodeView
from fastsim_ext.online.topology_spread cimport Skew
from fastsim_ext.state.pod_membership cimport Member, PodMembership
from fastsim_ext.state.pod_table cimport Slot, WorkTable
from fastsim_ext.types cimport Pod


cdef inline int bits(uint64_t gpus) noexcept nogil:
    """Devices of a set."""
    cdef int count = 0
    while gpus:
        gpus &= gpus - 1
        count += 1
    return count


cdef class FreeForecast:
    """The estimated states of every node, and the reservations that are part of them."""

    def __init__(self, ConstraintTable constraints, WorkTable work, PodMembership membership):
        cdef int n
        self.constraints, self.work, self.membership = constraints, work, membership
        self.nodes, self.width = constraints.nodes.count, constraints.nodes.width
        self.columns = GPU + 2 * self.width + constraints.n_extra
        self.bare = <NodeForecast*> calloc(max(self.nodes, 1), sizeof(NodeForecast))
        self.booked = <NodeForecast*> calloc(max(self.nodes, 1), sizeof(NodeForecast))
        self.version = <int64_t*> calloc(max(self.nodes, 1), sizeof(int64_t))
        self.revisions = <int64_t*> calloc(max(self.nodes, 1), sizeof(int64_t))
        self.moves_then = <int64_t*> calloc(max(self.nodes, 1), sizeof(int64_t))
        self.was_present = <bint*> calloc(max(self.nodes, 1), sizeof(bint))
        self.touched = <bint*> calloc(max(self.nodes, 1), sizeof(bint))
        self.changed = <bint*> calloc(max(self.nodes, 1), sizeof(bint))
        if (self.bare == NULL or self.booked == NULL or self.version == NULL or self.revisions == NULL
                or self.moves_then == NULL or self.was_present == NULL or self.touched == NULL or self.changed == NULL):
            raise MemoryError()
        for n in range(self.nodes):
            self.moves_then[n] = -1

    def __dealloc__(self):
        cdef int n
        for n in range(self.nodes):
            if self.bare != NULL:
                free(self.bare[n].t)
                free(self.bare[n].free)
            if self.booked != NULL:
                free(self.booked[n].t)
                free(self.booked[n].free)
        free(self.bare)
        free(self.booked)
        free(self.version)
        free(self.revisions)
        free(self.changed)
        free(self.fresh.t)
        free(self.fresh.free)
        free(self.moves_then)
        free(self.was_present)
        free(self.touched)
        free(self.reservations)

    cdef double end_s(self, int32_t slot, double now) noexcept nogil:
        """When a running pod is estimated to end; infinite if never."""
        cdef const Member* m = &self.membership.members[slot]
        return INFINITY if isnan(m.est_left) else max(self.work.slots[slot].began + (m.est_left + m.restart), now)

    cdef int renew(self, double now) except -1 nogil:
        """Drop all reservations, and rebuild nodes whose pods came, went or are overdue."""
        cdef int n
        cdef bint present
        self.n_reservations = 0
        for n in range(self.nodes):
            present = self.constraints.nodes.present[n]
            self.changed[n] = self.moves_then[n] < 0 or self.was_present[n] != present
            if (self.changed[n] or self.moves_then[n] != self.membership.moved__n[n]
                    or (self.bare[n].count > 1 and self.bare[n].t[1] <= now)):
                self.rebuilt(n, &self.fresh, now)
                self.changed[n] = self.changed[n] or not self.as_forecast(&self.bare[n], &self.fresh)
                self.revisions[n] += self.changed[n]
                self.bare[n], self.fresh = self.fresh, self.bare[n]
                self.moves_then[n], self.was_present[n] = self.membership.moved__n[n], present
            elif not self.touched[n]:
                continue
            copied(&self.booked[n], &self.bare[n], self.columns)
            self.touched[n] = False
            self.version[n] += 1
        return 0

    cdef bint as_forecast(self, const NodeForecast* then, const NodeForecast* now) noexcept nogil:
        """Whether the states from now on are as estimated then."""
        cdef int32_t past = 0
        cdef int32_t k
        while past + 1 < then.count and then.t[past + 1] <= now.t[0]:
            past += 1
        if then.count - past != now.count:
            return False
        for k in range(1, now.count):
            if then.t[past + k] != now.t[k]:
                return False
        return memcmp(&then.free[<int64_t> past * self.columns], now.free,
                      <int64_t> now.count * self.columns * sizeof(int64_t)) == 0

    cdef bint overdue(self, double now) noexcept nogil:
        """Whether an estimated end is due and has not come."""
        cdef int n
        for n in range(self.nodes):
            if self.booked[n].count > 1 and self.booked[n].t[1] <= now:
                return True
        return False

    cdef int rebuilt(self, int n, NodeForecast* of, double now) except -1 nogil:
        """The states of a node as its running pods end."""
        cdef int64_t* row
        cdef int32_t at = self.membership.first__n[n]
        cdef int32_t k
        cdef int g
        cdef double t
        widened(of, 1, self.columns)
        of.count, of.t[0] = 1, now
        row = of.free
        row[CPU], row[MEM] = self.constraints.nodes.cpu_left[n], self.constraints.nodes.mem_left[n]
        row[PODS] = self.constraints.nodes.max_pods[n] - self.constraints.nodes.pods[n]
        for g in range(self.width):
            row[GPU + g] = self.constraints.nodes.gpu_left__ng[n, g] if g < self.constraints.nodes.num_gpu[n] else 0
            row[GPU + self.width + g] = self.constraints.gpu_mem_left__ng[n, g]
        for g in range(self.constraints.n_extra):
            row[GPU + 2 * self.width + g] = self.constraints.extra_left__nr[n, g]
        while at >= 0:
            t = self.end_s(at, now)
            if t < INFINITY:
                k = self.split(of, t)
                self.shift(of, k, of.count, self.work.slots[at].cls, self.work.slots[at].gpus, 1)
            at = self.membership.members[at].next_on_node
        return 0

    cdef int32_t split(self, NodeForecast* of, double t) except -1 nogil:
        """The state that begins at ``t``, made if there is none yet; the real one of now is never it."""
        cdef int32_t k = of.count
        cdef int64_t width = self.columns
        while k > 1 and of.t[k - 1] > t:
            k -= 1
        if k > 1 and of.t[k - 1] == t:
            return k - 1
        widened(of, of.count + 1, self.columns)
        memmove(&of.t[k + 1], &of.t[k], (of.count - k) * sizeof(double))
        memmove(&of.free[(k + 1) * width], &of.free[k * width], (of.count - k) * width * sizeof(int64_t))
        memcpy(&of.free[k * width], &of.free[(k - 1) * width], width * sizeof(int64_t))
        of.t[k] = t
        of.count += 1
        return k

    cdef void shift(self, NodeForecast* of, int32_t first, int32_t end, int cls, uint64_t gpus,
                    int sign) noexcept nogil:
        """A pod goes from (1) or comes to (-1) the states from ``first`` to before ``end``."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef const ClassConstraints* rule = self.constraints.rule(cls)
        cdef int64_t* row
        cdef int32_t k
        cdef int g
        for k in range(first, end):
            row = &of.free[<int64_t> k * self.columns]
            row[CPU] += sign * pod.cpu
            row[MEM] += sign * pod.mem
            row[PODS] += sign
            for g in range(self.width):
                if (gpus >> g) & 1:
                    row[GPU + g] += sign * pod.milli
                    if rule != NULL:
                        row[GPU + self.width + g] += sign * rule.gpu_mem
            if rule != NULL:
                for g in range(self.constraints.n_extra):
                    row[GPU + 2 * self.width + g] += sign * rule.extra[g]

    cdef int occupy(self, int n, int32_t since, double end, int cls, uint64_t gpus) except -1 nogil:
        """A pod is there from a state on until ``end``."""
        cdef NodeForecast* of = &self.booked[n]
        cdef int32_t until = self.split(of, end) if end < INFINITY else of.count
        self.shift(of, since, until, cls, gpus, -1)
        self.version[n] += 1
        self.touched[n] = True
        return 0

    cdef int reserve_place(self, const Reservation* reservation) except -1 nogil:
        """Keep a reservation for the rest of the walk."""
        cdef Reservation* grown
        if self.n_reservations == self.reservation_room:
            grown = <Reservation*> realloc(self.reservations, (2 * self.reservation_room + 64) * sizeof(Reservation))
            if grown == NULL:
                with gil:
                    raise MemoryError()
            self.reservations, self.reservation_room = grown, 2 * self.reservation_room + 64
        self.reservations[self.n_reservations] = reservation[0]
        self.n_reservations += 1
        return self.occupy(reservation.node, self.split(&self.booked[reservation.node], reservation.start),
                           reservation.end,
                           self.work.slots[reservation.slot].cls, reservation.gpus)

    cdef int started(self, int32_t slot, int n, double now) except -1 nogil:
        """A pod has started on node ``n`` during the walk; the next one does not see the node as this one did."""
        cdef const Slot* s = &self.work.slots[slot]
        self.moves_then[n] = -1
        return self.occupy(n, 0, self.end_s(slot, now), s.cls, s.gpus)

    cdef bint fits(self, int n, int32_t k, int cls, double now, uint64_t* gpus) noexcept nogil:
        """Whether state ``k`` of a node has room for a pod of the class; ``gpus`` are the devices that serve it."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef const ClassConstraints* rule = self.constraints.rule(cls)
        cdef const int64_t* row = &self.booked[n].free[<int64_t> k * self.columns]
        cdef int g
        cdef Skew skew
        gpus[0] = 0
        if row[CPU] < pod.cpu or row[MEM] < pod.mem or row[PODS] < 1:
            return False
        if pod.num_gpu > 0:
            for g in range(self.constraints.nodes.num_gpu[n]):
                if row[GPU + g] >= pod.milli and (rule == NULL or row[GPU + self.width + g] >= rule.gpu_mem):
                    gpus[0] |= (<uint64_t> 1) << g
            if bits(gpus[0]) < pod.num_gpu:
                return False
        if rule != NULL:
            for g in range(self.constraints.n_extra):
                if row[GPU + 2 * self.width + g] < rule.extra[g]:
                    return False
            if rule.most >= 0 and self.group_pods(n, k, rule.group, now) + 1 > rule.most:
                return False
            # Rules of spread count pods of other nodes, too, so only the present is known.
            if k == 0 and self.constraints.spread.refuses(n, cls, NULL, &skew):
                return False
        return True

    cdef int group_pods(self, int n, int32_t k, int32_t group, double now) noexcept nogil:
        """Pods of a group on a node in one of its states."""
        cdef int32_t at = self.membership.first__n[n]
        cdef int32_t count = 0
        cdef double t = self.booked[n].t[k]
        while at >= 0:
            count += self.membership.members[at].group == group and (k == 0 or self.end_s(at, now) > t)
            at = self.membership.members[at].next_on_node
        if k > 0:
            for at in range(self.n_reservations):
                count += (self.reservations[at].node == n
                          and self.reservations[at].start <= t < self.reservations[at].end
                          and self.membership.members[self.reservations[at].slot].group == group)
        return count

    cdef int earliest(self, int n, int cls, double lasts, double now, Reservation* out) except -1 nogil:
        """The earliest place on node ``n``, if that is better than ``out``: sooner, at once, or at a smaller position.

        A state that has no room spoils every start before it that lasts until then, so it is never looked at twice.
        """
        cdef const NodeForecast* of = &self.booked[n]
        cdef int wanted = self.work.classes[cls].num_gpu
        cdef int32_t first = 0
        cdef int32_t k
        cdef double start
        cdef uint64_t gpus, here
        while first < of.count:
            start = now if first == 0 else of.t[first]
            if start > out.start or (start == out.start and (
                    (first > 0 and not out.waits) or ((first > 0) == out.waits and n > out.node))):
                return 0     # no better than what was found
            if not self.fits(n, first, cls, now, &gpus):
                first += 1
                continue
            k = first + 1
            while k < of.count and of.t[k] < start + lasts:
                if not self.fits(n, k, cls, now, &here):
                    first = k
                    break
                gpus &= here
                if bits(gpus) < wanted:
                    break
                k += 1
            else:
                out.node, out.start, out.waits, out.end = n, start, first > 0, start + lasts
                out.gpus = self.tightest(n, first, start, lasts, cls)
                return 0
            first += 1
        return 0

    cdef bint lasting_devices(self, int n, double lasts, int cls, double now, uint64_t* gpus) noexcept nogil:
        """Whether a pod that starts now finds room for so long; ``gpus`` are the devices that serve it all the time."""
        cdef const NodeForecast* of = &self.booked[n]
        cdef int32_t k = 1
        cdef uint64_t here
        if not self.fits(n, 0, cls, now, gpus):
            return False
        while k < of.count and of.t[k] < now + lasts:
            if not self.fits(n, k, cls, now, &here):
                return False
            gpus[0] &= here
            k += 1
        return True

    cdef uint64_t tightest(self, int n, int32_t k, double start, double lasts, int cls) noexcept nogil:
        """The devices with least left at the worst time from a state on, among those that serve the pod throughout."""
        cdef const NodeForecast* of = &self.booked[n]
        cdef const int64_t* row
        cdef NodeView low
        cdef int g
        cdef int32_t first = k
        low.n = n
        while k == first or (k < of.count and of.t[k] < start + lasts):
            row = &of.free[<int64_t> k * self.columns]
            for g in range(self.constraints.nodes.num_gpu[n]):
                if k == first or row[GPU + g] < low.gpu_left[g]:
                    low.gpu_left[g] = <int32_t> row[GPU + g]
                if k == first or row[GPU + self.width + g] < low.gpu_mem_left[g]:
                    low.gpu_mem_left[g] = row[GPU + self.width + g]
            k += 1
        return self.constraints.tightest(&low, cls)


cdef int widened(NodeForecast* of, int32_t count, int columns) except -1 nogil:
    """Room for so many states."""
    cdef double* t
    cdef int64_t* rows
    cdef int32_t room = 2 * count + 8
    if count <= of.room:
        return 0
    t = <double*> realloc(of.t, room * sizeof(double))
    if t != NULL:
        of.t = t
        rows = <int64_t*> realloc(of.free, <int64_t> room * columns * sizeof(int64_t))
        if rows != NULL:
            of.free, of.room = rows, room
            return 0
    with gil:
        raise MemoryError()


cdef int copied(NodeForecast* to, const NodeForecast* of, int columns) except -1 nogil:
    """Make one course the same as another."""
    widened(to, of.count, columns)
    memcpy(to.t, of.t, of.count * sizeof(double))
    memcpy(to.free, of.free, <int64_t> of.count * columns * sizeof(int64_t))
    to.count = of.count
    return 0
