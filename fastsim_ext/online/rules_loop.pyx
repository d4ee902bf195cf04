"""The online engine with gangs, quotas, preemption and nodes that fail.

This module starts and stops pods; ``queue_loop`` decides which entry may try when. An entry of the waiting line is one
pod or one gang, represented by its last pod.
"""

from libc.math cimport NAN, isnan
from libc.stdint cimport int32_t, int64_t, uint64_t
from fastsim_ext.online.loop cimport DROP, PRIORITY, PRIORITY_SKIP, OnlineLoop
from fastsim_ext.online.node_constraints cimport ConstraintTable
from fastsim_ext.online.preempt cimport PreemptionPlan
from fastsim_ext.select.scan cimport Choice
from fastsim_ext.state.pod_membership cimport BEGUN, GIVEN_UP, NOT_BEGUN, Gang, Member, PodMembership, saved_work
from fastsim_ext.state.pod_outcomes cimport GANG, GANG_TOO_LARGE, INTERVAL, NODE_LOST, OVER_QUOTA, POD
from fastsim_ext.state.pod_outcomes cimport PREEMPTED, RUNNING, START
from fastsim_ext.state.pod_table cimport Slot
from fastsim_ext.state.tenant_usage cimport TenantUsage


cdef class RulesLoop(OnlineLoop):
    """An OnlineLoop with gangs, quotas, preemption and nodes that fail."""

    def __init__(self, nodes, work, select, options):
        OnlineLoop.__init__(self, nodes, work, select, options)
        self.membership = PodMembership(options["first"], options["moved"])
        self.membership.follows = options["follows"]
        self.constraints = ConstraintTable(nodes, work, select, self.membership, options)
        self.tenants = TenantUsage()
        self.preemption = PreemptionPlan(self.constraints, work, self.membership)
        self.preempts, self.requeues = options["preempts"], options["requeues"]
        self.checkpoint, self.restart = options["checkpoint_s"], options["restart_s"]
        self.away__n, self.spared__n = options["away"], options["spared"]
        self.planned, self.limited = options["planned"], options["limited"]
        self.endless = True

    def feed_changes(self, t, node, adds, random, bint last):
        """The next node changes in order: seconds, position, whether it comes, whether it is a failure or repair."""
        self.passed += self.change_next
        self.change_t, self.change_node, self.change_adds, self.change_random = t, node, adds, random
        self.change_next = 0
        self.endless = not last

    def feed_members(self, tenant, group, preemptible, preempts, est, job, gang, after_gang, value):
        """Further columns of the batch in feed(): tenants, groups, whether pods may be stopped and may stop others,
        estimated seconds, jobs, sizes of gangs, whether pods start after a gang of their job (None: none does), values
        of the columns that an order reads, MOST_TERMS each (None: it reads none)."""
        self.a_tenant, self.a_group, self.a_preemptible, self.a_preempts = tenant, group, preemptible, preempts
        self.a_est, self.a_job, self.a_gang, self.a_after_gang = est, job, gang, after_gang
        self.a_value = value

    def snapshot(self):
        """As OnlineLoop.snapshot, with the number of past node changes; ``membership`` has a snapshot of its own."""
        ended = not self.endless and self.change_next >= self.change_t.shape[0]
        return OnlineLoop.snapshot(self) | {
            "change_next": self.passed + self.change_next, "ended": ended, "planned": self.planned,
            "failed": self.failed,
        }

    def restore(self, state):
        """Restore a snapshot() of this loop or of a plain one; ``membership`` must have been restored before.

        The next change that is fed must be the first one after the snapshot.
        """
        cdef int32_t s
        OnlineLoop.restore(self, state)
        self.passed, self.change_next = state["change_next"], 0
        self.endless = not state.get("ended", False)
        self.planned, self.failed = state.get("planned", self.planned - self.passed), state.get("failed", 0)
        for s in range(self.work.n_slots):
            if self.work.slots[s].seq >= 0:
                self.keep(s, s)
                if self.work.slots[s].node >= 0:
                    self.hold(s)
        self.verify()

    def restore_members(self, members):
        """Enter pods of a plain loop by arrival: (tenant, group, preemptible, preempts, estimated seconds)."""
        cdef int32_t s
        for s in range(self.work.n_slots):
            tenant, group, stopped, stops, est = members.get(self.work.slots[s].seq, (-1, -1, False, False, NAN))
            self.membership.enter(s, tenant, group, stopped, stops, est)

    def evict(self, int32_t slot):
        """Take a running pod off its node; it keeps its slot and departure for move()."""
        self.work.check_slot(slot)
        self.let_go(slot)
        OnlineLoop.evict(self, slot)

    def discard(self, int32_t slot):
        """Take back a trial()."""
        self.work.check_slot(slot)
        self.let_go(slot)
        OnlineLoop.discard(self, slot)

    cpdef int verify(self) except -1:
        """As OnlineLoop.verify, and: device memory and further resources are within their bounds."""
        cdef int n, g
        cdef int32_t s
        cdef int64_t left, pending = 0, waiting = self.work.waiting
        for s in range(self.work.n_slots):
            pending += self.work.slots[s].seq >= 0 and self.work.slots[s].node < 0
        assert self.counts.pending == pending, f"{self.counts.pending} pending, {pending} without a node"
        for n in range(self.nodes.count):
            for g in range(self.nodes.num_gpu[n]):
                left = self.constraints.gpu_mem_left__ng[n, g]
                assert 0 <= left <= self.constraints.gpu_mem_cap[n], f"node {n}: GPU {g}"
            for g in range(self.constraints.n_extra):
                left = self.constraints.extra_left__nr[n, g]
                assert 0 <= left <= self.constraints.extra_cap__nr[n, g], f"node {n}: extra {g}"
        self.counts.pending = waiting    # a gang is one entry of the line
        try:
            OnlineLoop.verify(self)
        finally:
            self.counts.pending = pending
        return 0

    cdef bint wants_node_changes(self) noexcept nogil:
        """Skip failures without effect; whether the next node change has to be fed."""
        cdef int n
        if (self.a_next == self.a_count and not self.last_batch) or self.over():
            return False
        while True:
            if self.change_next >= self.change_t.shape[0]:
                return self.endless
            if not self.change_random[self.change_next]:
                return False
            n = self.change_node[self.change_next]
            if self.change_adds[self.change_next]:
                if not self.spared__n[n]:
                    return False
                self.spared__n[n] = 0
            else:
                if self.a_next < self.a_count or self.departures.size > 0 or self.freed:
                    return False
                self.spared__n[n] = 1
                if self.failed == 0 and self.planned == 0:
                    self.change_next, self.endless = self.change_t.shape[0], False
                    return False
            self.change_next += 1

    cdef int change_node_now(self) except -1 nogil:
        """One reason less for a node to be away, and it appears; or one more, and it takes its pods along."""
        cdef int n = self.change_node[self.change_next]
        cdef bint random = self.change_random[self.change_next]
        cdef int by = -1 if self.change_adds[self.change_next] else 1
        self.change_next += 1
        self.membership.moves += 1
        self.away__n[n] = self.away__n[n] + by
        if random:
            self.failed += by
        else:
            self.planned -= 1
        if by < 0 and self.away__n[n] == 0:
            self.nodes.add_node(n)
            self.free_all()
        elif by > 0 and self.away__n[n] == 1:
            self.fail_node(n)
        return 0

    cdef int fail_node(self, int n) except -1 nogil:
        """The pods of a node stop, the earliest to arrive first, and whole gangs with them."""
        cdef bint shaken = False
        cdef int32_t first
        while self.nodes.pods[n] > 0:
            first = self.membership.earliest_on(n, self.work.slots)
            shaken = shaken or self.requeues or self.membership.members[first].gang >= 0
            if self.requeues:
                self.interrupt(first, NODE_LOST)
            else:
                self.lose(first, NODE_LOST)
        self.nodes.remove_node(n)
        if shaken:
            self.free_all()
        return 0

    cdef int choose(self, int cls, Choice* choice) except -1 nogil:
        """Choose the node and devices of a pod of class ``cls``, or the Reason why none fits."""
        if self.constraints.rule(cls) != NULL:
            return self.constraints.choose(cls, choice, -1, -1)
        return self.select.choose(cls, choice)

    cdef void allocate(self, int32_t slot, const Choice* choice) noexcept nogil:
        """Allocate the chosen node and devices to a pod, and count it in its quota, gang and spread."""
        OnlineLoop.allocate(self, slot, choice)
        self.hold(slot)

    cdef void hold(self, int32_t slot) noexcept nogil:
        """Account for what a running pod holds besides CPU, memory and devices."""
        cdef const Slot* s = &self.work.slots[slot]
        if s.seq < 0:        # a trial belongs to no tenant
            self.membership.enter(slot, -1, -1, False, False, NAN)
        self.membership.link(slot, s.node)
        self.constraints.hold(s.node, s.cls, s.gpus, -1)
        self.preemption.count(s.cls, 1)
        if self.membership.members[slot].tenant >= 0:
            self.tenants.add(self.membership.members[slot].tenant, &self.work.classes[s.cls], 1)

    cdef void let_go(self, int32_t slot) noexcept nogil:
        """Undo hold()."""
        cdef const Slot* s = &self.work.slots[slot]
        self.membership.unlink(slot, s.node)
        self.constraints.hold(s.node, s.cls, s.gpus, 1)
        self.preemption.count(s.cls, -1)
        if self.membership.members[slot].tenant >= 0:
            self.tenants.add(self.membership.members[slot].tenant, &self.work.classes[s.cls], -1)

    cdef int release(self, int32_t slot, int reason) except -1 nogil:
        """A running pod leaves its node and the system."""
        self.let_go(slot)
        self.membership.leave(slot)
        return OnlineLoop.release(self, slot, reason)

    cdef int enter(self, int32_t slot, int64_t i) except -1 nogil:
        """Fill the record of a pod that arrives, from row ``i`` of the batch."""
        self.keep(slot, i)
        return self.membership.enter(
            slot, self.a_tenant[i], self.a_group[i], self.a_preemptible[i], self.a_preempts[i], self.a_est[i])

    cdef int keep(self, int32_t slot, int64_t i) except -1 nogil:
        """Store the values of columns that a pod is queued by, from row ``i`` of the batch."""
        return 0

    cdef int start_bound(self, int32_t slot, int n, uint64_t gpus) except -1 nogil:
        """A pod that is bound to a node when it arrives starts there, whatever its quota and its gang, or leaves."""
        cdef int64_t i = self.a_next
        cdef Choice choice
        self.enter(slot, i)
        self.constraints.stay(self.work.slots[slot].cls, n, gpus, &choice)
        if choice.node < 0:
            self.membership.leave(slot)
            return self.drop(slot, choice.reason)
        self.begin_work(slot, &choice)
        return self.schedule_end(slot)

    cdef int admit(self, int32_t slot) except -1 nogil:
        """A pod that has just arrived is placed, queued or dropped, or waits for the rest of its gang."""
        cdef int64_t i = self.a_next
        cdef int reason
        self.enter(slot, i)
        if self.a_gang[i] > 1:
            if not self.membership.join_gang(slot, self.a_job[i], self.a_gang[i]):
                self.counts.pending += 1
                return 0
            self.counts.pending -= self.a_gang[i] - 1
        elif self.membership.follows and self.a_after_gang[i]:
            reason = self.membership.wait_for_gang(slot, self.a_job[i])
            if reason == NOT_BEGUN:
                self.counts.pending += 1
                return 0
            if reason == GIVEN_UP:
                self.membership.leave(slot)
                return self.drop(slot, GANG)
        return self.take_in(slot, True)

    cdef int take_in(self, int32_t slot, bint tries) except -1 nogil:
        """An entry is placed, queued or dropped; without ``tries`` it is not tried at once where it can wait."""
        cdef int reason
        if self.never_starts(slot):
            return 0
        if self.queue_rule == DROP:
            reason = self.try_start(slot)
            if reason:
                self.drop_entry(slot, reason, self.failing)
        else:
            self.enqueue(slot)
            if tries:
                self.queued(slot)
        return 0

    cdef int settle_followers(self, int32_t slot, int stage) except -1 nogil:
        """The gang of a pod has begun, or is given up: those that wait for it stand in line, or leave with it."""
        cdef Gang* gang = &self.membership.gangs[self.membership.members[slot].gang]
        cdef int64_t job = gang.job
        cdef int32_t at
        gang.stage = max(gang.stage, stage)
        if not self.membership.held or (stage == GIVEN_UP and self.membership.has_others(slot)):
            return 0
        at = self.membership.next_held(job, self.work.slots)
        while at >= 0:
            self.counts.pending -= 1
            if stage == BEGUN:
                self.take_in(at, False)
                self.freed = self.freed or self.work.waiting > 0
            else:
                self.drop(at, GANG)
            at = self.membership.next_held(job, self.work.slots)
        return 0

    cdef int queued(self, int32_t slot) except -1 nogil:
        """An entry has just joined the line."""
        return 0

    cdef int drop_entry(self, int32_t slot, int reason, int32_t because) except -1 nogil:
        """An entry leaves without ever being placed, because of one of its pods."""
        cdef int32_t at = self.membership.first(slot)
        cdef int32_t after
        if self.membership.follows and self.membership.members[slot].gang >= 0:
            self.settle_followers(slot, GIVEN_UP)
        while at >= 0:
            after = self.membership.next(at)
            self.membership.leave(at)
            self.drop(at, reason if at == because else GANG)
            at = after
        return 0

    cdef int never_starts(self, int32_t slot) except -1 nogil:
        """Whether an entry could not even start on an empty cluster, whose nodes are all there; it leaves if so."""
        cdef int32_t at = self.membership.first(slot), after, over
        cdef int reason
        cdef bint large = False
        while at >= 0 and not large:
            large = self.constraints.lasting_obstacle(self.work.slots[at].cls) != 0
            at = self.membership.next(at)
        over = -1 if large or not self.limited else self.tenants.first_above(self.membership, self.work, slot)
        if not large and over < 0 and not self.constraints.above_all_nodes(slot):
            return 0
        if self.membership.follows and self.membership.members[slot].gang >= 0:
            self.settle_followers(slot, GIVEN_UP)
        at = self.membership.first(slot)
        while at >= 0:
            if large:
                reason = self.constraints.lasting_obstacle(self.work.slots[at].cls) or GANG
            elif over >= 0:
                reason = OVER_QUOTA if at == over else GANG
            else:
                reason = GANG_TOO_LARGE
            after = self.membership.next(at)
            self.membership.leave(at)
            self.drop_impossible(at, reason)
            at = after
        return 1

    cdef int drop_impossible(self, int32_t slot, int reason) except -1 nogil:
        """Drop a pod that could not start on an empty cluster either."""
        return self.drop(slot, reason)

    cdef int enqueue(self, int32_t slot) except -1 nogil:
        """Let an entry wait in the line."""
        self.insert(slot)
        self.counts.pending += self.membership.size(slot)
        self.membership.joins += 1
        self.membership.members[slot].joined = self.membership.joins
        return 0

    cdef int insert(self, int32_t slot) except -1 nogil:
        """Insert an entry into the line, at its place in the order."""
        self.work.queue(slot, self.queue_rule == PRIORITY or self.queue_rule == PRIORITY_SKIP)
        return 0

    cdef int dequeue(self, int32_t slot) except -1 nogil:
        """Take an entry out of the line."""
        self.work.unqueue(slot)
        self.counts.pending -= self.membership.size(slot)
        return 0

    cdef int32_t over_quota(self, int32_t slot) noexcept nogil:
        """The first pod of an entry with which its tenant would be over its quota, or -1."""
        return self.tenants.first_over(self.membership, self.work, slot) if self.limited else -1

    cdef int try_start(self, int32_t slot) except -1 nogil:
        """Start an entry if it fits now; 0, or the Reason why ``failing`` does not."""
        cdef Choice choice
        self.failing = self.over_quota(slot)
        if self.failing >= 0:
            return OVER_QUOTA
        if self.membership.members[slot].gang >= 0:
            return self.try_start_gang(slot)
        self.choose(self.work.slots[slot].cls, &choice)
        if choice.node < 0 and self.preempts and self.membership.members[slot].preempts:
            self.make_room(slot, &choice)
        if choice.node < 0:
            self.failing = slot
            return choice.reason
        self.begin_work(slot, &choice)
        self.schedule_end(slot)
        return 0

    cdef int try_start_gang(self, int32_t slot) except -1 nogil:
        """All members start one after another, or none does. A gang preempts no pod."""
        cdef Choice choice
        cdef int32_t at = self.membership.first(slot)
        cdef int32_t upto
        cdef int reason = 0
        while at >= 0:
            self.choose(self.work.slots[at].cls, &choice)
            if choice.node < 0:
                self.failing, reason = at, choice.reason
                break
            self.begin_work(at, &choice)
            at = self.membership.next(at)
        upto, at = at, self.membership.first(slot)
        while reason and at != upto:
            self.deallocate(at)
            at = self.membership.next(at)
        while not reason and at >= 0:
            self.schedule_end(at)
            at = self.membership.next(at)
        if not reason and self.membership.follows:
            self.settle_followers(slot, BEGUN)
        return reason

    cdef int make_room(self, int32_t slot, Choice* choice) except -1 nogil:
        """Stop less important pods where that costs least, and choose devices on their node."""
        cdef int32_t k, at
        self.preemption.find(slot)
        if self.preemption.node < 0:
            return 0
        for k in range(self.preemption.n_victims):
            at = self.preemption.victims[k]
            if self.work.slots[at].seq < 0 or self.work.slots[at].node < 0:    # it stopped with its gang
                continue
            if self.queue_rule == DROP:
                self.lose(at, PREEMPTED)
            else:
                self.interrupt(at, PREEMPTED)
        self.free_all()
        return self.constraints.choose(self.work.slots[slot].cls, choice, -1, self.preemption.node)

    cdef int begin_work(self, int32_t slot, const Choice* choice) except -1 nogil:
        """Allocate the chosen node and devices to a pod, and let it work from now on."""
        self.allocate(slot, choice)
        self.work.slots[slot].began = self.now
        self.work.accounts[slot].delay = self.membership.members[slot].restart
        return 0

    cdef int schedule_end(self, int32_t slot) except -1 nogil:
        """Schedule the departure of a pod that has just begun."""
        cdef Slot* s = &self.work.slots[slot]
        if not isnan(s.duration):
            self.departures.push(self.now + (s.duration + self.membership.members[slot].restart), slot, s.turn)
        if self.starts_recorded:
            self.work.note(slot, RUNNING, self.now, START)
        return 0

    cdef void deallocate(self, int32_t slot) noexcept nogil:
        """Take a pod back that has begun in this decision."""
        cdef Slot* s = &self.work.slots[slot]
        self.let_go(slot)
        self.nodes.release(s.node, &self.work.classes[s.cls], s.gpus)
        self.counts.running -= 1
        s.node, s.gpus, s.start = -1, 0, NAN
        if s.attempt == 0:
            s.first_start = NAN

    cdef int start(self, int32_t slot) except -1 nogil:
        """Start an entry of the line; 0, or the Reason why it cannot start."""
        cdef int reason = self.try_start(slot)
        if reason == 0:
            self.dequeue(slot)
        return reason

    cdef int interrupt(self, int32_t slot, int reason) except -1 nogil:
        """Stop a running pod, and all that runs of its gang with it; they wait again."""
        cdef int32_t at = self.membership.first(slot)
        cdef Slot* s
        while at >= 0:
            self.take_off(at, reason)
            self.work.note(at, reason, self.now, INTERVAL)
            s = &self.work.slots[at]
            s.turn, s.attempt = s.turn + 1, s.attempt + 1
            s.node, s.gpus, s.start = -1, 0, NAN
            self.membership.members[at].restart = self.restart
            at = self.membership.next(at)
        return self.enqueue(self.membership.entry_slot(slot))

    cdef int lose(self, int32_t slot, int reason) except -1 nogil:
        """Stop a running pod for good, and all that runs of its gang with it."""
        cdef int32_t at = self.membership.first(slot)
        cdef int32_t after
        while at >= 0:
            after = self.membership.next(at)
            self.take_off(at, reason)
            self.work.note(at, reason, self.now, INTERVAL | POD)
            self.counts.lost += 1
            self.membership.leave(at)
            self.work.leave(at)
            at = after
        return 0

    cdef void take_off(self, int32_t slot, int reason) noexcept nogil:
        """Take a running pod off its node, and count the work that is lost."""
        cdef Slot* s = &self.work.slots[slot]
        self.count_lost_work(slot)
        s.preemptions += reason == PREEMPTED
        self.let_go(slot)
        self.nodes.release(s.node, &self.work.classes[s.cls], s.gpus)
        self.counts.running -= 1

    cdef void count_lost_work(self, int32_t slot) noexcept nogil:
        """Work since the last checkpoint is lost, the rest need not be done again."""
        cdef Slot* s = &self.work.slots[slot]
        cdef Member* m = &self.membership.members[slot]
        cdef double worked = max(0.0, (self.now - s.began) - m.restart)
        cdef double saved_s = saved_work(worked, self.checkpoint)
        s.lost = s.lost + (worked - saved_s)
        m.attained += self.now - s.began
        if not isnan(s.duration):
            s.duration = max(0.0, s.duration - saved_s)
        if not isnan(m.est_left):
            m.est_left = m.est_left - saved_s
