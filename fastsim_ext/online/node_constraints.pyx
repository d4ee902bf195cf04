"""Constraints of pod classes besides CPU, memory and devices, and the node state they are checked against.

In the filter, the scores and the choice of devices, a device with less memory left than a pod requests counts as full.
A decision about a class that requests such memory, or has preferences, looks at every node, as do all decisions of
plans whose totals are normalised over the nodes. Others look at stored totals, best first, until a node lets them in.
"""

from libc.math cimport NAN
from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy
from fastsim_ext.online.preferences cimport PreferenceTable
from fastsim_ext.online.topology_spread cimport MAX_SPREAD, Skew, SpreadTable
from fastsim_ext.scores.device cimport device_all_free
from fastsim_ext.select.indexed cimport IndexedSelector
from fastsim_ext.select.scan cimport Choice, NodeFilter, Selector
from fastsim_ext.state.node_table cimport NodeTable
from fastsim_ext.state.pod_membership cimport PodMembership
from fastsim_ext.state.pod_outcomes cimport (
    NO_CPU, NO_EXTRA, NO_GPU, NO_GPU_MEMORY, NO_GPU_MODEL, NO_MATCH, NO_MEMORY, NO_NODE, NO_POD_SLOT, POD_LIMIT, SPREAD,
    checks_passed, lasting_reason,
)
from fastsim_ext.state.pod_table cimport WorkTable
from fastsim_ext.types cimport MAX_EXTRA, Node, Pod


