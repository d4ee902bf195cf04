"""The rules of the waiting line: the order in which entries are tried, and which may overtake.

Quotas hold back only their tenant's entries. Entries that join the line during a walk are looked at in the next one.
"""

from libc.stdint cimport int32_t, int64_t
from fastsim_ext.online.backfill cimport Backfill
from fastsim_ext.online.free_forecast cimport Reservation
from fastsim_ext.online.loop cimport CONSERVATIVE, DRF, EASY, FIFO_SKIP, PRIORITY_SKIP
from fastsim_ext.online.ordered_queue cimport ORDERED, OrderedQueue
from fastsim_ext.online.rules_loop cimport RulesLoop
from fastsim_ext.sorting cimport MOST_TERMS
from fastsim_ext.select.scan cimport Choice
from fastsim_ext.select.waiting_line cimport BY_KEY, WaitingLine
from fastsim_ext.state.pod_outcomes cimport OVER_QUOTA

cdef enum:
    UNKNOWN = -2         # node of a reservation that is not made yet


cdef class QueueLoop(RulesLoop):
    """A RulesLoop with every rule of the waiting line."""

    def __init__(self, nodes, work, select, options):
        RulesLoop.__init__(self, nodes, work, select, options)
        self.backfill = Backfill(self.constraints, work, self.membership)
        self.ordered = self.queue_rule >= ORDERED
        if self.ordered:
            self.ordered_queue = OrderedQueue(nodes, work, self.membership, options["terms"], options["level_s"])
            self.line = WaitingLine(nodes, work, self.skips() and not self.draws, BY_KEY)
        self.line.membership, self.line.reserves = self.membership, self.queue_rule == EASY

    cdef int keep(self, int32_t slot, int64_t i) except -1 nogil:
        """Store the values of the columns that an order reads."""
        if self.ordered and self.ordered_queue.reads:
            self.ordered_queue.keep(slot, &self.a_value[i * MOST_TERMS])
        return 0

    cdef bint skips(self) noexcept nogil:
        """Whether the rule lets entries pass one that fits nowhere."""
        return self.queue_rule == FIFO_SKIP or self.queue_rule == PRIORITY_SKIP or (
            self.ordered and (self.queue_rule - ORDERED) % 2 == 1)

    cdef int insert(self, int32_t slot) except -1 nogil:
        """Insert an entry into the line, at its place in the order."""
        if self.ordered:
            return self.ordered_queue.join(slot, self.now)
        RulesLoop.insert(self, slot)
        return self.line.join(slot)

    cdef bint lasting(self) noexcept nogil:
        """Whether a pod that fits nowhere fits nowhere until a node gets room, whatever starts meanwhile.

        Quotas, rules about pods near and preemption look at more than the room of nodes; pods that follow a gang join
        the line without being tried.
        """
        return not (self.limited or self.preempts or self.membership.follows or self.constraints.spread.n_rules)

    cdef int verify_line(self) except -1:
        """As OnlineLoop.verify_line, and what is kept of the head is as it was."""
        self.backfill.verify()
        return self.line.verify_tried(self.constraints) if self.lasting() else 0

    cdef void hold(self, int32_t slot) noexcept nogil:
        """As RulesLoop.hold; the node has room for the head at another time."""
        RulesLoop.hold(self, slot)
        self.backfill.note_change(self.work.slots[slot].node)

    cdef void let_go(self, int32_t slot) noexcept nogil:
        """Undo hold()."""
        RulesLoop.let_go(self, slot)
        self.backfill.note_change(self.work.slots[slot].node)

    cdef int schedule_end(self, int32_t slot) except -1 nogil:
        """As RulesLoop.schedule_end; a pod that rules of spread count may open nodes to others."""
        RulesLoop.schedule_end(self, slot)
        if self.constraints.spread.counts(self.work.slots[slot].cls) and (
                self.work.waiting > 1 or self.work.head != self.membership.entry_slot(slot)):
            self.freed = self.work.waiting > 0
        return 0

    cdef int dequeue(self, int32_t slot) except -1 nogil:
        """As RulesLoop.dequeue; there is no retry for an empty line."""
        self.line.leave(slot)
        RulesLoop.dequeue(self, slot)
        self.freed = self.freed and self.work.waiting > 0
        return 0

    cdef int queued(self, int32_t slot) except -1 nogil:
        """An entry that has just joined tries at once if the rule lets it."""
        cdef Reservation reservation
        cdef int32_t head
        if self.queue_rule == CONSERVATIVE:
            self.conservative(slot if self.backfill.holds_unchanged(self.now) and not self.limited else -1)
        elif self.queue_rule == DRF:
            head = self.work.head
            while self.membership.members[head].tenant != self.membership.members[slot].tenant:
                head = self.work.slots[head].after
            if head == slot:
                self.start(slot)
        elif self.skips():
            self.start(slot)
        elif self.ordered:   # the new entry may stand before others, whose order may have changed, too
            self.in_order()
        else:
            head = self.front(slot)
            if self.barred(slot):
                return 0
            if head < 0:
                self.start(slot)
            elif self.queue_rule == EASY and self.over_quota(slot) < 0:
                reservation.slot, reservation.node = head, UNKNOWN
                self.overtake(slot, &reservation)
        return 0

    cdef bint retry(self) except -1 nogil:
        """Offer the whole line what was freed; True if a pod was placed."""
        self.freed = False
        if self.queue_rule == DRF:
            return self.by_share()
        if self.queue_rule == EASY:
            return self.easy()
        if self.queue_rule == CONSERVATIVE:
            return self.conservative(-1)
        return self.in_order()

    cdef bint barred(self, int32_t slot) noexcept nogil:
        """Whether a tenant of the entry is held back in this walk."""
        cdef int32_t at = self.membership.first(slot) if self.limited else -1
        while at >= 0:
            if self.tenants.tenants[self.membership.members[at].tenant].barred == self.walks:
                return True
            at = self.membership.next(at)
        return False

    cdef void bar(self, int32_t over) noexcept nogil:
        """Hold back the tenant of a pod for the rest of the walk."""
        self.tenants.tenants[self.membership.members[over].tenant].barred = self.walks

    cdef int hold_back(self, int32_t slot, int32_t over) except -1 nogil:
        """An entry is not tried, because its pod ``over`` would be above a quota."""
        self.bar(over)
        return 0

    cdef int32_t front(self, int32_t until) noexcept nogil:
        """The first entry before ``until`` that no quota holds back, or -1; tenants with one held back are barred."""
        cdef int32_t at = self.work.head
        cdef int32_t head = -1
        cdef int32_t over
        self.walks += 1
        if not self.limited:
            return at if at != until else -1
        while at != until:
            if not self.barred(at):
                over = self.over_quota(at)
                if over >= 0:
                    self.bar(over)
                elif head < 0:
                    head = at
            at = self.work.slots[at].after
        return head

    cdef bint joined_later(self, int32_t slot, int64_t upto) noexcept nogil:
        """Whether an entry has joined since the walk began."""
        return self.membership.members[slot].joined > upto

    cdef bint in_order(self) except -1 nogil:
        """One after another until one fits nowhere, or past it if the rule skips."""
        cdef bint skips = self.skips()
        cdef bint started = False
        cdef int64_t upto = self.membership.joins
        cdef int32_t at, after
        cdef int reason
        if self.ordered:
            self.ordered_queue.renew(self.now)
        if self.line.known() and self.lasting():
            return self.retry_fitting()
        at = self.work.head
        self.walks += 1
        while at >= 0:
            after = self.work.slots[at].after
            if not self.joined_later(at, upto) and not self.barred(at):
                reason = self.start(at)
                if reason == 0:
                    started = True
                elif not skips:
                    if reason != OVER_QUOTA:
                        break
                    self.bar(self.failing)
            at = after
        self.line.settle(skips and self.lasting())
        return started

    cdef int32_t following(self, int32_t slot, int64_t upto) noexcept nogil:
        """The next entry of the same tenant, or -1."""
        cdef int32_t at = self.work.slots[slot].after
        while at >= 0 and (self.joined_later(at, upto)
                           or self.membership.members[at].tenant != self.membership.members[slot].tenant):
            at = self.work.slots[at].after
        return at

    cdef int32_t oldest(self) noexcept nogil:
        """The oldest entry of the tenant with the smallest share, the first in line on ties; -1 if all are passed."""
        cdef int32_t t, at
        cdef int32_t best = -1
        cdef double share, least = 0.0
        for t in range(self.tenants.count):
            at = self.tenants.tenants[t].oldest
            if at >= 0:
                share = self.tenants.dominant_share(t, &self.nodes.total)
                if best < 0 or share < least or (
                        share == least and self.membership.members[at].place < self.membership.members[best].place):
                    best, least = at, share
        return best

    cdef bint by_share(self) except -1 nogil:
        """Try the oldest entry of the tenant with the smallest dominant share; entries that do not fit are skipped."""
        cdef bint started = False
        cdef int64_t upto = self.membership.joins
        cdef int64_t place = 0
        cdef int32_t at = self.work.head
        cdef int32_t t, after
        for t in range(self.tenants.count):
            self.tenants.tenants[t].oldest = -1
        while at >= 0:
            t, place = self.membership.members[at].tenant, place + 1
            self.membership.members[at].place = place
            if self.tenants.tenants[t].oldest < 0:
                self.tenants.tenants[t].oldest = at
            at = self.work.slots[at].after
        while True:
            at = self.oldest()
            if at < 0:
                return started
            t, after = self.membership.members[at].tenant, self.following(at, upto)
            if self.start(at) == 0:
                started = True
                self.tenants.tenants[t].oldest = after
            else:
                self.tenants.tenants[t].oldest = -1

    cdef bint easy(self) except -1 nogil:
        """In order until one fits nowhere; later ones may start if they do not delay that one."""
        cdef bint started = False
        cdef bint blocked = False
        cdef int64_t upto = self.membership.joins
        cdef int32_t at = self.work.head
        cdef int32_t after, over
        cdef Reservation reservation
        if self.line.known() and self.lasting():
            return self.easy_fitting()
        reservation.node = -1
        self.walks += 1
        while at >= 0:
            after = self.work.slots[at].after
            if not self.joined_later(at, upto) and not self.barred(at):
                over = self.over_quota(at)
                if over >= 0:
                    self.hold_back(at, over)
                elif blocked:
                    started = self.overtake(at, &reservation) or started
                elif self.start(at) == 0:
                    started = True
                else:
                    blocked = True
                    self.backfill.head(at, self.now, &reservation)
            at = after
        self.line.settle(self.lasting())
        if reservation.node >= 0:
            self.line.free_node(reservation.node)
        return started

    cdef bint easy_fitting(self) except -1 nogil:
        """As easy(), but pods that fit no freed node, or the head's alone and would delay it, are not tried.

        Those behind the head that still wait may fit its node, which counts as freed from then on, and no other.
        """
        cdef bint started = False
        cdef int32_t at
        cdef Reservation head
        head.node = -1
        while self.line.front_fits() and self.start(self.work.head) == 0:
            started = True
        if self.work.waiting > 1:
            self.backfill.head(self.work.head, self.now, &head)
            self.line.reserve(head.node, head.start, self.now)
            at = self.following_beside(&head)
            while at >= 0:
                started = self.overtake(at, &head) or started
                at = self.following_beside(&head)
        self.line.settle(True)
        if head.node >= 0:
            self.line.free_node(head.node)
        return started

    cdef int32_t following_beside(self, const Reservation* head) noexcept nogil:
        """The next pod of the line that may overtake the head, or -1."""
        if head.node >= 0:
            self.line.beside = self.backfill.room_beside(head, self.now)[0]
        return self.line.following()

    cdef bint overtake(self, int32_t slot, Reservation* head) except -1 nogil:
        """Start a later pod if that does not delay the head: where it is best, or else on another node.

        A reservation that is UNKNOWN is made where it is needed.
        """
        cdef Choice choice
        cdef int cls = self.work.slots[slot].cls
        self.choose(cls, &choice)
        if choice.node < 0:
            return False
        if head.node == UNKNOWN:
            self.backfill.head(head.slot, self.now, head)
        if not self.backfill.undisturbed(head, slot, &choice, self.now, self.now + self.membership.estimated_s(slot)):
            self.constraints.choose(cls, &choice, choice.node, -1)
            if choice.node < 0:
                self.line.free_node(head.node)
                return False
        self.begin_work(slot, &choice)
        self.schedule_end(slot)
        self.dequeue(slot)
        return True

    cdef bint conservative(self, int32_t only) except -1 nogil:
        """Every entry in order gets the earliest place beside those before it, and starts if that is now.

        With ``only`` all reservations still hold, and just the last entry has none yet.
        """
        cdef bint started = False
        cdef int32_t at = self.work.head if only < 0 else only
        cdef int32_t after, over
        self.walks += 1
        if only < 0:
            self.backfill.renew(self.now)
        while at >= 0:
            after = self.work.slots[at].after
            over = -1 if self.barred(at) else self.over_quota(at)
            if over >= 0:
                self.hold_back(at, over)
            if self.barred(at):
                self.backfill.record_place(at, NULL)
            else:
                started = self.by_reservation(at) or started
            at = after
        return started

    cdef bint by_reservation(self, int32_t slot) except -1 nogil:
        """Find the entry's earliest place and start it if that is now; True if it was."""
        cdef Reservation place
        self.backfill.earliest(slot, self.now, &place)
        if place.node < 0 or place.waits:
            self.backfill.reserve_place(&place)
            return False
        self.settle_reserved(slot, &place)
        return True

    cdef int settle_reserved(self, int32_t slot, Reservation* place) except -1 nogil:
        """Start at the policy's choice if no reservation needs it, else at the pod's own reservation."""
        cdef Choice choice
        self.choose(self.work.slots[slot].cls, &choice)
        if self.backfill.allowed(slot, &choice, self.now):
            place.node, place.gpus = choice.node, choice.gpus
        choice.node, choice.gpus = place.node, place.gpus
        self.backfill.record_place(slot, place)
        self.begin_work(slot, &choice)
        self.schedule_end(slot)
        self.dequeue(slot)
        return self.backfill.started(slot, choice.node, self.now)
