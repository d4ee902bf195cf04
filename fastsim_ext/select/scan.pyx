"""One pod, one decision: filter, score, normalise, weigh, pick the node, pick its devices.

The plain selector, which evaluates every node for every pod. A faster one must return the same
``Choice`` for the same state.
"""

cimport cython
from libc.math cimport isnan
from libc.stdint cimport int64_t, uint64_t
from fastsim_ext.random cimport STREAM_GPU, STREAM_SCORE, draw_below
from fastsim_ext.scores.device cimport (
    device_all_free, device_fit_count, device_idle, device_loosest, device_nth_fit, device_tightest,
)
from fastsim_ext.scores.dot cimport dot_points
from fastsim_ext.scores.frag cimport frag_amount, frag_growth
from fastsim_ext.scores.points cimport points_raw
from fastsim_ext.scores.power cimport power_points, power_saved
from fastsim_ext.state.node_table cimport NodeTable
from fastsim_ext.state.pod_outcomes cimport NO_CPU, NO_GPU, NO_GPU_MODEL, NO_MEMORY, NO_NODE, NO_POD_SLOT
from fastsim_ext.state.pod_table cimport WorkTable
from fastsim_ext.types cimport (
    FGD, FULL, MIN_MAX_100, NORM_NONE, PICK_DOT, PICK_FGD, PICK_PWR, PICK_RANDOM, PICK_WORST, PWR, PYTHON, RANDOM, Node,
    Pod,
)


cdef int misfit(const Node* node, const Pod* pod, int pods, int max_pods) noexcept nogil:
    """The first check that the node fails for the pod, as a Reason; 0 if it can host the pod."""
    if pod.num_gpu > 0:
        if pod.models != 0 and (node.model < 0 or not (pod.models >> node.model) & 1):
            return NO_GPU_MODEL
        if device_fit_count(node, pod.milli) < pod.num_gpu:
            return NO_GPU
    if node.cpu_left < pod.cpu:
        return NO_CPU
    if node.mem_left < pod.mem:
        return NO_MEMORY
    return NO_POD_SLOT if pods >= max_pods else 0


@cython.cdivision(True)
cdef void normalised(int64_t[::1] raw__f, int count, int normalise) noexcept nogil:
    """Scale raw points over the feasible nodes to 0..100; equal points become 0 or 100."""
    cdef int f
    cdef int64_t low = raw__f[0]
    cdef int64_t high = raw__f[0]
    for f in range(1, count):
        low = min(low, raw__f[f])
        high = max(high, raw__f[f])
    for f in range(count):
        if low == high:
            raw__f[f] = 100 if normalise == MIN_MAX_100 else 0
        else:
            raw__f[f] = (raw__f[f] - low) * 100 / (high - low)


cdef class NodeFilter:
    """Conditions of classes besides CPU, memory and devices."""

    cdef int refusal(self, int n, int cls) noexcept nogil:
        """The first check that node ``n`` fails for a pod of class ``cls``, as a Reason; 0 if it can host it."""
        return 0