cdef class ConstraintTable(NodeFilter):
    """Conditions by class, and device memory and further resources by node."""

    def __init__(self, NodeTable nodes, WorkTable work, Selector select, PodMembership membership, columns):
        self.nodes, self.work, self.select, self.membership = nodes, work, select, membership
        self.indexed = select if isinstance(select, IndexedSelector) else None
        if self.indexed is not None and self.indexed.table.normalised:
            self.indexed = None
        self.spread = SpreadTable(nodes, membership)
        self.preferences = PreferenceTable(nodes, membership, columns["preference_weights"])
        self.gpu_mem_cap, self.gpu_mem_left__ng = columns["gpu_mem_cap"], columns["gpu_mem_left"]
        self.extra_cap__nr, self.extra_left__nr = columns["extra_cap"], columns["extra_left"]
        self.unmasked__ng, self.masked = columns["unmasked"], columns["masked"]
        self.n_extra = columns["n_extra"]
        if self.n_extra > MAX_EXTRA:
            raise ValueError(f"{self.n_extra} further resources, at most {MAX_EXTRA}")

    def __dealloc__(self):
        free(self.rule_of)
        free(self.rules)
        free(self.allowed)

    def add_rule(self, int cls, int64_t gpu_mem, extra, bint foreign, int32_t group, int32_t most, allowed,
                 sets=(), spread=()):
        """Conditions of a class: MiB by device, amounts by resource, whether it needs one that no node has, a group
        and its limit, which nodes may host it (a byte for each, or None), sets and rules as in ``SpreadTable.add``."""
        cdef ClassConstraints* rule
        cdef int r
        cdef int64_t n = self.nodes.count
        cdef const unsigned char* row
        self.reserve_classes(cls)
        if self.n_rules == self.rule_room:
            rule = <ClassConstraints*> realloc(self.rules, (2 * self.rule_room + 16) * sizeof(ClassConstraints))
            if rule == NULL:
                raise MemoryError()
            self.rules, self.rule_room = rule, 2 * self.rule_room + 16
        rule = &self.rules[self.n_rules]
        rule.gpu_mem, rule.group, rule.most, rule.allowed = gpu_mem, group, most, -1
        rule.foreign = foreign
        self.counts_groups = self.counts_groups or most >= 0 or bool(spread)
        if sets or spread:
            self.spread.add(cls, sets, spread)
        for r in range(self.n_extra):
            rule.extra[r] = extra[r]
        if allowed is not None:
            if len(allowed) != n:
                raise ValueError(f"{len(allowed)} marks for {n} nodes")
            self.reserve_marks(self.n_allowed + n)
            row = allowed
            memcpy(self.allowed + self.n_allowed, row, n)
            rule.allowed = self.n_allowed
            self.n_allowed += n
        self.rule_of[cls] = self.n_rules
        self.n_rules += 1

    cdef int reserve_marks(self, int64_t bytes_wanted) except -1:
        """Room for so many marks."""
        cdef uint8_t* grown
        if bytes_wanted > self.allowed_room:
            grown = <uint8_t*> realloc(self.allowed, 2 * bytes_wanted)
            if grown == NULL:
                raise MemoryError()
            self.allowed, self.allowed_room = grown, 2 * bytes_wanted
        return 0

    cdef int reserve_classes(self, int cls) except -1:
        """Room for the constraints of class ``cls`` and those before it."""
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

    cdef void view(self, int n, int cls, NodeView* view) noexcept nogil:
        """Node ``n`` as it is now, for a pod of class ``cls``."""
        cdef const ClassConstraints* rule = self.rule(cls)
        cdef int g
        cdef int32_t at
        view.n, view.pods, view.group_pods, view.empty = n, self.nodes.pods[n], 0, False
        for g in range(MAX_SPREAD if self.spread.n_rules else 0):
            view.spread[g] = 0
        view.cpu_left, view.mem_left = self.nodes.cpu_left[n], self.nodes.mem_left[n]
        for g in range(self.nodes.num_gpu[n]):
            view.gpu_left[g] = self.nodes.gpu_left__ng[n, g]
            view.gpu_mem_left[g] = self.gpu_mem_left__ng[n, g]
        for g in range(self.n_extra):
            view.extra_left[g] = self.extra_left__nr[n, g]
        if rule != NULL and rule.most >= 0:
            at = self.membership.first__n[n]
            while at >= 0:
                view.group_pods += self.membership.members[at].group == rule.group
                at = self.membership.members[at].next_on_node

    cdef void shift(self, NodeView* view, int cls, uint64_t gpus, int32_t group, int viewer, int sign) noexcept nogil:
        """Count a pod of class ``cls`` that starts on (-1) or leaves (1) a node in the view of class ``viewer``."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef const ClassConstraints* rule = self.rule(cls)
        cdef const ClassConstraints* theirs = self.rule(viewer)
        cdef int g
        view.cpu_left += sign * pod.cpu
        view.mem_left += sign * pod.mem
        view.pods -= sign
        for g in range(self.nodes.num_gpu[view.n]):
            if (gpus >> g) & 1:
                view.gpu_left[g] += sign * pod.milli
                if rule != NULL:
                    view.gpu_mem_left[g] += sign * rule.gpu_mem
        if rule != NULL:
            for g in range(self.n_extra):
                view.extra_left[g] += sign * rule.extra[g]
        if theirs != NULL and theirs.most >= 0 and group == theirs.group:
            view.group_pods -= sign
        self.spread.shift(view.spread, cls, viewer, sign)

    cdef int failed_check(self, const NodeView* view, int cls) noexcept nogil:
        """The first check the node fails for a pod of class ``cls``, as a Reason; 0 if it can host it."""
        cdef const ClassConstraints* rule = self.rule(cls)
        cdef int lack, near = 0
        cdef Skew skew
        if rule != NULL and rule.allowed >= 0 and not self.allowed[rule.allowed + view.n]:
            return NO_MATCH
        lack = self.lacking(view, cls)
        if lack != 0 or rule == NULL:
            return lack
        if not view.empty:
            near = self.spread.refuses(view.n, cls, view.spread, &skew)
        elif self.spread.outside(view.n, cls):
            near = SPREAD
        if near != SPREAD and rule.most >= 0 and view.group_pods + 1 > rule.most:
            return POD_LIMIT
        return near

    cdef int refusal(self, int n, int cls) noexcept nogil:
        """As ``failed_check`` of node ``n`` as it is now, which is seldom looked at as a whole."""
        cdef const ClassConstraints* rule = self.rule(cls)
        cdef NodeView view
        cdef Amounts left
        cdef int lack
        if rule != NULL and rule.allowed >= 0 and not self.allowed[rule.allowed + n]:
            return NO_MATCH
        left.cpu, left.mem, left.pods = self.nodes.cpu_left[n], self.nodes.mem_left[n], self.nodes.pods[n]
        left.gpu = &self.nodes.gpu_left__ng[n, 0] if self.nodes.num_gpu[n] > 0 else NULL
        left.gpu_mem = &self.gpu_mem_left__ng[n, 0] if self.nodes.num_gpu[n] > 0 else NULL
        left.extra = &self.extra_left__nr[n, 0] if self.n_extra > 0 else NULL
        lack = self.lacking_of(n, cls, &left)
        if lack != 0 or rule == NULL or (rule.most < 0 and not self.spread.restricts(cls)):
            return lack
        self.view(n, cls, &view)
        return self.failed_check(&view, cls)

    cdef int lacking(self, const NodeView* view, int cls) noexcept nogil:
        """The first amount that the node has too little of, as a Reason; 0 if it has enough of all."""
        cdef Amounts left
        left.cpu, left.mem, left.pods = view.cpu_left, view.mem_left, view.pods
        left.gpu, left.gpu_mem, left.extra = view.gpu_left, view.gpu_mem_left, view.extra_left
        return self.lacking_of(view.n, cls, &left)

    cdef int lacking_of(self, int n, int cls, const Amounts* left) noexcept nogil:
        """The first of the amounts left on node ``n`` that is too little for the class, as a Reason; 0 if none is."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef const ClassConstraints* rule = self.rule(cls)
        cdef int64_t memory = rule.gpu_mem if rule != NULL else INT64_MIN
        cdef int g, fit = 0
        if pod.num_gpu > 0:
            if pod.models != 0 and (self.nodes.model[n] < 0 or not (pod.models >> self.nodes.model[n]) & 1):
                return NO_GPU_MODEL
            for g in range(self.nodes.num_gpu[n]):
                fit += left.gpu[g] >= pod.milli and left.gpu_mem[g] >= memory
            if fit < pod.num_gpu:
                return NO_GPU
        if left.cpu < pod.cpu:
            return NO_CPU
        if left.mem < pod.mem:
            return NO_MEMORY
        if rule != NULL:
            for g in range(self.n_extra):
                if left.extra[g] < rule.extra[g]:
                    return NO_EXTRA
            if rule.foreign:
                return NO_EXTRA
        return NO_POD_SLOT if left.pods >= self.nodes.max_pods[n] else 0

    cdef uint64_t fitting(self, const NodeView* view, int cls) noexcept nogil:
        """The devices with room for one device's share of the pod."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef const ClassConstraints* rule = self.rule(cls)
        cdef uint64_t gpus = 0
        cdef int g
        for g in range(self.nodes.num_gpu[view.n]):
            if view.gpu_left[g] >= pod.milli and (rule == NULL or view.gpu_mem_left[g] >= rule.gpu_mem):
                gpus |= (<uint64_t> 1) << g
        return gpus

    cdef uint64_t tightest(self, const NodeView* view, int cls) noexcept nogil:
        """The devices with least left that serve the pod, the lower index on ties."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef uint64_t open_ = self.fitting(view, cls) if pod.num_gpu > 0 else 0
        cdef uint64_t gpus = 0
        cdef int g, best, _
        for _ in range(pod.num_gpu):
            best = -1
            for g in range(self.nodes.num_gpu[view.n]):
                if (open_ >> g) & 1 and (best < 0 or view.gpu_left[g] < view.gpu_left[best]):
                    best = g
            if best < 0:
                break
            gpus |= (<uint64_t> 1) << best
            open_ &= ~((<uint64_t> 1) << best)
        return gpus

    cdef void hold(self, int n, int cls, uint64_t gpus, int sign) noexcept nogil:
        """Take (-1) or give back (1) the device memory and further resources of the class on node ``n``."""
        cdef const ClassConstraints* rule = self.rule(cls)
        cdef int g
        if rule == NULL:
            return
        self.spread.hold(n, cls, sign)
        self.preferences.hold(n, cls, sign)
        if rule.gpu_mem > 0:
            for g in range(self.nodes.num_gpu[n]):
                if (gpus >> g) & 1:
                    self.gpu_mem_left__ng[n, g] += sign * rule.gpu_mem
        for g in range(self.n_extra):
            self.extra_left__nr[n, g] += sign * rule.extra[g]

    cdef void vacate(self, int n, NodeView* view) noexcept nogil:
        """Node ``n`` as it looks without pods."""
        cdef int g
        view.n, view.pods, view.group_pods, view.empty = n, 0, 0, True
        view.cpu_left, view.mem_left = self.nodes.cpu_cap[n], self.nodes.mem_cap[n]
        for g in range(self.nodes.num_gpu[n]):
            view.gpu_left[g], view.gpu_mem_left[g] = 1000, self.gpu_mem_cap[n]
        for g in range(self.n_extra):
            view.extra_left[g] = self.extra_cap__nr[n, g]

    cdef int lasting_obstacle(self, int cls) noexcept nogil:
        """Why no node of the table, when empty and present, could host the class; 0 if one could.

        NO_MATCH if one is large enough, but its labels, taints or name keep the class away; otherwise what the node
        lacks that passes most checks, where too few GPUs, CPUs or MiB are TOO_LARGE.
        """
        cdef int n, lack, furthest = 0
        cdef bint gpus = False
        cdef NodeView empty
        for n in range(self.nodes.count):
            self.vacate(n, &empty)
            gpus = gpus or self.nodes.num_gpu[n] > 0
            lack = self.lacking(&empty, cls)
            if lack == NO_GPU and self.nodes.num_gpu[n] >= self.work.classes[cls].num_gpu:
                lack = NO_GPU_MEMORY
            elif lack == 0:
                lack = self.failed_check(&empty, cls)
                if lack == 0:
                    return 0
                if lack == SPREAD:
                    lack = NO_MATCH
            if checks_passed(lack) > checks_passed(furthest):
                furthest = lack
        return lasting_reason(furthest, gpus)

    cdef int64_t capacity(self, int n, int cls) noexcept nogil:
        """Number of pods of the class that node ``n`` hosts when it is empty."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef const ClassConstraints* rule = self.rule(cls)
        cdef int64_t most, each
        cdef int g
        cdef NodeView empty
        self.vacate(n, &empty)
        if self.failed_check(&empty, cls) != 0:
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

    cdef bint above_all_nodes(self, int32_t slot) noexcept nogil:
        """Whether more pods of one class are in an entry than all nodes together host."""
        cdef int32_t at = self.membership.first(slot)
        cdef int32_t other
        cdef int64_t count
        cdef int cls, n, last = -1
        while at >= 0 and self.membership.members[slot].gang >= 0:
            cls = self.work.slots[at].cls
            if cls != last:
                count, other, last = 0, self.membership.first(slot), cls
                while other >= 0:
                    count += self.work.slots[other].cls == cls
                    other = self.membership.next(other)
                n = 0
                while count > 0 and n < self.nodes.count:
                    count -= self.capacity(n, cls)
                    n += 1
                if count > 0:
                    return True
            at = self.membership.next(at)
        return False

    cdef bint never_fits(self, int n, int cls) noexcept nogil:
        """A quick check whether node ``n``, even when empty, cannot host the class."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef const ClassConstraints* rule = self.rule(cls)
        if self.nodes.cpu_cap[n] < pod.cpu or self.nodes.mem_cap[n] < pod.mem or self.nodes.num_gpu[n] < pod.num_gpu:
            return True
        if rule != NULL and rule.allowed >= 0 and not self.allowed[rule.allowed + n]:
            return True
        if rule != NULL and self.spread.outside(n, cls):
            return True
        return pod.num_gpu > 0 and pod.models != 0 and (
            self.nodes.model[n] < 0 or not (pod.models >> self.nodes.model[n]) & 1)

    cdef int choose(self, int cls, Choice* choice, int barred, int alone) except -1 nogil:
        """As Selector.choose, without the node ``barred`` or with no other than ``alone`` (-1: neither)."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef const ClassConstraints* rule = self.rule(cls)
        cdef bint memory = rule != NULL and rule.gpu_mem > 0 and pod.num_gpu > 0
        cdef int n, f, reason, best = 0, count = 0
        cdef Node node
        choice.node, choice.gpus, choice.reason = -1, 0, NO_NODE
        if self.indexed is not None and not memory and barred < 0 and alone < 0 and not self.preferences.has(cls):
            choice.node = self.best_stored(cls, pod)
            if choice.node >= 0:
                choice.gpus = self.select.devices(choice.node, &self.nodes.records[choice.node], pod,
                                                  self.select.gpu_pick)
                self.select.attempts += 1
                return 0
        for n in range(max(alone, 0), self.nodes.count if alone < 0 else alone + 1):
            if not self.nodes.present[n] or n == barred:
                continue
            reason = self.refusal(n, cls)
            choice.reason = max(choice.reason, reason)
            if reason == 0:
                self.select.feasible__f[count] = n
                count += 1
                if memory:
                    self.mask(n, rule.gpu_mem)
        if count > 1:
            self.select.uncached = memory or self.preferences.has(cls)
            self.select.rank(cls, pod, count)
            self.select.uncached = False
            self.preferences.add_totals(cls, count, &self.select.feasible__f[0], &self.select.raw__f[0],
                                        &self.select.total__f[0])
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

    cdef int32_t best_stored(self, int cls, const Pod* pod) except -2 nogil:
        """The node that ``choose`` would choose, found by stored totals or bounds; -1 if none was found so."""
        cdef int reason
        cdef int32_t c
        self.indexed.apply_changes()
        c = self.indexed.column_for(cls)
        if c >= 0:
            return self.indexed.search(cls, pod, c, &reason, self)
        return self.indexed.choose_by_bound(cls, pod, &reason, self)

    cdef int stay(self, int cls, int n, uint64_t gpus, Choice* choice) except -1 nogil:
        """As Selector.stay; labels and limits of groups do not matter, because the pod is there already."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef const ClassConstraints* rule = self.rule(cls)
        cdef bint memory = rule != NULL and rule.gpu_mem > 0 and pod.num_gpu > 0
        cdef NodeView view
        cdef Node node
        choice.node, choice.gpus, choice.reason = -1, gpus, NO_NODE
        if self.nodes.present[n]:
            self.view(n, cls, &view)
            choice.reason = self.lacking(&view, cls)
            if choice.reason == 0 and gpus != 0 and not device_all_free(gpus, self.fitting(&view, cls), pod.num_gpu):
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
            self.unmasked__ng[n, g] = self.nodes.gpu_left__ng[n, g]
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
                self.nodes.gpu_left__ng[n, g] = self.unmasked__ng[n, g]
            self.nodes.frag[n] = self.nodes.records[n].frag = NAN
            self.masked[n] = 0
