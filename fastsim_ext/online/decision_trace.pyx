"""The online engine with a listener that is called before and after every decision on watched pods.

``DecisionTrace`` runs without rules, ``RulesDecisionTrace`` with them; both decide as in any other run.
During a call the listener may query the inputs of the decision: ``filtered``, ``scored`` and ``picked`` compute them by
the engine's own filter, scores and device pick, without reading or changing the caches of its faster variants.
``lacking`` has every amount that a node has too little of.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from fastsim_ext.online.free_forecast cimport Reservation
from fastsim_ext.online.loop cimport OnlineLoop
from fastsim_ext.online.node_constraints cimport ClassConstraints, NodeView
from fastsim_ext.online.queue_loop cimport QueueLoop
from fastsim_ext.online.rules_loop cimport RulesLoop
from fastsim_ext.online.topology_spread cimport Skew
from fastsim_ext.scores.device cimport device_fit_count
from fastsim_ext.select.scan cimport Selector, misfit, normalised
from fastsim_ext.state.pod_outcomes cimport (
    NO_CPU, NO_EXTRA, NO_GPU, NO_GPU_MODEL, NO_MEMORY, NO_POD_SLOT, OVER_QUOTA, PEERS, POD_LIMIT, SPREAD,
)
from fastsim_ext.types cimport NORM_NONE, PICK_FGD, Node, Pod

cdef enum:
    AWAY = -1
    TOO_LITTLE_MEMORY = -2
    GPU_BIT = 1
    CPU_BIT = 2
    MEMORY_BIT = 4
    POD_SLOT_BIT = 8
    EXTRA_BIT = 16
    SPREAD_BIT = 1 << 30

cdef enum:  # How: the rule that affected an answer
    PLAIN, BY_PREEMPTION, BY_BACKFILL, BY_QUOTA, BY_GANG

ABSENT = AWAY
"""Stands for a reason where a node is not there at the moment."""

NO_GPU_MEMORY = TOO_LITTLE_MEMORY
"""Stands for a reason where enough devices have room, but too few of them the requested memory."""

LACKS_GPU, LACKS_CPU, LACKS_MEMORY, LACKS_POD_SLOT, LACKS_EXTRA = GPU_BIT, CPU_BIT, MEMORY_BIT, POD_SLOT_BIT, EXTRA_BIT
"""Bits of the amounts that a node has too little of; the further resource at position g has LACKS_EXTRA << g."""
BREAKS_SPREAD = SPREAD_BIT
"""Bit of a node where rules of spread refuse the pod."""


# By How, as explanations name the rule that affected an answer.
cdef tuple HOWS = ("", "preemption", "backfill", "over_quota", "gang")


cdef class Watch:
    """The pods whose arrival number is marked in ``watched``, and the listener to the decisions about them.

    ``listener.before(seq, class, t)`` is called before a decision at ``t`` seconds and
    ``listener.after(seq, node, devices as bits, how)`` after it, with node -1 if the pod did not start. ``how`` is the
    rule that affected the answer, or empty. A pod that could not start on an empty cluster either is never decided on:
    ``listener.never(seq, class, t, reason)`` is called instead.
    """

    cdef bint marks(self, OnlineLoop run, int32_t slot) noexcept nogil:
        """Whether the pod in a slot is watched."""
        cdef int64_t seq = run.work.slots[slot].seq
        return 0 <= seq < self.watched.shape[0] and self.watched[seq] != 0

    cdef int before(self, OnlineLoop run, int32_t slot) except -1 nogil:
        """A decision about a pod is about to be taken."""
        if self.marks(run, slot):
            with gil:
                self.listener.before(run.work.slots[slot].seq, run.work.slots[slot].cls, run.now)
        return 0

    cdef int after(self, OnlineLoop run, int32_t slot, int how) except -1 nogil:
        """It is taken."""
        if self.marks(run, slot):
            with gil:
                self.listener.after(run.work.slots[slot].seq, run.work.slots[slot].node, run.work.slots[slot].gpus,
                                    HOWS[how])
        return 0

    cdef int never(self, OnlineLoop run, int32_t slot, int reason) except -1 nogil:
        """No empty node hosts a pod."""
        if self.marks(run, slot):
            with gil:
                self.listener.never(run.work.slots[slot].seq, run.work.slots[slot].cls, run.now, reason)
        return 0

    cdef object moved(self, OnlineLoop run, int32_t slot):
        """Place an evicted pod again, between two calls of the listener; True if placed."""
        cdef int64_t seq = -1
        if 0 <= slot < run.work.n_slots and self.marks(run, slot):
            seq = run.work.slots[slot].seq
            self.before(run, slot)
        placed = OnlineLoop.move(run, slot)
        if seq >= 0:  # a pod that was lost has left its slot
            self.listener.after(seq, run.work.slots[slot].node if placed else -1,
                                run.work.slots[slot].gpus if placed else 0, "")
        return placed


cdef Watch watch_of(OnlineLoop run, watched, listener):
    """The watch of a run that has not begun."""
    cdef Watch watch = Watch.__new__(Watch)
    watch.watched, watch.listener = watched, listener
    run.line.close()    # every attempt is listened to
    return watch


cdef class DecisionTrace(OnlineLoop):
    """A run that calls ``listener`` for the pods marked in ``watched``, as a watch does; ``how`` is always empty."""

    def __init__(self, nodes, work, select, options, watched, listener):
        OnlineLoop.__init__(self, nodes, work, select, options)
        self.watch = watch_of(self, watched, listener)

    def move(self, int32_t slot):
        """As OnlineLoop.move, with calls of the listener."""
        return self.watch.moved(self, slot)

    cdef int start(self, int32_t slot) except -1 nogil:
        """As OnlineLoop.start, with calls of the listener."""
        cdef int reason
        self.watch.before(self, slot)
        reason = OnlineLoop.start(self, slot)
        self.watch.after(self, slot, PLAIN)
        return reason

    cdef int admit(self, int32_t slot) except -1 nogil:
        """As OnlineLoop.admit; calls the listener for pods that no empty node hosts."""
        cdef int obstacle = self.nodes.lasting_obstacle(&self.work.classes[self.work.slots[slot].cls])
        if obstacle:
            self.watch.never(self, slot, obstacle)
        return OnlineLoop.admit(self, slot)


def filtered(Selector select, int cls, int32_t[::1] reason__n, int64_t[::1] found__n, int64_t[::1] needed__n):
    """The first check every node fails for a class (a Reason; 0 none, -1 absent), what it has and what it needs.

    Both are in the unit of the check: milli-CPU, MiB, pod slots, or devices with room for the class's share;
    for a model, the node's model id and the allowed ones as bits.
    """
    cdef int n
    cdef Node node
    cdef Left left
    cdef const Pod* pod
    select.work.check_class(cls)
    pod = &select.work.classes[cls]
    for n in range(select.nodes.count):
        reason__n[n], found__n[n], needed__n[n] = AWAY, 0, 0
        if select.nodes.present[n]:
            node = select.nodes.at(n)
            left = left_on(&node, pod, select.nodes.max_pods[n] - select.nodes.pods[n])
            reason__n[n] = misfit(&node, pod, select.nodes.pods[n], select.nodes.max_pods[n])
            write_shortage(reason__n[n], pod, &left, &found__n[n], &needed__n[n])


cdef Left left_on(const Node* node, const Pod* pod, int slots) noexcept nogil:
    """What a node has left for a pod."""
    return Left(node.model, device_fit_count(node, pod.milli), slots, node.cpu_left, node.mem_left)


cdef void write_shortage(int reason, const Pod* pod, const Left* left, int64_t* found, int64_t* needed) noexcept nogil:
    """Write what a node has and what a pod needs, for the checks that need no rules."""
    if reason == NO_GPU_MODEL:
        found[0], needed[0] = left.model, <int64_t> pod.models
    elif reason == NO_GPU:
        found[0], needed[0] = left.gpus, pod.num_gpu
    elif reason == NO_CPU:
        found[0], needed[0] = left.cpu, pod.cpu
    elif reason == NO_MEMORY:
        found[0], needed[0] = left.mem, pod.mem
    elif reason == NO_POD_SLOT:
        found[0], needed[0] = left.slots, 1


def lacking(Selector select, int cls, int32_t[::1] lacks__n):
    """Every amount that a node has too little of for a class, as bits; 0 for a node that is absent."""
    cdef int n
    cdef Node node
    cdef Left left
    cdef const Pod* pod
    select.work.check_class(cls)
    pod = &select.work.classes[cls]
    for n in range(select.nodes.count):
        lacks__n[n] = 0
        if select.nodes.present[n]:
            node = select.nodes.at(n)
            left = left_on(&node, pod, select.nodes.max_pods[n] - select.nodes.pods[n])
            lacks__n[n] = lacks(pod, &left)


cdef int32_t lacks(const Pod* pod, const Left* left) noexcept nogil:
    """The amounts that a pod asks for beyond those left, as bits."""
    cdef int32_t bits = GPU_BIT if left.gpus < pod.num_gpu else 0
    bits |= CPU_BIT if left.cpu < pod.cpu else 0
    bits |= MEMORY_BIT if left.mem < pod.mem else 0
    return bits | (POD_SLOT_BIT if left.slots < 1 else 0)


def scored(Selector select, int cls, int term, int64_t[::1] raw__n, int64_t[::1] points__n):
    """Raw and normalised points of one term of the plan, on every node that can host the class now.

    A random term answers with the draw that the next decision makes.
    """
    cdef int stage, count
    cdef const Pod* pod
    select.work.check_class(cls)
    pod = &select.work.classes[cls]
    count = Selector.feasible(select, pod, &stage)
    if count == 0:
        return
    Selector.score(select, term, cls, pod, count)
    write_points(select, term, count, raw__n, points__n)


cdef void write_points(Selector select, int term, int count, int64_t[::1] raw__n, int64_t[::1] points__n) noexcept:
    """Write the scores of the feasible nodes, as they are and normalised; the selector's scores are overwritten."""
    write_scores(select, count, raw__n)
    if select.normalise[term] != NORM_NONE:
        normalised(select.raw__f, count, select.normalise[term])
    write_scores(select, count, points__n)


