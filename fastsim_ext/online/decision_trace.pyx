"""The online engine with a listener that is called before and after every decision on watched pods.

``DecisionTrace`` runs without rules, ``RulesDecisionTrace`` with them; both decide as in any other run.
During a call the listener may query the inputs of the decision: ``filtered``, ``scored`` and ``picked`` compute them by
the engine's own filter, scores and device pick, without reading or changing the caches of its faster variants.
``lacking`` has every amount that a node has too little of.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
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

ABSENT = -1
"""Stands for a reason where a node is not there at the moment."""

NO_GPU_MEMORY = -2
"""Stands for a reason where enough devices have room, but too few of them the requested memory."""

cdef enum:
    GPU_BIT = 1
    CPU_BIT = 2
    MEMORY_BIT = 4
    POD_SLOT_BIT = 8
    EXTRA_BIT = 16
    SPREAD_BIT = 1 << 30

LACKS_GPU, LACKS_CPU, LACKS_MEMORY, LACKS_POD_SLOT, LACKS_EXTRA = GPU_BIT, CPU_BIT, MEMORY_BIT, POD_SLOT_BIT, EXTRA_BIT
"""Bits of the amounts that a node has too little of; the further resource at position g has LACKS_EXTRA << g."""
BREAKS_SPREAD = SPREAD_BIT
"""Bit of a node where rules of spread refuse the pod."""


cdef bint marked(const uint8_t[::1] watched, int64_t seq) noexcept nogil:
    """Whether the pod with this arrival number is watched."""
    return 0 <= seq < watched.shape[0] and watched[seq] != 0


cdef class DecisionTrace(OnlineLoop):
    """A run that calls ``listener`` for the pods whose arrival number is marked in ``watched``.

    ``listener.before(seq, class, t)`` is called before a decision at ``t`` seconds and
    ``listener.after(seq, node, devices as bits)`` after it, with node -1 if there was none. A pod that
    no empty node can host is never decided on: ``listener.never(seq, class, t, reason)`` is called instead.
    """

    def __init__(self, nodes, work, select, options, watched, listener):
        OnlineLoop.__init__(self, nodes, work, select, options)
        self.line.close()    # every attempt is listened to
        self.watched, self.listener = watched, listener

    def move(self, int32_t slot):
        """As OnlineLoop.move, with calls of the listener."""
        is_watched = 0 <= slot < self.work.n_slots and marked(self.watched, self.work.slots[slot].seq)
        seq = self.work.slots[slot].seq if is_watched else -1
        if is_watched:
            self.listener.before(seq, self.work.slots[slot].cls, self.now)
        placed = OnlineLoop.move(self, slot)
        if is_watched and placed:
            self.listener.after(seq, self.work.slots[slot].node, self.work.slots[slot].gpus)
        elif is_watched:
            self.listener.after(seq, -1, 0)
        return placed

    cdef int start(self, int32_t slot) except -1 nogil:
        """As OnlineLoop.place, with calls of the listener."""
        cdef int reason
        if not marked(self.watched, self.work.slots[slot].seq):
            return OnlineLoop.start(self, slot)
        with gil:
            self.listener.before(self.work.slots[slot].seq, self.work.slots[slot].cls, self.now)
        reason = OnlineLoop.start(self, slot)
        with gil:
            self.listener.after(self.work.slots[slot].seq, self.work.slots[slot].node, self.work.slots[slot].gpus)
        return reason

    cdef int admit(self, int32_t slot) except -1 nogil:
        """As OnlineLoop.receive; calls the listener for pods that no empty node hosts."""
        cdef int reason = self.nodes.lasting_obstacle(&self.work.classes[self.work.slots[slot].cls])
        if reason != 0 and marked(self.watched, self.work.slots[slot].seq):
            with gil:
                self.listener.never(self.work.slots[slot].seq, self.work.slots[slot].cls, self.now, reason)
        return OnlineLoop.admit(self, slot)


def filtered(Selector select, int cls, int32_t[::1] reason__n, int64_t[::1] found__n, int64_t[::1] needed__n):
    """The first check every node fails for a class (a Reason; 0 none, -1 absent), what it has and what it needs.

    Both are in the unit of the check: milli-CPU, MiB, pod slots, or devices with room for the class's share;
    for a model, the node's model id and the allowed ones as bits.
    """
    cdef int n
    cdef Node node
    cdef const Pod* pod
    select.work.check_class(cls)
    pod = &select.work.classes[cls]
    for n in range(select.nodes.count):
        found__n[n] = needed__n[n] = 0
        if not select.nodes.present[n]:
            reason__n[n] = ABSENT
            continue
        node = select.nodes.at(n)
        reason__n[n] = misfit(&node, pod, select.nodes.pods[n], select.nodes.max_pods[n])
        if reason__n[n] == NO_GPU_MODEL:
            found__n[n], needed__n[n] = node.model, <int64_t> pod.models
        elif reason__n[n] == NO_GPU:
            found__n[n], needed__n[n] = device_fit_count(&node, pod.milli), pod.num_gpu
        elif reason__n[n] == NO_CPU:
            found__n[n], needed__n[n] = node.cpu_left, pod.cpu
        elif reason__n[n] == NO_MEMORY:
            found__n[n], needed__n[n] = node.mem_left, pod.mem
        elif reason__n[n] != 0:
            found__n[n], needed__n[n] = select.nodes.max_pods[n] - select.nodes.pods[n], 1


def lacking(Selector select, int cls, int32_t[::1] lacks__n):
    """Every amount that a node has too little of for a class, as bits; 0 for a node that is absent."""
    cdef int n
    cdef Node node
    cdef const Pod* pod
    select.work.check_class(cls)
    pod = &select.work.classes[cls]
    for n in range(select.nodes.count):
        lacks__n[n] = 0
        if select.nodes.present[n]:
            node = select.nodes.at(n)
            lacks__n[n] = lacks(pod, device_fit_count(&node, pod.milli), node.cpu_left, node.mem_left,
                                select.nodes.max_pods[n] - select.nodes.pods[n])


cdef int32_t lacks(const Pod* pod, int gpus, int64_t cpu_left, int64_t mem_left, int slots) noexcept nogil:
    """The amounts that a pod asks for beyond those left, as bits; ``gpus`` devices have room for its share of one."""
    cdef int32_t bits = GPU_BIT if gpus < pod.num_gpu else 0
    bits |= CPU_BIT if cpu_left < pod.cpu else 0
    bits |= MEMORY_BIT if mem_left < pod.mem else 0
    return bits | (POD_SLOT_BIT if slots < 1 else 0)


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
    cdef int f
    for f in range(count):
        raw__n[select.feasible__f[f]] = select.raw__f[f]
    if select.normalise[term] != NORM_NONE:
        normalised(select.raw__f, count, select.normalise[term])
    for f in range(count):
        points__n[select.feasible__f[f]] = select.raw__f[f]


def picked(Selector select, int cls, uint64_t[::1] gpus__n):
    """The devices, as bits, that the class would get on every node that can host it now."""
    cdef int f, n, stage, count
    cdef const Pod* pod
    cdef Node node
    select.work.check_class(cls)
    pod = &select.work.classes[cls]
    count = Selector.feasible(select, pod, &stage)
    for f in range(count):
        # Only fgd looks at the cached fragmentation of a node, which is brought up to date on demand.
        n = select.feasible__f[f]
        node = select.nodes.exactly(n) if select.gpu_pick == PICK_FGD else select.nodes.at(n)
        gpus__n[n] = Selector.devices(select, n, &node, pod, select.gpu_pick)


cdef class RulesDecisionTrace(QueueLoop):
    """A run with rules that calls ``listener`` for the pods whose arrival number is marked in ``watched``.

    ``listener.before(seq, class, t)`` is called before a decision at ``t`` seconds and
    ``listener.after(seq, node, devices as bits, how)`` after it, with node -1 if the pod did not start. ``how`` is
    ``preemption``, ``backfill``, ``over_quota``, ``gang`` (all members start, or another one fits nowhere) or empty.
    A pod that could not start on an empty cluster either is never decided on:
    ``listener.never(seq, class, t, reason)`` is called instead.
    """

    def __init__(self, nodes, work, select, options, watched, listener):
        QueueLoop.__init__(self, nodes, work, select, options)
        self.line.close()    # every attempt is listened to
        self.watched, self.listener = watched, listener

    def move(self, int32_t slot):
        """As OnlineLoop.move, with calls of the listener."""
        is_watched = 0 <= slot < self.work.n_slots and marked(self.watched, self.work.slots[slot].seq)
        seq = self.work.slots[slot].seq if is_watched else -1
        if is_watched:
            self.listener.before(seq, self.work.slots[slot].cls, self.now)
        placed = OnlineLoop.move(self, slot)
        if is_watched:
            self.listener.after(seq, self.work.slots[slot].node if placed else -1, self.work.slots[slot].gpus, "")
        return placed

    cdef bint watches_any(self, int32_t slot) noexcept nogil:
        """Whether any pod of an entry is traced."""
        cdef int32_t at = self.membership.first(slot)
        while at >= 0:
            if marked(self.watched, self.work.slots[at].seq):
                return True
            at = self.membership.next(at)
        return False

    cdef int notify_before(self, int32_t slot) except -1:
        """A decision about an entry is about to be taken."""
        cdef int32_t at = self.membership.first(slot)
        while at >= 0:
            if marked(self.watched, self.work.slots[at].seq):
                self.listener.before(self.work.slots[at].seq, self.work.slots[at].cls, self.now)
            at = self.membership.next(at)
        return 0

    cdef int notify_after(self, int32_t slot, int reason, object how) except -1:
        """It is taken; ``reason`` why the pod ``failing`` did not start, or 0."""
        cdef int32_t at = self.membership.first(slot)
        while at >= 0:
            if marked(self.watched, self.work.slots[at].seq):
                self.listener.after(self.work.slots[at].seq, self.work.slots[at].node, self.work.slots[at].gpus,
                                    "gang" if reason and not how and at != self.failing else how)
            at = self.membership.next(at)
        return 0

    cdef int try_start(self, int32_t slot) except -1 nogil:
        """As RulesLoop.try_start, with calls of the listener."""
        cdef int reason
        if not self.watches_any(slot):
            return RulesLoop.try_start(self, slot)
        with gil:
            self.notify_before(slot)
        self.preemption.node = -1
        reason = RulesLoop.try_start(self, slot)
        with gil:
            how = "over_quota" if reason == OVER_QUOTA else "preemption" if self.preemption.node >= 0 else ""
            if reason == 0 and self.membership.members[slot].gang >= 0:
                how = "gang"
            self.notify_after(slot, reason, how)
        return reason

    cdef int hold_back(self, int32_t slot, int32_t over) except -1 nogil:
        """As QueueLoop.hold_back, with calls of the listener."""
        if self.watches_any(slot):
            with gil:
                self.notify_before(slot)
                self.notify_after(slot, OVER_QUOTA, "over_quota")
        return QueueLoop.hold_back(self, slot, over)

    cdef bint overtake(self, int32_t slot, Reservation* head) except -1 nogil:
        """As QueueLoop.overtake, with calls of the listener."""
        cdef bint started
        if not self.watches_any(slot):
            return QueueLoop.overtake(self, slot, head)
        with gil:
            self.notify_before(slot)
        started = QueueLoop.overtake(self, slot, head)
        with gil:
            self.notify_after(slot, 0, "backfill")
        return started

    cdef bint by_reservation(self, int32_t slot) except -1 nogil:
        """As QueueLoop.by_reservation, with calls of the listener; the first of the line overtakes no pod."""
        cdef bint first = self.work.head == slot
        cdef bint started
        if not self.watches_any(slot):
            return QueueLoop.by_reservation(self, slot)
        with gil:
            self.notify_before(slot)
        started = QueueLoop.by_reservation(self, slot)
        with gil:
            self.notify_after(slot, 0, "" if first and started else "backfill")
        return started

    cdef int drop_impossible(self, int32_t slot, int reason) except -1 nogil:
        """As RulesLoop.never, with calls of the listener."""
        if marked(self.watched, self.work.slots[slot].seq):
            with gil:
                self.listener.never(self.work.slots[slot].seq, self.work.slots[slot].cls, self.now, reason)
        return QueueLoop.drop_impossible(self, slot, reason)

    def filtered(self, int cls, int32_t[::1] reason__n, int64_t[::1] found__n, int64_t[::1] needed__n):
        """The first check every node fails for a class (a Reason; 0 none, -1 absent), what it has and what it needs."""
        cdef int n, g
        cdef NodeView view
        cdef Skew skew
        cdef const Pod* pod
        cdef const ClassConstraints* rule
        self.work.check_class(cls)
        pod, rule = &self.work.classes[cls], self.constraints.rule(cls)
        for n in range(self.nodes.count):
            found__n[n] = needed__n[n] = 0
            reason__n[n] = -1
            if not self.nodes.present[n]:
                continue
            self.constraints.view(n, cls, &view)
            reason__n[n] = self.constraints.failed_check(&view, cls)
            if reason__n[n] == NO_GPU_MODEL:
                found__n[n], needed__n[n] = self.nodes.model[n], <int64_t> pod.models
            elif reason__n[n] == NO_GPU:
                for g in range(self.nodes.num_gpu[n]):
                    found__n[n] += view.gpu_left[g] >= pod.milli
                if found__n[n] >= pod.num_gpu:
                    reason__n[n] = NO_GPU_MEMORY
                    found__n[n] = bin(self.constraints.fitting(&view, cls)).count("1")
                needed__n[n] = pod.num_gpu
            elif reason__n[n] == NO_CPU:
                found__n[n], needed__n[n] = view.cpu_left, pod.cpu
            elif reason__n[n] == NO_MEMORY:
                found__n[n], needed__n[n] = view.mem_left, pod.mem
            elif reason__n[n] == NO_EXTRA:
                for g in range(self.constraints.n_extra):
                    if view.extra_left[g] < rule.extra[g]:
                        found__n[n], needed__n[n] = view.extra_left[g], rule.extra[g]
                        break
            elif reason__n[n] == NO_POD_SLOT:
                found__n[n], needed__n[n] = self.nodes.max_pods[n] - view.pods, 1
            elif reason__n[n] == SPREAD or reason__n[n] == PEERS:
                self.constraints.spread.refuses(n, cls, NULL, &skew)
                found__n[n], needed__n[n] = skew.found, skew.most
            elif reason__n[n] == POD_LIMIT:
                found__n[n], needed__n[n] = view.group_pods, rule.most

    def lacking(self, int cls, int32_t[::1] lacks__n):
        """As the function ``lacking``, with further resources and rules of spread."""
        cdef int n, g, fit
        cdef NodeView view
        cdef Skew skew
        cdef const Pod* pod
        cdef const ClassConstraints* rule
        self.work.check_class(cls)
        pod, rule = &self.work.classes[cls], self.constraints.rule(cls)
        for n in range(self.nodes.count):
            lacks__n[n] = fit = 0
            if not self.nodes.present[n]:
                continue
            self.constraints.view(n, cls, &view)
            for g in range(self.nodes.num_gpu[n]):
                fit += view.gpu_left[g] >= pod.milli
            lacks__n[n] = lacks(pod, fit, view.cpu_left, view.mem_left, self.nodes.max_pods[n] - view.pods)
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

    cdef void mask(self, int cls, int count) noexcept nogil:
        """Mark devices with less memory left than the class requests as full, as a decision does."""
        cdef const ClassConstraints* rule = self.constraints.rule(cls)
        cdef int f
        if rule != NULL and rule.gpu_mem > 0 and self.work.classes[cls].num_gpu > 0:
            for f in range(count):
                self.constraints.mask(self.select.feasible__f[f], rule.gpu_mem)

    cdef void unmask(self, int cls, int count) noexcept nogil:
        """Undo mask()."""
        cdef const ClassConstraints* rule = self.constraints.rule(cls)
        cdef int f
        if rule != NULL and rule.gpu_mem > 0 and self.work.classes[cls].num_gpu > 0:
            for f in range(count):
                self.constraints.unmask(self.select.feasible__f[f])

    def scored(self, int cls, int term, int64_t[::1] raw__n, int64_t[::1] points__n):
        """Raw and normalised points of one term of the plan, on every node that can host the class now."""
        cdef int count
        self.work.check_class(cls)
        count = self.feasible(cls)
        if count == 0:
            return
        self.mask(cls, count)
        try:
            Selector.score(self.select, term, cls, &self.work.classes[cls], count)
        finally:
            self.unmask(cls, count)
        write_points(self.select, term, count, raw__n, points__n)

    def preferred(self, int cls, int part, int64_t[::1] raw__n):
        """Points of one part of the preferences, on every node that can host the class now."""
        cdef int f, count
        self.work.check_class(cls)
        count = self.feasible(cls)
        if count == 0:
            return
        self.constraints.preferences.score(part, cls, count, &self.select.feasible__f[0], &self.select.raw__f[0])
        for f in range(count):
            raw__n[self.select.feasible__f[f]] = self.select.raw__f[f]

    def picked(self, int cls, uint64_t[::1] gpus__n):
        """The devices, as bits, that the class would get on every node that can host it now."""
        cdef int f, n, count
        cdef Node node
        self.work.check_class(cls)
        count = self.feasible(cls)
        self.mask(cls, count)
        for f in range(count):
            n = self.select.feasible__f[f]
            node = self.nodes.exactly(n)
            gpus__n[n] = Selector.devices(self.select, n, &node, &self.work.classes[cls], self.select.gpu_pick)
        self.unmask(cls, count)