cdef class Selector:
    """Executes a plan: its terms, the device pick and the tie rule (smallest position)."""

    def __init__(self, NodeTable nodes, WorkTable work, plan, uint64_t seed, scorer):
        self.nodes, self.work, self.seed, self.scorer = nodes, work, seed, scorer
        self.kernel, self.normalise, self.weight = plan["kernel"], plan["normalise"], plan["weight"]
        self.dim, self.norm = plan["dim"], plan["norm"]
        self.gpu_pick, self.gpu_dim, self.gpu_norm = plan["gpu_pick"], plan["gpu_dim"], plan["gpu_norm"]
        self.feasible__f, self.raw__f, self.total__f = plan["feasible"], plan["raw"], plan["total"]

    def raw(self, int kernel, int dim, int norm, int n, int cls):
        """(raw points, devices as bits) of one kernel on node ``n`` as it is now."""
        cdef uint64_t gpus
        cdef Node node
        self.nodes.check_node(n)
        self.work.check_class(cls)
        node = self.nodes.exactly(n) if kernel == FGD else self.nodes.at(n)
        points = points_raw(kernel, &node, &self.work.classes[cls], &self.nodes.target.typical, dim, norm, &gpus)
        if kernel == PWR and misfit(&node, &self.work.classes[cls], 0, 1) == 0:
            alone = power_points(&node, &self.work.classes[cls])
            if alone != points:
                raise ArithmeticError(f"node {n}, class {cls}: {alone} points without devices, {points} with them")
        return points, gpus

    def pick(self, int gpu_pick, int n, int cls):
        """The devices, as bits, that a pick rule takes on node ``n`` as it is now."""
        cdef Node node
        self.nodes.check_node(n)
        self.work.check_class(cls)
        node = self.nodes.exactly(n) if gpu_pick == PICK_FGD else self.nodes.at(n)
        return self.devices(n, &node, &self.work.classes[cls], gpu_pick)

    def hosts(self, int cls):
        """Whether any node could host the class when empty."""
        self.work.check_class(cls)
        return self.nodes.lasting_obstacle(&self.work.classes[cls]) == 0

    cpdef int verify(self) except -1:
        """Check the state between decisions; a plain selector has none."""
        return 0

    cdef void prefetch(self, int n) noexcept nogil:
        """Prefetch node ``n``, which will change soon."""
        self.nodes.prefetch(n)

    cdef int choose(self, int cls, Choice* choice) except -1 nogil:
        """Decide where a pod of class ``cls`` goes; counts as one attempt."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef int f, stage, best = 0
        cdef int count = self.feasible(pod, &stage)
        choice.node = -1
        choice.gpus = 0
        choice.reason = stage
        if count > 1:
            self.rank(cls, pod, count)
            for f in range(1, count):
                if self.total__f[f] > self.total__f[best]:   # ties: the smallest position
                    best = f
        if count > 0:
            choice.node = self.feasible__f[best]
            choice.gpus = self.devices(choice.node, &self.nodes.records[choice.node], pod, self.gpu_pick)
        self.attempts += 1
        return 0

    cdef int check_binding(self, int cls, int n, uint64_t gpus, Choice* choice) except -1 nogil:
        """As choose(), for a pod bound to node ``n`` and, unless ``gpus`` is 0, to those devices."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef uint64_t free = 0
        cdef Node node
        cdef int g
        choice.node, choice.gpus, choice.reason = -1, gpus, NO_NODE
        if self.nodes.present[n]:
            node = self.nodes.exactly(n)
            choice.reason = misfit(&node, pod, self.nodes.pods[n], self.nodes.max_pods[n])
            for g in range(self.nodes.num_gpu[n]):
                if self.nodes.gpu_left__ng[n, g] >= pod.milli:
                    free |= (<uint64_t> 1) << g
            if choice.reason == 0 and gpus != 0 and not device_all_free(gpus, free, pod.num_gpu):
                choice.reason = NO_GPU
            if choice.reason == 0:
                choice.node = n
                if gpus == 0:
                    choice.gpus = Selector.devices(self, n, &node, pod, self.gpu_pick)
        self.attempts += 1
        return 0

    cdef int feasible(self, const Pod* pod, int* stage) noexcept nogil:
        """List the nodes that can host the pod; without any, ``stage`` is the last check that a node failed."""
        cdef int n, g, fit, count = 0
        for n in range(self.nodes.count):
            if (self.nodes.cpu_left[n] < pod.cpu or self.nodes.mem_left[n] < pod.mem or not self.nodes.present[n]
                    or self.nodes.pods[n] >= self.nodes.max_pods[n]):
                continue
            if pod.num_gpu > 0:
                if pod.models != 0 and (self.nodes.model[n] < 0 or not (pod.models >> self.nodes.model[n]) & 1):
                    continue
                fit = 0
                for g in range(self.nodes.num_gpu[n]):
                    fit += self.nodes.gpu_left__ng[n, g] >= pod.milli
                if fit < pod.num_gpu:
                    continue
            self.feasible__f[count] = n
            count += 1
        if count == 0:
            stage[0] = self.furthest(pod)
        return count

    cdef int furthest(self, const Pod* pod) noexcept nogil:
        """The last check that any node failed for the pod, as a Reason."""
        cdef int n
        cdef int stage = NO_NODE
        for n in range(self.nodes.count):
            if self.nodes.present[n]:
                stage = max(stage, misfit(&self.nodes.records[n], pod, self.nodes.pods[n], self.nodes.max_pods[n]))
        return stage

    cdef int rank(self, int cls, const Pod* pod, int count) except -1 nogil:
        """Sum weight times normalised points over the terms, for every feasible node."""
        cdef int term, f
        for f in range(count):
            self.total__f[f] = 0
        for term in range(self.kernel.shape[0]):
            self.add_term(term, cls, pod, count)
        return 0

    cdef int add_term(self, int term, int cls, const Pod* pod, int count) except -1 nogil:
        """Add weight times normalised points of one term to the totals."""
        cdef int f
        self.score(term, cls, pod, count)
        if self.normalise[term] != NORM_NONE:
            normalised(self.raw__f, count, self.normalise[term])
        for f in range(count):
            self.total__f[f] += self.weight[term] * self.raw__f[f]
        return 0

    cdef int score(self, int term, int cls, const Pod* pod, int count) except -1 nogil:
        """Raw points of one term on every feasible node."""
        cdef int f, n
        cdef int kernel = self.kernel[term]
        cdef uint64_t gpus
        cdef Node node
        if kernel == RANDOM:
            for f in range(count):
                self.raw__f[f] = 0
            self.raw__f[draw_below(count, self.seed, STREAM_SCORE, self.attempts)] = 100
        elif kernel == PYTHON:
            with gil:
                self.python_points(term, cls, count)
        else:
            for f in range(count):
                n = self.feasible__f[f]
                node = self.nodes.exactly(n) if kernel == FGD else self.nodes.at(n)
                self.raw__f[f] = points_raw(kernel, &node, pod, &self.nodes.target.typical, self.dim[term],
                                            self.norm[term], &gpus)
        return 0

    cdef int python_points(self, int term, int cls, int count) except -1:
        """Raw points of a user's scorer, called once for all nodes."""
        cdef const int64_t[::1] points
        cdef int f
        cdef object mask = self.scorer.feasible
        cdef unsigned char[::1] marks = mask
        marks[:] = 0
        for f in range(count):
            marks[self.feasible__f[f]] = 1
        points = self.scorer(term, cls)
        for f in range(count):
            self.raw__f[f] = points[self.feasible__f[f]]
        return 0

    cdef uint64_t devices(self, int n, const Node* node, const Pod* pod, int pick) noexcept nogil:
        """The devices a pod gets on its node; whole devices are always the lowest free ones."""
        cdef uint64_t gpus = 0
        cdef Node exact
        cdef int which
        if pod.num_gpu == 0:
            return 0
        if pod.num_gpu > 1 or pod.milli == FULL:
            return device_idle(node, pod.num_gpu)
        if pick == PICK_WORST:
            return device_loosest(node, pod.milli)
        if pick == PICK_RANDOM:
            which = draw_below(device_fit_count(node, pod.milli), self.seed, STREAM_GPU, self.attempts)
            return device_nth_fit(node, pod.milli, which)
        if pick == PICK_FGD:
            exact = node[0]
            if isnan(exact.frag):
                exact.frag = frag_amount(node.cpu_left, node.gpu_left, node, &self.nodes.target.typical)
            frag_growth(&exact, pod, &self.nodes.target.typical, &gpus)
        elif pick == PICK_PWR:
            power_saved(node, pod, &gpus)
        elif pick == PICK_DOT:
            dot_points(node, pod, self.gpu_dim, self.gpu_norm, &gpus)
        # The tightest device for `best`, and where all devices were merged into one vector.
        return gpus if gpus != 0 else device_tightest(node, pod.milli)
