"""What classes ask of a node besides CPU, memory and devices, and the state of the nodes that answers it.

A device without enough memory left looks full to a pod that asks for device memory, in the filter, in the scores and
in the choice of devices. A decision about such a class looks at every node.
"""

from libc.math cimport NAN
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy
from fastsim_ext.scores.device cimport device_are
from fastsim_ext.select.scan cimport Choice, Selector
from fastsim_ext.state.node_table cimport NodeTable
from fastsim_ext.state.pod_membership cimport PodMembership
from fastsim_ext.state.pod_outcomes cimport (
    NO_CPU, NO_EXTRA, NO_GPU, NO_GPU_MODEL, NO_MATCH, NO_MEMORY, NO_NODE, NO_POD_SLOT, POD_LIMIT, TOO_LARGE,
)
from fastsim_ext.state.pod_table cimport WorkTable
from fastsim_ext.types cimport Node, Pod


cdef class ConstraintTable:
    """Conditions by class, and device memory and further resources by node."""

    def __init__(self, NodeTable nodes, WorkTable work, Selector select, PodMembership roster, columns):
        self.nodes, self.work, self.select, self.roster = nodes, work, select, roster
        self.gpu_mem_cap, self.gpu_mem_left__ng = columns["gpu_mem_cap"], columns["gpu_mem_left"]
        self.extra_cap__nr, self.extra_left__nr = columns["extra_cap"], columns["extra_left"]
        self.kept__ng, self.masked = columns["kept"], columns["masked"]
        self.n_extra = columns["n_extra"]
        if self.n_extra > MAX_EXTRA:
            raise ValueError(f"{self.n_extra} further resources, at most {MAX_EXTRA}")

    def __dealloc__(self):
        free(self.rule_of)
        free(self.rules)
        free(self.allowed)

    def add_rule(self, int cls, int64_t gpu_mem, extra, bint foreign, int32_t group, int32_t most, allowed):
        """Conditions of a class: MiB by device, amounts by resource, whether it wants one that no node has, a group
        and its limit, and which nodes may host it (a byte for each, or None)."""
        cdef ClassConstraints* rule
        cdef int r
        cdef int64_t n = self.nodes.count
        cdef const unsigned char* row
        self.know(cls)
        if self.n_rules == self.rule_room:
            rule = <ClassConstraints*> realloc(self.rules, (2 * self.rule_room + 16) * sizeof(ClassConstraints))
            if rule == NULL:
                raise MemoryError()
            self.rules, self.rule_room = rule, 2 * self.rule_room + 16
        rule = &self.rules[self.n_rules]
        rule.gpu_mem, rule.group, rule.most, rule.allowed = gpu_mem, group, most, -1
        rule.foreign = foreign
        self.counts_groups = self.counts_groups or most >= 0
        for r in range(self.n_extra):
            rule.extra[r] = extra[r]
        if allowed is not None:
            if len(allowed) != n:
                raise ValueError(f"{len(allowed)} marks for {n} nodes")
            self.spread(self.n_allowed + n)
            row = allowed
            memcpy(self.allowed + self.n_allowed, row, n)
            rule.allowed = self.n_allowed
            self.n_allowed += n
        self.rule_of[cls] = self.n_rules
        self.n_rules += 1

    cdef int spread(self, int64_t bytes_wanted) except -1:
        """Room for so many marks."""
        cdef uint8_t* grown
        if bytes_wanted > self.allowed_room:
            grown = <uint8_t*> realloc(self.allowed, 2 * bytes_wanted)
            if grown == NULL:
                raise MemoryError()
            self.allowed, self.allowed_room = grown, 2 * bytes_wanted
        return 0

    cdef int know(self, int cls) except -1:
        """Room for what is asked by class ``cls`` and those before it."""
        cdef int32_t* grown
        cdef int c
        if cls >= self.class_room:
            grown = <int32_t*> realloc(self.rule_of, (2 * cls + 64) * sizeof(int32_t))
            if grown == NULL:
                raise MemoryError()
            for c in range(self.class_room, 2 * cls + 64):
                grown[c] = -1
            self.rule_of, self.class_room = grown, 2 * cls + 64
        return 0

    cdef const ClassConstraints* rule(self, int cls) noexcept nogil:
        """The conditions of a class, or NULL."""
        if cls >= self.class_room or self.rule_of[cls] < 0:
            return NULL
        return &self.rules[self.rule_of[cls]]

    cdef void look(self, int n, int cls, NodeView* look) noexcept nogil:
        """Node ``n`` as it is now, for a pod of class ``cls``."""
        cdef const ClassConstraints* rule = self.rule(cls)
        cdef int g
        cdef int32_t at
        look.n, look.pods, look.group_pods = n, self.nodes.pods[n], 0
        look.cpu_left, look.mem_left = self.nodes.cpu_left[n], self.nodes.mem_left[n]
        for g in range(self.nodes.num_gpu[n]):
            look.gpu_left[g] = self.nodes.gpu_left__ng[n, g]
            look.gpu_mem_left[g] = self.gpu_mem_left__ng[n, g]
        for g in range(self.n_extra):
            look.extra_left[g] = self.extra_left__nr[n, g]
        if rule != NULL and rule.most >= 0:
            at = self.roster.first__n[n]
            while at >= 0:
                look.group_pods += self.roster.members[at].group == rule.group
                at = self.roster.members[at].next_on_node

    cdef void shift(self, NodeView* look, int cls, uint64_t gpus, int32_t group, int asking, int sign) noexcept nogil:
        """A pod of class ``cls`` comes to (-1) or goes from (1) an imagined node that class ``asking`` looks at."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef const ClassConstraints* rule = self.rule(cls)
        cdef const ClassConstraints* theirs = self.rule(asking)
        cdef int g
        look.cpu_left += sign * pod.cpu
        look.mem_left += sign * pod.mem
        look.pods -= sign
        for g in range(self.nodes.num_gpu[look.n]):
            if (gpus >> g) & 1:
                look.gpu_left[g] += sign * pod.milli
                if rule != NULL:
                    look.gpu_mem_left[g] += sign * rule.gpu_mem
        if rule != NULL:
            for g in range(self.n_extra):
                look.extra_left[g] += sign * rule.extra[g]
        if theirs != NULL and theirs.most >= 0 and group == theirs.group:
            look.group_pods -= sign

    cdef int stage(self, const NodeView* look, int cls) noexcept nogil:
        """The first check the node fails for a pod of class ``cls``, as a Reason; 0 if it can host it."""
        cdef const ClassConstraints* rule = self.rule(cls)
        cdef int lack
        if rule != NULL and rule.allowed >= 0 and not self.allowed[rule.allowed + look.n]:
            return NO_MATCH
        lack = self.lacking(look, cls)
        if lack == 0 and rule != NULL and rule.most >= 0 and look.group_pods + 1 > rule.most:
            return POD_LIMIT
        return lack

    cdef int lacking(self, const NodeView* look, int cls) noexcept nogil:
        """The first amount that the node has too little of, as a Reason; 0 if it has enough of all."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef const ClassConstraints* rule = self.rule(cls)
        cdef int g, fit = 0
        if pod.num_gpu > 0:
            if pod.models != 0 and (self.nodes.model[look.n] < 0
                                    or not (pod.models >> self.nodes.model[look.n]) & 1):
                return NO_GPU_MODEL
            for g in range(self.nodes.num_gpu[look.n]):
                fit += look.gpu_left[g] >= pod.milli and (rule == NULL or look.gpu_mem_left[g] >= rule.gpu_mem)
            if fit < pod.num_gpu:
                return NO_GPU
        if look.cpu_left < pod.cpu:
            return NO_CPU
        if look.mem_left < pod.mem:
            return NO_MEMORY
        if rule != NULL:
            for g in range(self.n_extra):
                if look.extra_left[g] < rule.extra[g]:
                    return NO_EXTRA
            if rule.foreign:
                return NO_EXTRA
        return NO_POD_SLOT if look.pods >= self.nodes.max_pods[look.n] else 0

    cdef uint64_t fitting(self, const NodeView* look, int cls) noexcept nogil:
        """The devices with room for one device's share of the pod."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef const ClassConstraints* rule = self.rule(cls)
        cdef uint64_t gpus = 0
        cdef int g
        for g in range(self.nodes.num_gpu[look.n]):
            if look.gpu_left[g] >= pod.milli and (rule == NULL or look.gpu_mem_left[g] >= rule.gpu_mem):
                gpus |= (<uint64_t> 1) << g
        return gpus

    cdef uint64_t tightest(self, const NodeView* look, int cls) noexcept nogil:
        """The devices with least left that serve the pod, the lower index on ties."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef uint64_t open_ = self.fitting(look, cls) if pod.num_gpu > 0 else 0
        cdef uint64_t gpus = 0
        cdef int g, best, _
        for _ in range(pod.num_gpu):
            best = -1
            for g in range(self.nodes.num_gpu[look.n]):
                if (open_ >> g) & 1 and (best < 0 or look.gpu_left[g] < look.gpu_left[best]):
                    best = g
            if best < 0:
                break
            gpus |= (<uint64_t> 1) << best
            open_ &= ~((<uint64_t> 1) << best)
        return gpus

    cdef void hold(self, int n, int cls, uint64_t gpus, int sign) noexcept nogil:
        """Node ``n`` gives (-1) or takes back (1) what the class asks for further."""
        cdef const ClassConstraints* rule = self.rule(cls)
        cdef int g
        if rule == NULL:
            return
        if rule.gpu_mem > 0:
            for g in range(self.nodes.num_gpu[n]):
                if (gpus >> g) & 1:
                    self.gpu_mem_left__ng[n, g] += sign * rule.gpu_mem
        for g in range(self.n_extra):
            self.extra_left__nr[n, g] += sign * rule.extra[g]

    cdef void vacate(self, int n, NodeView* look) noexcept nogil:
        """Node ``n`` as it looks without pods."""
        cdef int g
        look.n, look.pods, look.group_pods = n, 0, 0
        look.cpu_left, look.mem_left = self.nodes.cpu_cap[n], self.nodes.mem_cap[n]
        for g in range(self.nodes.num_gpu[n]):
            look.gpu_left[g], look.gpu_mem_left[g] = 1000, self.gpu_mem_cap[n]
        for g in range(self.n_extra):
            look.extra_left[g] = self.extra_cap__nr[n, g]

    cdef int hindrance(self, int cls) noexcept nogil:
        """Why no node of the table, when empty and present, could host the class; 0 if one could.

        NO_MATCH if one is large enough, but its labels, taints or name keep the class away; TOO_LARGE if none is.
        """
        cdef int n, found = TOO_LARGE
        cdef NodeView empty
        for n in range(self.nodes.count):
            self.vacate(n, &empty)
            if self.lacking(&empty, cls) != 0:
                continue
            if self.stage(&empty, cls) == 0:
                return 0
            if self.stage(&empty, cls) == NO_MATCH:
                found = NO_MATCH
        return found

    cdef int64_t seats(self, int n, int cls) noexcept nogil:
        """How many pods of the class node ``n`` hosts when nobody else is there."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef const ClassConstraints* rule = self.rule(cls)
        cdef int64_t most, each
        cdef int g
        cdef NodeView empty
        self.vacate(n, &empty)
        if self.stage(&empty, cls) != 0:
            return 0
        most = self.nodes.max_pods[n]
        if pod.cpu > 0:
            most = min(most, empty.cpu_left // pod.cpu)
        if pod.mem > 0:
            most = min(most, empty.mem_left // pod.mem)
        if pod.num_gpu > 0:
            each = 1000 // pod.milli
            if rule != NULL and rule.gpu_mem > 0:
                each = min(each, self.gpu_mem_cap[n] // rule.gpu_mem)
            most = min(most, self.nodes.num_gpu[n] * each // pod.num_gpu)
        if rule == NULL:
            return most
        for g in range(self.n_extra):
            if rule.extra[g] > 0:
                most = min(most, empty.extra_left[g] // rule.extra[g])
        return most if rule.most < 0 else min(most, <int64_t> rule.most)

    cdef bint hopeless(self, int n, int cls) noexcept nogil:
        """Whether a glance says that node ``n``, even when empty, cannot host the class."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef const ClassConstraints* rule = self.rule(cls)
        if self.nodes.cpu_cap[n] < pod.cpu or self.nodes.mem_cap[n] < pod.mem or self.nodes.num_gpu[n] < pod.num_gpu:
            return True
        if rule != NULL and rule.allowed >= 0 and not self.allowed[rule.allowed + n]:
            return True
        return pod.num_gpu > 0 and pod.models != 0 and (
            self.nodes.model[n] < 0 or not (pod.models >> self.nodes.model[n]) & 1)

    cdef int choose(self, int cls, Choice* choice, int barred, int alone) except -1 nogil:
        """As Selector.choose, without the node ``barred`` or with no other than ``alone`` (-1: neither)."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef const ClassConstraints* rule = self.rule(cls)
        cdef bint memory = rule != NULL and rule.gpu_mem > 0 and pod.num_gpu > 0
        cdef int n, f, reason, best = 0, count = 0
        cdef NodeView look
        cdef Node node
        choice.node, choice.gpus, choice.reason = -1, 0, NO_NODE
        for n in range(self.nodes.count):
            if not self.nodes.present[n] or n == barred or (alone >= 0 and n != alone):
                continue
            self.look(n, cls, &look)
            reason = self.stage(&look, cls)
            choice.reason = max(choice.reason, reason)
            if reason == 0:
                self.select.feasible__f[count] = n
                count += 1
                if memory:
                    self.mask(n, rule.gpu_mem)
        if count > 1:
            self.select.uncached = True
            self.select.rank(cls, pod, count)
            self.select.uncached = False
            for f in range(1, count):
                if self.select.total__f[f] > self.select.total__f[best]:
                    best = f
        if count > 0:
            choice.node = self.select.feasible__f[best]
            node = self.nodes.exactly(choice.node)
            choice.gpus = Selector.devices(self.select, choice.node, &node, pod, self.select.gpu_pick)
        if memory:
            for f in range(count):
                self.unmask(self.select.feasible__f[f])
        self.select.attempts += 1
        return 0

    cdef int stay(self, int cls, int n, uint64_t gpus, Choice* choice) except -1 nogil:
        """As Selector.stay; labels and limits of groups do not matter, because the pod is there already."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef const ClassConstraints* rule = self.rule(cls)
        cdef bint memory = rule != NULL and rule.gpu_mem > 0 and pod.num_gpu > 0
        cdef NodeView look
        cdef Node node
        choice.node, choice.gpus, choice.reason = -1, gpus, NO_NODE
        if self.nodes.present[n]:
            self.look(n, cls, &look)
            choice.reason = self.lacking(&look, cls)
            if choice.reason == 0 and gpus != 0 and not device_are(gpus, self.fitting(&look, cls), pod.num_gpu):
                choice.reason = NO_GPU
            if choice.reason == 0:
                choice.node = n
            if choice.node >= 0 and gpus == 0:
                if memory:
                    self.mask(n, rule.gpu_mem)
                node = self.nodes.exactly(n)
                choice.gpus = Selector.devices(self.select, n, &node, pod, self.select.gpu_pick)
                if memory:
                    self.unmask(n)
        self.select.attempts += 1
        return 0

    cdef void mask(self, int n, int64_t wanted) noexcept nogil:
        """Show the devices with less memory left than wanted as full."""
        cdef int g
        self.masked[n] = 0
        for g in range(self.nodes.num_gpu[n]):
            self.kept__ng[n, g] = self.nodes.gpu_left__ng[n, g]
            if self.gpu_mem_left__ng[n, g] < wanted:
                self.nodes.gpu_left__ng[n, g] = 0
                self.masked[n] = 1
        if self.masked[n]:
            self.nodes.frag[n] = self.nodes.records[n].frag = NAN

    cdef void unmask(self, int n) noexcept nogil:
        """Show all devices as they are."""
        cdef int g
        if self.masked[n]:
            for g in range(self.nodes.num_gpu[n]):
                self.nodes.gpu_left__ng[n, g] = self.kept__ng[n, g]
            self.nodes.frag[n] = self.nodes.records[n].frag = NAN
            self.masked[n] = 0
