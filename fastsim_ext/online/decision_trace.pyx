"""The online engine with a listener that hears of every decision on some pods, before and after it is taken.

In between nothing differs from any other run. While the listener is told, it may ask what the
decision is about to look at; the answers come from the engine's own filter, scores and device pick,
in their plain spelling: what a faster one keeps is neither asked nor touched.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from fastsim_ext.online.loop cimport OnlineLoop
from fastsim_ext.scores.device cimport device_fit_count
from fastsim_ext.select.scan cimport Selector, misfit, normalised
from fastsim_ext.state.pod_outcomes cimport NO_CPU, NO_GPU, NO_GPU_MODEL, NO_MEMORY, TOO_LARGE
from fastsim_ext.types cimport NORM_NONE, PICK_FGD, Node, Pod

ABSENT = -1
"""Stands for a reason where a node is not there at the moment."""


cdef class DecisionTrace(OnlineLoop):
    """A run that tells ``listener`` about the pods whose arrival number is marked in ``watched``.

    ``listener.before(seq, class, t)`` is called before a decision at ``t`` seconds and
    ``listener.after(seq, node, devices as bits)`` after it, with node -1 if there was none. A pod that
    no empty node can host is never decided on; the listener hears ``listener.never(seq, class, t, reason)``.
    """

    def __init__(self, nodes, work, select, options, watched, listener):
        OnlineLoop.__init__(self, nodes, work, select, options)
        self.watched, self.listener = watched, listener

    def move(self, int32_t slot):
        """As Online.move, told to the listener."""
        seen = 0 <= slot < self.work.n_slots and self.sees(self.work.slots[slot].seq)
        seq = self.work.slots[slot].seq if seen else -1
        if seen:
            self.listener.before(seq, self.work.slots[slot].cls, self.now)
        placed = OnlineLoop.move(self, slot)
        if seen and placed:
            self.listener.after(seq, self.work.slots[slot].node, self.work.slots[slot].gpus)
        elif seen:
            self.listener.after(seq, -1, 0)
        return placed

    cdef bint sees(self, int64_t seq) noexcept nogil:
        """Whether the listener wants to know about this pod."""
        return 0 <= seq < self.watched.shape[0] and self.watched[seq] != 0

    cdef int place(self, int32_t slot) except -1 nogil:
        """As Online.place, told to the listener."""
        cdef int reason
        if not self.sees(self.work.slots[slot].seq):
            return OnlineLoop.place(self, slot)
        with gil:
            self.listener.before(self.work.slots[slot].seq, self.work.slots[slot].cls, self.now)
        reason = OnlineLoop.place(self, slot)
        with gil:
            self.listener.after(self.work.slots[slot].seq, self.work.slots[slot].node, self.work.slots[slot].gpus)
        return reason

    cdef int refuse(self, int32_t slot, int reason) except -1 nogil:
        """As Online.refuse; of a pod that is too large the listener hears here."""
        if reason == TOO_LARGE and self.sees(self.work.slots[slot].seq):
            with gil:
                self.listener.never(self.work.slots[slot].seq, self.work.slots[slot].cls, self.now, reason)
        return OnlineLoop.refuse(self, slot, reason)


def filtered(Selector select, int cls, int32_t[::1] reason__n, int64_t[::1] found__n, int64_t[::1] needed__n):
    """The first check every node fails for a class (a Reason; 0 none, -1 absent), what it has and what it needs.

    Both are in the unit of the check: milli-CPU, MiB, pod slots, or devices with room for the class's share;
    for a model, the node's model id and the allowed ones as bits.
    """
    cdef int n
    cdef Node node
    cdef const Pod* pod
    select.work.known_class(cls)
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


def scored(Selector select, int cls, int term, int64_t[::1] raw__n, int64_t[::1] points__n):
    """Raw and normalised points of one term of the plan, on every node that can host the class now.

    A random term answers with the draw that the next decision makes.
    """
    cdef int f, stage, count
    cdef const Pod* pod
    select.work.known_class(cls)
    pod = &select.work.classes[cls]
    count = Selector.feasible(select, pod, &stage)
    if count == 0:
        return
    Selector.score(select, term, cls, pod, count)
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
    select.work.known_class(cls)
    pod = &select.work.classes[cls]
    count = Selector.feasible(select, pod, &stage)
    for f in range(count):
        # Only fgd looks at the cached fragmentation of a node, which is brought up to date on demand.
        n = select.feasible__f[f]
        node = select.nodes.exactly(n) if select.gpu_pick == PICK_FGD else select.nodes.at(n)
        gpus__n[n] = Selector.devices(select, n, &node, pod, select.gpu_pick)
