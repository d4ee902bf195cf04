"""The online engine with decisions from outside: it stops before each pod that some node can host.

Pods that fit nowhere are dropped without a decision, as the engine drops them. A decision for a node that cannot host
the pod drops it, too.
"""

cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.online.loop cimport DROP, OnlineLoop
from fastsim_ext.select.scan cimport Choice, Selector
from fastsim_ext.state.node_table cimport NodeTable, Totals
from fastsim_ext.state.pod_outcomes cimport NO_NODE
from fastsim_ext.state.pod_table cimport WorkTable
from fastsim_ext.types cimport FULL, PICK_FGD, Node, Pod

cdef enum:  # actions that are no node
    PLAN_CHOICE = -1

NODE_FEATURES = ("cpu_free", "memory_free", "gpu_free", "largest_gpu_free", "whole_gpus_free", "gpus")
POD_FEATURES = ("cpu", "memory", "num_gpu", "gpu", "arrived")


cdef class SteppedLoop(OnlineLoop):
    """One episode: feed() all arrivals, then begin(), and step() until it is over."""

    def __init__(self, NodeTable nodes, WorkTable work, Selector select, options, const double[::1] reward__t,
                 unsigned char[::1] stale__n, int64_t typical_count, int queue_rule=DROP):
        OnlineLoop.__init__(self, nodes, work, select, options)
        if self.queue_rule != queue_rule:
            raise ValueError(f"these decisions are for queue rule {queue_rule}, found {self.queue_rule}")
        if stale__n.shape[0] != nodes.count:
            raise ValueError(f"{stale__n.shape[0]} marks for {nodes.count} nodes")
        self.reward__t, self.stale__n, self.typical_count = reward__t, stale__n, typical_count
        self.most_cpu = max(1, *[nodes.cpu_cap[n] for n in range(nodes.count)])
        self.most_mem = max(1, *[nodes.mem_cap[n] for n in range(nodes.count)])
        self.stale__n[:] = 1
        self.action = PLAN_CHOICE

    def begin(self, float[:, ::1] node__nf, float[::1] pod__f, signed char[::1] fits__n):
        """Go on to the first decision and write its observation to the arrays; whether there is one."""
        self.stale__n[:] = 1
        if not self.next_decision():
            return False
        self.observe(node__nf, pod__f, fits__n)
        return True

    def step(self, int node, float[:, ::1] node__nf, float[::1] pod__f, signed char[::1] fits__n):
        """Place the pod and go on to the next decision: (reward, whether there is one)."""
        cdef double reward
        if not -1 <= node < self.nodes.count:
            raise IndexError(f"node {node} of {self.nodes.count}")
        self.act(node, &reward)
        more = self.next_decision() == 1
        if more:
            self.observe(node__nf, pod__f, fits__n)
        return reward, more

    def advice(self):
        """The node that the plan would choose now. It counts as no attempt, so later draws stay the same."""
        cdef Choice choice
        cdef object before = self.select.attempts
        self.select.choose(self.a_class[self.a_next], &choice)
        self.select.attempts = before
        return choice.node

    @property
    def pod_class(self):
        """The class of the pod that arrives next."""
        return self.a_class[self.a_next]

    def restart(self):
        """Back to the first arrival with an empty cluster."""
        cdef int32_t s
        for s in range(self.work.n_slots):
            if self.work.slots[s].seq >= 0:
                self.nodes.release(self.work.slots[s].node, &self.work.classes[self.work.slots[s].cls],
                                   self.work.slots[s].gpus)
                self.work.leave(s)
        while self.departures.size > 0:
            self.departures.pop()
        self.work.n_outcomes = self.n_rows = 0
        self.counts.running = self.counts.finished = self.counts.unplaced = self.counts.lost = 0
        self.counts.arrived_cpu = self.counts.arrived_gpu = self.counts.unplaced_cpu = self.counts.unplaced_gpu = 0
        self.now = self.began = 0
        self.area_from = -INFINITY
        for s in range(8):
            self.area[s] = 0
        self.stale__n[:] = 1
        self.events = self.a_next = self.a_seq = 0
        self.select.attempts = 0
        if self.checked:
            self.verify()

    cdef int next_decision(self) except -1 nogil:
        """Process all events before the next decision; 1 if there is one, 0 if the episode is over."""
        cdef double t
        cdef int stage
        cdef const Pod* pod
        self.action = PLAN_CHOICE
        while self.a_next < self.a_count:
            self.skip_void_departures()
            t = self.a_submit[self.a_next]
            if self.departures.size == 0 or self.departures.items[0].t > t:
                pod = &self.work.classes[self.a_class[self.a_next]]
                self.count = self.select.feasible(pod, &stage)
                if self.count > 0:
                    return 1
            self.loop(1)
        while self.loop(1 << 20) != 0:   # 0: done
            pass
        self.count = 0
        return 0

    cdef int choose(self, int cls, Choice* choice) except -1 nogil:
        """Choose the node of the action, or the plan's own choice."""
        cdef int f
        cdef Node node
        if self.action == PLAN_CHOICE:
            return self.select.choose(cls, choice)
        choice.node, choice.gpus, choice.reason = -1, 0, NO_NODE
        for f in range(self.count):
            if self.select.feasible__f[f] == self.action:
                choice.node = self.action
        if choice.node >= 0:
            node = self.nodes.exactly(choice.node) if self.select.gpu_pick == PICK_FGD else self.nodes.at(choice.node)
            choice.gpus = self.select.devices(choice.node, &node, &self.work.classes[cls], self.select.gpu_pick)
        self.select.attempts += 1
        return 0

    cdef void allocate(self, int32_t slot, const Choice* choice) noexcept nogil:
        """Start the pod on the chosen node, whose features are stale then."""
        self.stale__n[choice.node] = 1
        OnlineLoop.allocate(self, slot, choice)

    cdef int release(self, int32_t slot, int reason) except -1 nogil:
        """Remove a running pod from its node, whose features are stale then."""
        self.stale__n[self.work.slots[slot].node] = 1
        return OnlineLoop.release(self, slot, reason)

    cdef int act(self, int node, double* reward) except -1 nogil:
        """Process the arrival of the pod with this node as action; ``reward`` is the change of the value."""
        cdef double before = self.value()
        self.action = node
        self.loop(1)
        self.action = PLAN_CHOICE
        reward[0] = self.value() - before
        return 0

    cdef double value(self) noexcept nogil:
        """Value of the present state by the weights of the reward."""
        cdef int term
        cdef double total = 0
        for term in range(4):
            if self.reward__t[term] != 0:
                total += self.reward__t[term] * self.worth(term)
        return total

    @cython.cdivision(True)
    cdef double worth(self, int term) noexcept nogil:
        """One quantity of the present state, larger is better: pods, GPUs, GPUs, kW."""
        cdef Totals* total = &self.nodes.total
        if term == PLACED:
            return self.counts.running
        if term == ALLOCATION:
            return total.gpu_alloc / 1000.0
        if term == FRAGMENTATION:
            return -(total.frag[0] + total.frag[1] + total.frag[3] + total.frag[4] + total.frag[5] + total.frag[6]) / (
                1000.0 * self.typical_count)
        return -(total.cpu_mw + total.gpu_mw) / 1e6

    @cython.cdivision(True)
    cdef void observe(self, float[:, ::1] node__nf, float[::1] pod__f, signed char[::1] fits__n) noexcept nogil:
        """The observation: shares of capacity by node, the pod's request, and the nodes that can host it."""
        cdef int n
        self.observe_nodes(node__nf)
        for n in range(self.nodes.count):
            fits__n[n] = 0
        for n in range(self.count):
            fits__n[self.select.feasible__f[n]] = 1
        self.observe_pod(self.a_class[self.a_next], &pod__f[0])
        pod__f[4] = <float> self.a_next / self.a_count

    @cython.cdivision(True)
    cdef void observe_pod(self, int cls, float* pod__f) noexcept nogil:
        """The request of a pod of this class, in the first four places."""
        cdef const Pod* pod = &self.work.classes[cls]
        pod__f[0] = <float> pod.cpu / self.most_cpu
        pod__f[1] = <float> pod.mem / self.most_mem
        pod__f[2] = <float> pod.num_gpu / self.nodes.width
        pod__f[3] = <float> pod.milli / FULL

    @cython.cdivision(True)
    cdef void observe_nodes(self, float[:, ::1] node__nf) noexcept nogil:
        """Shares of capacity of the nodes that changed since the last observation."""
        cdef int n, g, whole, largest
        for n in range(self.nodes.count):
            if not self.stale__n[n]:
                continue
            self.stale__n[n] = 0
            whole = largest = 0
            for g in range(self.nodes.num_gpu[n]):
                largest = max(largest, self.nodes.gpu_left__ng[n, g])
                whole += self.nodes.gpu_left__ng[n, g] == FULL
            node__nf[n, 0] = <float> self.nodes.cpu_left[n] / max(self.nodes.cpu_cap[n], 1)
            node__nf[n, 1] = <float> self.nodes.mem_left[n] / max(self.nodes.mem_cap[n], 1)
            node__nf[n, 2] = <float> self.nodes.free[n] / (FULL * max(self.nodes.num_gpu[n], 1))
            node__nf[n, 3] = <float> largest / FULL
            node__nf[n, 4] = <float> whole / max(self.nodes.num_gpu[n], 1)
            node__nf[n, 5] = <float> self.nodes.num_gpu[n] / self.nodes.width


def stepped(list episodes, const int64_t[::1] node__e, float[:, :, ::1] nodes__enf, float[:, ::1] pod__ef,
            signed char[:, ::1] fits__en, double[::1] reward__e, unsigned char[::1] over__e):
    """One step of every episode; those that are over begin again, which is marked in ``over__e``."""
    cdef SteppedLoop episode
    cdef int e
    if not len(episodes) == node__e.shape[0] == nodes__enf.shape[0] == pod__ef.shape[0] == fits__en.shape[0]:
        raise ValueError("the arrays are for another number of episodes")
    for e in range(node__e.shape[0]):  # before one of them goes on
        episode = episodes[e]
        if not -1 <= node__e[e] < episode.nodes.count:
            raise IndexError(f"node {node__e[e]} of {episode.nodes.count}")
    for e in range(node__e.shape[0]):
        episode = episodes[e]
        episode.act(<int> node__e[e], &reward__e[e])
        over__e[e] = episode.next_decision() == 0
        if over__e[e]:
            episode.restart()
            episode.next_decision()
        episode.observe(nodes__enf[e], pod__ef[e], fits__en[e])
