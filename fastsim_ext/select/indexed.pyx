"""The fast selector: score columns for frequent pod classes, bounds for rare ones.

A frequent class has a column, whose first maximum is the chosen node. A class too rare for that is searched in a bound,
a column of its family with no smaller totals: only nodes whose bound reaches the best total so far are evaluated.
Without a bound all nodes are, as in the plain selector. All three ways choose the same node.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from fastsim_ext.scores.device cimport SPARE
from fastsim_ext.scores.frag_grouped cimport View, grouped_growth, grouped_offers, grouped_rank
from fastsim_ext.select.class_frequency cimport (
    ClassFrequency, frequency_charge, frequency_rate, frequency_reliable, frequency_room,
)
from fastsim_ext.select.state_memo cimport UNKNOWN, Memo, memo_figure, memo_keep
from fastsim_ext.select.byte_columns import columns_class
from fastsim_ext.scores.points cimport points_alone, points_bound, points_bounded, points_viewed
from fastsim_ext.select.class_demands cimport WORST, demands_expressible
from fastsim_ext.select.max_tree cimport GATHERED, GATHER, Tree, tree_first, tree_gather, tree_leaf, tree_offset
from fastsim_ext.select.points_cache cimport MOST_RANKS, NO_POINTS, CachedPoints, PointsCache
from fastsim_ext.select.scan cimport Choice, NodeFilter, Selector
from fastsim_ext.state.node_table cimport NodeTable
from fastsim_ext.state.pod_outcomes cimport NO_CPU, NO_GPU_MODEL, NO_MEMORY, NO_NODE
from fastsim_ext.state.pod_table cimport WorkTable
from fastsim_ext.types cimport BEST_FIT, FGD, FULL, PICK_FGD, PYTHON, RANDOM, Node, Pod

cdef enum:
    STEPS = 12                   # bounds of one family, by the CPU at which they start
    FAMILIES = 128
    FAR = 2048                   # nodes of a cluster too large for the cache
    BLOCK = 64                   # nodes that are checked together

cdef int64_t[STEPS + 1] step_cpu     # milli-CPU; the last one is the end of the steps
step_cpu[:] = [0, 1000, 2000, 3000, 4000, 6000, 8000, 12000, 16000, 24000, 32000, 64000, 1 << 50]


cdef class IndexedSelector(Selector):
    """A Selector with equal choices that stores points and totals between decisions."""

    def __init__(self, NodeTable nodes, WorkTable work, plan, uint64_t seed, scorer):
        cdef int n
        settings = plan["column_settings"]
        Selector.__init__(self, nodes, work, plan, seed, scorer)
        self.table = columns_class(plan)(nodes, plan, plan["memo"], plan["kind"], plan["state"])
        self.points_cache = PointsCache()
        self.bounds = <ClassFrequency*> calloc(FAMILIES * STEPS, sizeof(ClassFrequency))
        if self.bounds == NULL:
            raise MemoryError()
        for n in range(nodes.count):
            self.largest_cpu = max(self.largest_cpu, nodes.cpu_cap[n])
        self.nested = not any(kernel == BEST_FIT for kernel in self.kernel)   # its points rise with the requested CPU
        self.window, self.long_window = settings["window_changes"], settings["long_window_changes"]
        self.upkeep_ns, self.look_ns, self.search_ns = settings["upkeep_ns"], settings["look_ns"], settings["search_ns"]
        self.miss_ns, self.worth_ns = settings["miss_ns"], settings["worth_ns"]
        far = 1 + nodes.count / settings["near_nodes"]
        self.search_ns, self.miss_ns, self.worth_ns = far * self.search_ns, far * self.miss_ns, far * self.worth_ns
        self.drop_every, self.pack_every = settings["drop_changes"], settings["pack_changes"]
        self.few_classes = settings["few_classes"]
        self.restart(plan["memo"])

    def __dealloc__(self):
        free(self.classes)
        free(self.bounds)

    def restart(self, Memo memo):
        """Drop all columns and store points in another memo from now on."""
        cdef int c
        self.table.restart(memo)
        self.points_cache.clear()
        for c in range(self.class_room):
            self.classes[c].column = self.classes[c].lane = -1
        for c in range(FAMILIES * STEPS):
            self.bounds[c].column = -1

    def raw(self, int kernel, int dim, int norm, int n, int cls):
        """(raw points, devices as bits) of one kernel on node ``n`` as it is now, computed as for columns."""
        cdef uint64_t gpus
        cdef View view
        cdef Node node
        if kernel != FGD:
            return Selector.raw(self, kernel, dim, norm, n, cls)
        self.nodes.check_node(n)
        self.work.check_class(cls)
        node = self.nodes.at(n)
        self.nodes.load_view(&node, n, &view)
        points = grouped_growth(&view, &self.work.classes[cls], &self.nodes.target.typical, &gpus)
        grouped_offers(&view, self.work.classes[cls].num_gpu, self.work.classes[cls].milli)
        viewed = points_viewed(kernel, &self.work.classes[cls], &self.nodes.target.typical, dim, norm, &view)
        if viewed != points:
            raise ArithmeticError(f"node {n}, class {cls}: {viewed} points by the best offer, {points} by each")
        return points, gpus

    def bound(self, int kernel, int n, int cls, int64_t most_cpu):
        """Upper bound of the raw points of one kernel on node ``n`` for pods like those of the class.

        It holds for CPU requests from theirs up to ``most_cpu`` milli-CPU; None if the kernel has no bound.
        """
        cdef View view
        cdef Node node
        self.nodes.check_node(n)
        self.work.check_class(cls)
        if not points_bounded(kernel):
            return None
        node = self.nodes.at(n)
        self.nodes.load_view(&node, n, &view)
        grouped_offers(&view, self.work.classes[cls].num_gpu, self.work.classes[cls].milli)
        return points_bound(kernel, &self.work.classes[cls], most_cpu, &view)

    cdef int choose(self, int cls, Choice* choice) except -1 nogil:
        """Decide where a pod of class ``cls`` goes; counts as one attempt."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef int32_t top, c
        cdef int32_t at = -1
        self.apply_changes()
        choice.node, choice.gpus, choice.reason = -1, 0, NO_NODE
        c = self.column_for(cls)
        if c >= 0:
            at = self.table.first(c, &top)
            if top <= self.table.worst:
                at = -1
            if at < 0 and self.nodes.count > 0:
                choice.reason = top - self.table.unfit
        else:
            at = self.choose_by_bound(cls, pod, &choice.reason, None)
            if at < 0 and choice.reason < 0:
                self.scans += 1
                return Selector.choose(self, cls, choice)
        if at >= 0:
            self.table.prefetch(at)
            choice.node = at
            choice.gpus = self.devices(at, &self.nodes.records[at], pod, self.gpu_pick)
        self.attempts += 1
        return 0

    cdef void prefetch(self, int n) noexcept nogil:
        """Prefetch node ``n``, which will change soon."""
        self.nodes.prefetch(n)
        self.table.prefetch(n)

    cdef int apply_changes(self) except -1 nogil:
        """Update every column for the nodes that changed since the last call."""
        cdef int i
        for i in range(self.nodes.n_changed):
            self.nodes.listed[self.nodes.changed[i]] = 0
        if self.nodes.n_changed > 0:
            self.table.changed(&self.nodes.changed[0], self.nodes.n_changed)
        self.changes += self.nodes.n_changed
        self.nodes.n_changed = 0
        if self.changes >= self.next_drop:
            self.drop_unused()
        return 0

    cdef uint64_t devices(self, int n, const Node* node, const Pod* pod, int pick) noexcept nogil:
        """The devices a pod gets on its node, equal to those of a Selector."""
        cdef View view
        cdef uint64_t gpus
        if pick == PICK_FGD and pod.num_gpu == 1 and pod.milli < FULL:
            self.nodes.load_view(node, n, &view)
            grouped_growth(&view, pod, &self.nodes.target.typical, &gpus)
            return gpus
        return Selector.devices(self, n, node, pod, pick)

    cdef int32_t column_for(self, int cls) except -2 nogil:
        """The column of a class, built now if the class has become frequent; -1 if it has none."""
        cdef ClassFrequency* frequency = self.frequency_at(cls)
        if frequency.column >= 0:
            frequency_charge(frequency, self.changes, self.window, 0.0)
        elif frequency_reliable(frequency) and frequency_rate(frequency, self.changes, self.window) >= self.upkeep_ns:
            frequency.column = self.table.build(&self.work.classes[cls], -1, cls)
            if frequency.column >= 0:
                frequency.lane = self.table.columns[frequency.column].lane
                self.built += 1
        return frequency.column

    cdef ClassFrequency* frequency_at(self, int cls) except NULL nogil:
        """The record of a pod class, which may be new."""
        if cls >= self.class_room:
            self.class_room = frequency_room(&self.classes, self.class_room, self.work.n_classes)
        return &self.classes[cls]

    cdef int32_t choose_by_bound(self, int cls, const Pod* pod, int* reason, NodeFilter conditions) except -2 nogil:
        """The node for a class without a column, by a bound; -1 with ``reason`` -1 if all nodes must be evaluated."""
        cdef ClassFrequency* own = self.bound_of(pod)     # the bound of the pod's CPU step
        cdef ClassFrequency* used = NULL                  # the nearest one with a column
        cdef ClassFrequency* missed = own                 # the one to build next
        cdef int32_t at = -1
        self.cost = 0.0
        reason[0] = -1
        if own != NULL:
            used = self.bound_below(own)
            if used.column < 0 and self.nested:  # first the one that holds for the whole family
                missed = used
            if missed.column < 0 and frequency_rate(missed, self.changes, self.long_window) >= self.upkeep_ns:
                self.build_bound(missed, pod)
                used = self.bound_below(own)
            if used.column >= 0:
                at = self.search(cls, pod, used.column, reason, conditions)
        if at < 0 and reason[0] < 0:
            self.cost += self.nodes.count * self.look_ns
        if own != NULL:
            frequency_charge(missed, self.changes, self.long_window, 0.0 if missed.column >= 0 else self.cost)
            if used != missed:
                frequency_charge(used, self.changes, self.long_window, 0.0)
        frequency_charge(&self.classes[cls], self.changes, self.window, self.cost)
        return at

    cdef ClassFrequency* bound_of(self, const Pod* pod) noexcept nogil:
        """The record of the bound of a pod's family and CPU step; NULL if there can be none."""
        cdef int step = 0
        cdef int family = self.table.family_of(pod.num_gpu, pod.milli) if self.table.bounded else -1
        if family < 0:
            return NULL
        while step_cpu[step + 1] <= pod.cpu:
            step += 1
        return &self.bounds[family * STEPS + step]

    cdef ClassFrequency* bound_below(self, ClassFrequency* frequency) noexcept nogil:
        """The nearest record with a column that holds for the pods of ``frequency``, or the last one tried."""
        cdef int64_t step = (frequency - self.bounds) % STEPS
        while frequency.column < 0 and step > 0 and self.nested:
            frequency -= 1
            step -= 1
        return frequency

    cdef int32_t build_bound(self, ClassFrequency* frequency, const Pod* pod) except -2 nogil:
        """Build the column of a bound; -1 if there is no room."""
        cdef int64_t place = frequency - self.bounds
        cdef int64_t step = place % STEPS
        cdef Pod least = pod[0]
        least.cpu, least.mem, least.models = step_cpu[step], -1, 0   # -1: no class has that
        frequency.column = self.table.build(&least, min(step_cpu[step + 1], self.largest_cpu), <int32_t> (-1 - place))
        self.built += frequency.column >= 0
        return frequency.column

    cdef int32_t search(self, int cls, const Pod* pod, int32_t c, int* reason, NodeFilter conditions) noexcept nogil:
        """The first node with the largest total of those that ``conditions`` (or None) let in; -1 if there is none.

        ``reason`` is then the last check that any node failed, or -1 if all nodes must be evaluated for it.
        """
        cdef const Tree* bound = self.table.tree(c)
        cdef int32_t[GATHERED] leaves
        cdef int32_t top, at, after = 0
        cdef int32_t worst = self.table.worst
        cdef int32_t best_at = -1
        cdef int32_t first = tree_first(bound, &top)
        cdef int furthest = top - self.table.unfit if top <= worst else 0
        cdef int64_t best = worst
        cdef int64_t total
        cdef int k, count
        cdef int wanted = 2
        self.searches += 1
        self.cost += self.search_ns
        if top > worst:
            total = self.total_of(first, cls, pod, &furthest, conditions)
            if total > worst:
                best, best_at = total, first
            while after < bound.count:
                # After the best node so far an equal total loses the tie.
                count = tree_gather(bound, &after, <int32_t> (best + (after > best_at)), wanted, &leaves[0])
                wanted = min(2 * wanted, GATHER)
                for k in range(count if self.nodes.count >= FAR else 0):
                    if self.has_room(leaves[k], pod):
                        self.nodes.prefetch(leaves[k])
                for k in range(count):
                    at = leaves[k]
                    if at == first or tree_leaf(bound, at) < best + (at > best_at):
                        continue
                    total = self.total_of(at, cls, pod, &furthest, conditions)
                    if total > best or (total == best and at < best_at):
                        best, best_at = total, at
        # A node fails the pod's checks no later than the bound's, and without named models no earlier.
        reason[0] = furthest
        if best_at < 0 and (self.nodes.n_full > 0 or (pod.models != 0 if top <= worst else furthest < NO_CPU)):
            reason[0] = -1
        return best_at

    cdef bint has_room(self, int n, const Pod* pod) noexcept nogil:
        """Whether node ``n`` has the CPU and the memory."""
        return self.nodes.cpu_left[n] >= pod.cpu and self.nodes.mem_left[n] >= pod.mem

    cdef int64_t total_of(self, int n, int cls, const Pod* pod, int* furthest, NodeFilter conditions) noexcept nogil:
        """The total of node ``n`` for a pod, if it fits the bound; the table's ``worst`` if the pod does not fit."""
        cdef int64_t total = 0
        cdef int term
        cdef int stage = 0
        self.evaluated += 1
        # The bound has checked devices, presence and pod slots. Columns are read, because most nodes do not fit.
        if pod.num_gpu > 0 and pod.models != 0 and (
                self.nodes.model[n] < 0 or not (pod.models >> self.nodes.model[n]) & 1):
            stage = NO_GPU_MODEL
        elif not self.has_room(n, pod):
            stage = NO_CPU if self.nodes.cpu_left[n] < pod.cpu else NO_MEMORY
        elif conditions is not None:
            stage = conditions.refusal(n, cls)
        if stage != 0:
            furthest[0] = max(furthest[0], stage)
            self.cost += self.miss_ns
            return self.table.worst
        self.cost += self.worth_ns
        for term in range(self.kernel.shape[0]):
            total += self.table.weight[term] * self.fresh_points(term, n, pod)
        return total

    cdef int64_t fresh_points(self, int term, int n, const Pod* pod) noexcept nogil:
        """Raw points of one term on node ``n``, computed."""
        cdef const Node* node = &self.nodes.records[n]
        if self.kernel[term] == FGD:
            return self.frag_points(n, node, pod)
        return points_alone(self.kernel[term], node, pod, &self.nodes.target.typical, self.dim[term], self.norm[term])

    cdef int64_t frag_points(self, int n, const Node* node, const Pod* pod) noexcept nogil:
        """Points of fragmentation on node ``n``: from the cache for nodes in this state, or computed."""
        cdef uint64_t gpus
        cdef int64_t points
        cdef View view
        cdef CachedPoints* entry = NULL
        # A pod that asks for nothing has points of its own; states of a memo without classes ignore CPU.
        if (self.table.state_of[n] >= 0 and self.table.generation == self.table.memo.generation
                and self.table.memo.n_lanes > 0 and self.nodes.target.groups.n_ranks <= MOST_RANKS
                and demands_expressible(pod) and (pod.num_gpu > 0 or pod.cpu > 0)):
            entry = self.points_cache.entry_of(self.table.generation, self.table.state_of[n],
                                               grouped_rank(&self.nodes.target.groups, node.cpu_left - pod.cpu), pod)
            if entry.points != NO_POINTS:
                return entry.points
        self.nodes.load_view(node, n, &view)
        points = grouped_growth(&view, pod, &self.nodes.target.typical, &gpus)
        if entry != NULL:
            entry.points = <int32_t> points
        return points

    cdef int note_bound(self, const Pod* pod, int count, bint missed) except -1 nogil:
        """Count that the bound of a pod's family saves work on ``count`` nodes, or would; build it if that pays."""
        cdef int family = self.table.family_of(pod.num_gpu, pod.milli)
        cdef ClassFrequency* frequency = &self.bounds[family * STEPS]
        if family >= 0:
            frequency_charge(frequency, self.changes, self.long_window, count * self.worth_ns if missed else 0.0)
            if frequency.column < 0 and frequency_rate(frequency, self.changes, self.long_window) >= self.upkeep_ns:
                self.build_bound(frequency, pod)
        return 0

    cdef int feasible(self, const Pod* pod, int* stage) noexcept nogil:
        """The feasible nodes in the order of a Selector, without a branch for each node."""
        cdef int32_t wanted = 0          # of a node's ``spare``
        cdef int32_t seen = SPARE - 1
        cdef int32_t[BLOCK] fits
        cdef int32_t* nodes__f
        cdef int i, some
        cdef int first = 0
        cdef int count = 0
        if self.uncached or not demands_expressible(pod) or self.nodes.count == 0:
            return Selector.feasible(self, pod, stage)
        nodes__f = &self.feasible__f[0]
        if pod.num_gpu > 0 and pod.milli == FULL:
            wanted, seen = SPARE * pod.num_gpu, -1
        elif pod.num_gpu > 0:
            wanted = pod.milli
        while first < self.nodes.count:
            some = min(self.nodes.count - first, BLOCK)
            self.fitting(first, some, pod, wanted, seen, &fits[0])
            for i in range(some):
                nodes__f[count] = first + i
                count += fits[i]
            first += some
        if count == 0:
            stage[0] = self.furthest(pod)
        return count

    cdef void fitting(self, int first, int count, const Pod* pod, int32_t wanted, int32_t seen,
                      int32_t* out) noexcept nogil:
        """1 for each node where the pod fits, else 0; one column at a time, for speed."""
        cdef const int64_t* cpu = &self.nodes.cpu_left[first]
        cdef const int64_t* mem = &self.nodes.mem_left[first]
        cdef const int32_t* spare = &self.nodes.spare[first]
        cdef const int32_t* pods = &self.nodes.pods[first]
        cdef const int32_t* most = &self.nodes.max_pods[first]
        cdef const uint8_t* present = &self.nodes.present[first]
        cdef const int32_t* model = &self.nodes.model[first]
        cdef int64_t least_cpu = pod.cpu
        cdef int64_t least_mem = pod.mem
        cdef int i
        for i in range(count):
            out[i] = (cpu[i] >= least_cpu) & (mem[i] >= least_mem)
        for i in range(count):
            out[i] &= ((spare[i] & seen) >= wanted) & (pods[i] < most[i])
        for i in range(count):
            out[i] &= present[i] != 0
        if pod.num_gpu > 0 and pod.models != 0:
            for i in range(count):
                out[i] &= (model[i] >= 0) & <int32_t> ((pod.models >> (model[i] & 63)) & 1)

    cdef int rank(self, int cls, const Pod* pod, int count) except -1 nogil:
        """Totals of the feasible nodes, as a Selector sums them, except for nodes that cannot win.

        Fragmentation is the slowest term: it is computed only where the other terms and its upper bound reach the
        best total so far. Other nodes get a total below all others.
        """
        cdef int term, f, best = 0
        cdef int frag_term = self.table.frag_term
        cdef int64_t raw
        cdef int32_t most = -1
        cdef const int32_t* points
        if not self.uncached:
            self.apply_changes()    # no node was chosen by columns
        if not self.uncached and self.table.normalised and frag_term >= 0 and self.lane_for(cls) < 0:
            most = self.table.bound_column(pod)
            self.note_bound(pod, count, most < 0)
        if most < 0:
            return Selector.rank(self, cls, pod, count)
        points = self.table.columns[most].points[frag_term]
        for f in range(count):
            self.total__f[f] = 0
        for term in range(self.kernel.shape[0]):
            if term != frag_term:
                self.add_term(term, cls, pod, count)
        for f in range(count):
            raw = points[tree_offset(self.feasible__f[f], self.table.trees[most].stride)]
            self.raw__f[f] = self.total__f[f] + self.weight[frag_term] * (raw + 1 if raw > WORST else 100)
            if self.raw__f[f] > self.raw__f[best]:
                best = f
        self.total__f[best] += self.weight[frag_term] * self.fresh_points(frag_term, self.feasible__f[best], pod)
        self.raw__f[best] = WORST
        for f in range(count):
            if self.raw__f[f] > self.total__f[best] or (self.raw__f[f] == self.total__f[best] and f < best):
                self.total__f[f] += self.weight[frag_term] * self.fresh_points(frag_term, self.feasible__f[f], pod)
                if self.total__f[f] > self.total__f[best] or (self.total__f[f] == self.total__f[best] and f < best):
                    best = f
            elif self.raw__f[f] > WORST:
                self.total__f[f] = WORST
        return 0

    cdef int score(self, int term, int cls, const Pod* pod, int count) except -1 nogil:
        """Raw points of one term on every feasible node, from the memo if the class has a lane."""
        cdef int f, n
        cdef int32_t lane
        cdef char* row
        cdef int64_t at
        if self.uncached or self.kernel[term] == RANDOM or self.kernel[term] == PYTHON:
            return Selector.score(self, term, cls, pod, count)
        lane = self.lane_for(cls) if self.table.figure[term] >= 0 else -1
        for f in range(count):
            n = self.feasible__f[f]
            if lane < 0:
                self.raw__f[f] = self.fresh_points(term, n, pod)
                continue
            row = self.table.memo.row(self.table.state(n))
            at = lane * self.table.memo.terms_each + self.table.figure[term]
            self.raw__f[f] = memo_figure(row, at, self.table.memo.coarse)
            if self.raw__f[f] == UNKNOWN:
                self.raw__f[f] = self.fresh_points(term, n, pod)
                memo_keep(row, at, self.table.memo.coarse, <int32_t> self.raw__f[f])
        return 0

    cdef int32_t lane_for(self, int cls) except -2 nogil:
        """The lane of a class in the memo, if it is frequent or one of few classes."""
        cdef ClassFrequency* frequency = self.frequency_at(cls)
        if frequency.lane == -1:
            frequency.lane = -3
            if self.work.n_classes <= self.few_classes:
                frequency.lane = self.table.memo.lane(&self.work.classes[cls])
                if frequency.lane < 0:
                    frequency.lane = -3
        return frequency.lane

    cdef int drop_unused(self) except -1 nogil:
        """Drop columns that are no longer used often enough."""
        cdef int32_t c
        cdef ClassFrequency* frequency
        cdef double window
        for c in range(self.table.n_columns):
            if not self.table.columns[c].used:
                continue
            frequency = self.frequency_of(self.table.columns[c].owner)
            window = self.window if self.table.columns[c].owner >= 0 else self.long_window
            if frequency_rate(frequency, self.changes, window) < self.upkeep_ns / 4:
                self.table.drop(c)
                frequency.column = -1
        self.next_drop = self.changes + self.drop_every
        if self.changes >= self.next_pack and self.table.pack():
            self.renumber()
            self.packed += 1
            self.next_pack = self.changes + self.pack_every    # it is slow
        return 0

    cdef void renumber(self) noexcept nogil:
        """Update the records after pack(): columns and lanes have other numbers."""
        cdef int32_t c
        cdef ClassFrequency* frequency
        for c in range(self.class_room):
            self.classes[c].lane = min(self.classes[c].lane, -1)
        for c in range(self.table.n_columns):
            frequency = self.frequency_of(self.table.columns[c].owner)
            frequency.column = frequency.lane = c

    cdef ClassFrequency* frequency_of(self, int32_t owner) noexcept nogil:
        """The record of a pod class, or of a bound."""
        return &self.classes[owner] if owner >= 0 else &self.bounds[-1 - owner]

    cpdef int verify(self) except -1:
        """Check that every column equals one built now."""
        return self.table.verify()