cdef void write_scores(Selector select, int count, int64_t[::1] points__n) noexcept:
    """Write the selector's scores of the feasible nodes."""
    cdef int f
    for f in range(count):
        points__n[select.feasible__f[f]] = select.raw__f[f]


def picked(Selector select, int cls, uint64_t[::1] gpus__n):
    """The devices, as bits, that the class would get on every node that can host it now."""
    cdef int stage
    select.work.check_class(cls)
    write_devices(select, &select.work.classes[cls], Selector.feasible(select, &select.work.classes[cls], &stage),
                  gpus__n)


cdef void write_devices(Selector select, const Pod* pod, int count, uint64_t[::1] gpus__n) noexcept:
    """Write the devices that a pod would get on the feasible nodes."""
    cdef int f, n
    cdef Node node
    for f in range(count):
        # Only fgd looks at the cached fragmentation of a node, which is brought up to date on demand.
        n = select.feasible__f[f]
        node = select.nodes.exactly(n) if select.gpu_pick == PICK_FGD else select.nodes.at(n)
        gpus__n[n] = Selector.devices(select, n, &node, pod, select.gpu_pick)


cdef class RulesDecisionTrace(QueueLoop):
    """A run with rules that calls ``listener`` for the pods marked in ``watched``, as a watch does.

    ``how`` is ``preemption``, ``backfill``, ``over_quota``, ``gang`` (all members start, or another one fits nowhere)
    or empty.
    """

    def __init__(self, nodes, work, select, options, watched, listener):
        QueueLoop.__init__(self, nodes, work, select, options)
        self.watch = watch_of(self, watched, listener)

    def move(self, int32_t slot):
        """As OnlineLoop.move, with calls of the listener."""
        return self.watch.moved(self, slot)

    cdef bint watches_any(self, int32_t slot) noexcept nogil:
        """Whether any pod of an entry is traced."""
        cdef int32_t at = self.membership.first(slot)
        while at >= 0:
            if self.watch.marks(self, at):
                return True
            at = self.membership.next(at)
        return False

    cdef int notify_before(self, int32_t slot) except -1 nogil:
        """A decision about an entry is about to be taken."""
        cdef int32_t at = self.membership.first(slot)
        while at >= 0:
            self.watch.before(self, at)
            at = self.membership.next(at)
        return 0

    cdef int notify_after(self, int32_t slot, int reason, int how) except -1 nogil:
        """It is taken; ``reason`` why the pod ``failing`` did not start, or 0."""
        cdef int32_t at = self.membership.first(slot)
        while at >= 0:
            self.watch.after(self, at, BY_GANG if reason and not how and at != self.failing else how)
            at = self.membership.next(at)
        return 0

    cdef int try_start(self, int32_t slot) except -1 nogil:
        """As RulesLoop.try_start, with calls of the listener."""
        cdef int reason, how
        if not self.watches_any(slot):
            return RulesLoop.try_start(self, slot)
        self.notify_before(slot)
        self.preemption.node = -1
        reason = RulesLoop.try_start(self, slot)
        how = BY_QUOTA if reason == OVER_QUOTA else BY_PREEMPTION if self.preemption.node >= 0 else PLAIN
        if reason == 0 and self.membership.members[slot].gang >= 0:
            how = BY_GANG
        self.notify_after(slot, reason, how)
        return reason

    cdef int hold_back(self, int32_t slot, int32_t over) except -1 nogil:
        """As QueueLoop.hold_back, with calls of the listener."""
        if self.watches_any(slot):
            self.notify_before(slot)
            self.notify_after(slot, OVER_QUOTA, BY_QUOTA)
        return QueueLoop.hold_back(self, slot, over)

    cdef bint overtake(self, int32_t slot, Reservation* head) except -1 nogil:
        """As QueueLoop.overtake, with calls of the listener."""
        cdef bint started
        if not self.watches_any(slot):
            return QueueLoop.overtake(self, slot, head)
        self.notify_before(slot)
        started = QueueLoop.overtake(self, slot, head)
        self.notify_after(slot, 0, BY_BACKFILL)
        return started

    cdef bint by_reservation(self, int32_t slot) except -1 nogil:
        """As QueueLoop.by_reservation, with calls of the listener; the first of the line overtakes no pod."""
        cdef bint first = self.work.head == slot
        cdef bint started
        if not self.watches_any(slot):
            return QueueLoop.by_reservation(self, slot)
        self.notify_before(slot)
        started = QueueLoop.by_reservation(self, slot)
        self.notify_after(slot, 0, PLAIN if first and started else BY_BACKFILL)
        return started

    cdef int drop_impossible(self, int32_t slot, int reason) except -1 nogil:
        """As RulesLoop.drop_impossible, with calls of the listener."""
        self.watch.never(self, slot, reason)
        return QueueLoop.drop_impossible(self, slot, reason)

    def filtered(self, int cls, int32_t[::1] reason__n, int64_t[::1] found__n, int64_t[::1] needed__n):
        """The first check every node fails for a class (a Reason; 0 none, -1 absent), what it has and what it needs."""
        cdef int n
        cdef NodeView view
        cdef const Pod* pod
        self.work.check_class(cls)
        pod = &self.work.classes[cls]
        for n in range(self.nodes.count):
            reason__n[n], found__n[n], needed__n[n] = AWAY, 0, 0
            if self.nodes.present[n]:
                self.constraints.view(n, cls, &view)
                reason__n[n] = self.write_failed(&view, cls, pod, &found__n[n], &needed__n[n])

    cdef int write_failed(self, const NodeView* view, int cls, const Pod* pod, int64_t* found, int64_t* needed):
        """The first check that a node fails for a class; writes what it has and what it needs."""
        cdef int g
        cdef Skew skew
        cdef int reason = self.constraints.failed_check(view, cls)
        cdef Left left = self.left_in(view, pod)
        cdef const ClassConstraints* rule = self.constraints.rule(cls)
        write_shortage(reason, pod, &left, found, needed)
        if reason == NO_GPU and left.gpus >= pod.num_gpu:
            found[0] = bin(self.constraints.fitting(view, cls)).count("1")
            return TOO_LITTLE_MEMORY
        if reason == NO_EXTRA:
            for g in range(self.constraints.n_extra):
                if view.extra_left[g] < rule.extra[g]:
                    found[0], needed[0] = view.extra_left[g], rule.extra[g]
                    break
        elif reason == SPREAD or reason == PEERS:
            self.constraints.spread.refuses(view.n, cls, NULL, &skew)
            found[0], needed[0] = skew.found, skew.most
        elif reason == POD_LIMIT:
            found[0], needed[0] = view.group_pods, rule.most
        return reason

    cdef Left left_in(self, const NodeView* view, const Pod* pod) noexcept nogil:
        """What a node has left for a pod."""
        cdef int g, gpus = 0
        for g in range(self.nodes.num_gpu[view.n]):
            gpus += view.gpu_left[g] >= pod.milli
        return Left(self.nodes.model[view.n], gpus, self.nodes.max_pods[view.n] - view.pods, view.cpu_left,
                    view.mem_left)

    def lacking(self, int cls, int32_t[::1] lacks__n):
        """As the function ``lacking``, with further resources and rules of spread."""
        cdef int n, g
        cdef NodeView view
        cdef Left left
        cdef Skew skew
        cdef const ClassConstraints* rule
        self.work.check_class(cls)
        rule = self.constraints.rule(cls)
        for n in range(self.nodes.count):
            lacks__n[n] = 0
            if not self.nodes.present[n]:
                continue
            self.constraints.view(n, cls, &view)
            left = self.left_in(&view, &self.work.classes[cls])
            lacks__n[n] = lacks(&self.work.classes[cls], &left)
            for g in range(self.constraints.n_extra if rule != NULL else 0):
                if view.extra_left[g] < rule.extra[g]:
                    lacks__n[n] |= EXTRA_BIT << g
            if rule != NULL and self.constraints.spread.refuses(n, cls, NULL, &skew) == SPREAD:
                lacks__n[n] |= SPREAD_BIT

    cdef int feasible(self, int cls) noexcept nogil:
        """List the nodes that can host a class, for the selector; their number."""
        cdef int n
        cdef int count = 0
        cdef NodeView view
        for n in range(self.nodes.count):
            if self.nodes.present[n]:
                self.constraints.view(n, cls, &view)
                if self.constraints.failed_check(&view, cls) == 0:
                    self.select.feasible__f[count] = n
                    count += 1
        return count

    cdef void mask(self, int cls, int count, bint masked) noexcept nogil:
        """Mark devices with less memory left than the class requests as full, as a decision does, or undo it."""
        cdef const ClassConstraints* rule = self.constraints.rule(cls)
        cdef int f
        if rule == NULL or rule.gpu_mem <= 0 or self.work.classes[cls].num_gpu <= 0:
            return
        for f in range(count):
            if masked:
                self.constraints.mask(self.select.feasible__f[f], rule.gpu_mem)
            else:
                self.constraints.unmask(self.select.feasible__f[f])

    def scored(self, int cls, int term, int64_t[::1] raw__n, int64_t[::1] points__n):
        """Raw and normalised points of one term of the plan, on every node that can host the class now."""
        cdef int count
        self.work.check_class(cls)
        count = self.feasible(cls)
        if count == 0:
            return
        self.mask(cls, count, True)
        try:
            Selector.score(self.select, term, cls, &self.work.classes[cls], count)
        finally:
            self.mask(cls, count, False)
        write_points(self.select, term, count, raw__n, points__n)

    def preferred(self, int cls, int part, int64_t[::1] raw__n):
        """Points of one part of the preferences, on every node that can host the class now."""
        cdef int count
        self.work.check_class(cls)
        count = self.feasible(cls)
        if count == 0:
            return
        self.constraints.preferences.score(part, cls, count, &self.select.feasible__f[0], &self.select.raw__f[0])
        write_scores(self.select, count, raw__n)

    def picked(self, int cls, uint64_t[::1] gpus__n):
        """The devices, as bits, that the class would get on every node that can host it now."""
        cdef int count
        self.work.check_class(cls)
        count = self.feasible(cls)
        self.mask(cls, count, True)
        write_devices(self.select, &self.work.classes[cls], count, gpus__n)
        self.mask(cls, count, False)
