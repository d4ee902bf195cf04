"""The fast spelling of a decision: columns for frequent pod classes, bounds for rare ones.

A class that comes often has a column, whose first maximum is the answer. A class that comes too
seldom to pay for one is looked up in a bound, a column of its family that no node of the class
exceeds: only nodes whose bound reaches the best total so far are looked at. Without a bound all
nodes are looked at, as the plain spelling does. Which way is taken never changes an answer.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from fastsim_ext.scores.device cimport SPARE
from fastsim_ext.scores.frag_grouped cimport View, grouped_growth, grouped_offers, grouped_rank
from fastsim_ext.select.class_frequency cimport ClassFrequency, habit_charge, habit_rate, habit_room, habit_settled
from fastsim_ext.select.state_memo cimport UNKNOWN, Memo, memo_figure, memo_keep
from fastsim_ext.select.byte_columns import table_of
from fastsim_ext.scores.points cimport points_alone, points_bound, points_bounded, points_viewed
from fastsim_ext.select.class_demands cimport WORST, needs_known
from fastsim_ext.select.max_tree cimport FOUND, GATHER, Tree, tree_first, tree_gather, tree_leaf, tree_place
from fastsim_ext.select.points_cache cimport MOST_RANKS, NO_ANSWER, CachedPoints, PointsCache
from fastsim_ext.select.scan cimport Choice, Selector
from fastsim_ext.state.node_table cimport NodeTable
from fastsim_ext.state.pod_outcomes cimport NO_CPU, NO_GPU_MODEL, NO_MEMORY, NO_NODE
from fastsim_ext.state.pod_table cimport WorkTable
from fastsim_ext.types cimport BEST_FIT, FGD, FULL, PICK_FGD, PYTHON, RANDOM, Node, Pod

cdef enum:
    STEPS = 12                   # bounds of one family, by the CPU they start at
    FAMILIES = 128
    FAR = 2048                   # nodes of a cluster of which most are not in the cache
    BLOCK = 64                   # nodes that are judged side by side

cdef int64_t[STEPS + 1] step_cpu     # milli-CPU; the last one is where the steps end
step_cpu[:] = [0, 1000, 2000, 3000, 4000, 6000, 8000, 12000, 16000, 24000, 32000, 64000, 1 << 50]


cdef class IndexedSelector(Selector):
    """A Selector that answers the same choices from what it kept."""

    def __init__(self, NodeTable nodes, WorkTable work, plan, uint64_t seed, scorer):
        cdef int n
        habits = plan["habits"]
        Selector.__init__(self, nodes, work, plan, seed, scorer)
        self.table = table_of(plan)(nodes, plan, plan["memo"], plan["kind"], plan["state"])
        self.answers = PointsCache()
        self.bounds = <ClassFrequency*> calloc(FAMILIES * STEPS, sizeof(ClassFrequency))
        if self.bounds == NULL:
            raise MemoryError()
        for n in range(nodes.count):
            self.largest_cpu = max(self.largest_cpu, nodes.cpu_cap[n])
        self.nested = not any(kernel == BEST_FIT for kernel in self.kernel)   # its points rise with the CPU asked for
        self.window, self.long_window = habits["window_changes"], habits["long_window_changes"]
        self.upkeep_ns, self.look_ns, self.search_ns = habits["upkeep_ns"], habits["look_ns"], habits["search_ns"]
        self.miss_ns, self.worth_ns = habits["miss_ns"], habits["worth_ns"]
        far = 1 + nodes.count / habits["near_nodes"]
        self.search_ns, self.miss_ns, self.worth_ns = far * self.search_ns, far * self.miss_ns, far * self.worth_ns
        self.sweep_every, self.few_classes = habits["sweep_changes"], habits["few_classes"]
        self.pack_every = habits["pack_changes"]
        self.restart(plan["memo"])

    def __dealloc__(self):
        free(self.classes)
        free(self.bounds)

    def restart(self, Memo memo):
        """Forget all columns and keep points in another memo from now on."""
        cdef int c
        self.table.restart(memo)
        self.answers.forget()
        for c in range(self.class_room):
            self.classes[c].column = self.classes[c].lane = -1
        for c in range(FAMILIES * STEPS):
            self.bounds[c].column = -1

    def raw(self, int kernel, int dim, int norm, int n, int cls):
        """(raw points, devices as bits) of one kernel on node ``n`` as it is now, as columns work them out."""
        cdef uint64_t gpus
        cdef View view
        cdef Node node
        if kernel != FGD:
            return Selector.raw(self, kernel, dim, norm, n, cls)
        self.nodes.known(n)
        self.work.known_class(cls)
        node = self.nodes.at(n)
        self.nodes.look(&node, n, &view)
        points = grouped_growth(&view, &self.work.classes[cls], &self.nodes.target.typical, &gpus)
        grouped_offers(&view, self.work.classes[cls].num_gpu, self.work.classes[cls].milli)
        viewed = points_viewed(kernel, &self.work.classes[cls], &self.nodes.target.typical, dim, norm, &view)
        if viewed != points:
            raise ArithmeticError(f"node {n}, class {cls}: {viewed} points by the best offer, {points} by each")
        return points, gpus

    def bound(self, int kernel, int n, int cls, int64_t most_cpu):
        """Raw points of one kernel on node ``n`` that no pod like those of the class exceeds.

        That is, whatever CPU it asks for from theirs up to ``most_cpu`` milli-CPU; None if there is no bound.
        """
        cdef View view
        cdef Node node
        self.nodes.known(n)
        self.work.known_class(cls)
        if not points_bounded(kernel):
            return None
        node = self.nodes.at(n)
        self.nodes.look(&node, n, &view)
        grouped_offers(&view, self.work.classes[cls].num_gpu, self.work.classes[cls].milli)
        return points_bound(kernel, &self.work.classes[cls], most_cpu, &view)

    cdef int choose(self, int cls, Choice* choice) except -1 nogil:
        """Decide where a pod of class ``cls`` goes; counts as one attempt."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef int32_t top
        cdef int32_t at = -1
        cdef int32_t c
        self.settle()
        choice.node, choice.gpus, choice.reason = -1, 0, NO_NODE
        c = self.column_for(cls)
        if c >= 0:
            at = self.table.first(c, &top)
            if top <= self.table.worst:
                at = -1
            if at < 0 and self.nodes.count > 0:
                choice.reason = top - self.table.unfit
        else:
            at = self.seek(cls, pod, &choice.reason)
            if at < 0 and choice.reason < 0:
                self.scans += 1
                return Selector.choose(self, cls, choice)
        if at >= 0:
            self.table.expect(at)
            choice.node = at
            choice.gpus = self.devices(at, &self.nodes.records[at], pod, self.gpu_pick)
        self.attempts += 1
        return 0

    cdef void expect(self, int n) noexcept nogil:
        """Node ``n`` will change soon."""
        self.nodes.expect(n)
        self.table.expect(n)

    cdef int settle(self) except -1 nogil:
        """Correct every column for the nodes that changed since the last time."""
        cdef int i
        for i in range(self.nodes.n_changed):
            self.nodes.listed[self.nodes.changed[i]] = 0
        if self.nodes.n_changed > 0:
            self.table.changed(&self.nodes.changed[0], self.nodes.n_changed)
        self.changes += self.nodes.n_changed
        self.nodes.n_changed = 0
        if self.changes >= self.next_sweep:
            self.sweep()
        return 0

    cdef uint64_t devices(self, int n, const Node* node, const Pod* pod, int pick) noexcept nogil:
        """The devices a pod gets on its node, as a Selector would answer."""
        cdef View view
        cdef uint64_t gpus
        if pick == PICK_FGD and pod.num_gpu == 1 and pod.milli < FULL:
            self.nodes.look(node, n, &view)
            grouped_growth(&view, pod, &self.nodes.target.typical, &gpus)
            return gpus
        return Selector.devices(self, n, node, pod, pick)

    cdef int32_t column_for(self, int cls) except -2 nogil:
        """The column of a class, made now if the class has become frequent; -1 if it has none."""
        cdef ClassFrequency* habit
        if cls >= self.class_room:
            self.class_room = habit_room(&self.classes, self.class_room, self.work.n_classes)
        habit = &self.classes[cls]
        if habit.column >= 0:
            habit_charge(habit, self.changes, self.window, 0.0)
        elif habit_settled(habit) and habit_rate(habit, self.changes, self.window) >= self.upkeep_ns:
            habit.column = self.table.build(&self.work.classes[cls], -1, cls)
            if habit.column >= 0:
                habit.lane = self.table.columns[habit.column].lane
                self.built += 1
        return habit.column

    cdef int32_t seek(self, int cls, const Pod* pod, int* reason) except -2 nogil:
        """The node for a class without a column, by way of a bound; -1 with ``reason`` -1 if that cannot tell."""
        cdef ClassFrequency* own = self.bound_of(pod)     # the bound of the pod's CPU step
        cdef ClassFrequency* used = NULL                  # the nearest one there is
        cdef ClassFrequency* missed = own                 # the one to make next
        cdef int32_t at = -1
        self.cost = 0.0
        reason[0] = -1
        if own != NULL:
            used = self.bound_below(own)
            if used.column < 0 and self.nested:  # first of all the one that holds for the whole family
                missed = used
            if missed.column < 0 and habit_rate(missed, self.changes, self.long_window) >= self.upkeep_ns:
                self.build_bound(missed, pod)
                used = self.bound_below(own)
            if used.column >= 0:
                at = self.search(pod, used.column, reason)
        if at < 0 and reason[0] < 0:
            self.cost += self.nodes.count * self.look_ns
        if own != NULL:
            habit_charge(missed, self.changes, self.long_window, 0.0 if missed.column >= 0 else self.cost)
            if used != missed:
                habit_charge(used, self.changes, self.long_window, 0.0)
        habit_charge(&self.classes[cls], self.changes, self.window, self.cost)
        return at

    cdef ClassFrequency* bound_of(self, const Pod* pod) noexcept nogil:
        """The place of the bound of a pod's family and CPU step; NULL if there can be none."""
        cdef int step = 0
        cdef int family = self.table.family_of(pod.num_gpu, pod.milli) if self.table.bounded else -1
        if family < 0:
            return NULL
        while step_cpu[step + 1] <= pod.cpu:
            step += 1
        return &self.bounds[family * STEPS + step]

    cdef ClassFrequency* bound_below(self, ClassFrequency* habit) noexcept nogil:
        """The nearest place with a bound that holds for the pods of a place, or the last one looked at."""
        cdef int64_t step = (habit - self.bounds) % STEPS
        while habit.column < 0 and step > 0 and self.nested:
            habit -= 1
            step -= 1
        return habit

    cdef int32_t build_bound(self, ClassFrequency* habit, const Pod* pod) except -2 nogil:
        """Make the bound of a place; -1 if there is no room."""
        cdef int64_t place = habit - self.bounds
        cdef int64_t step = place % STEPS
        cdef Pod least = pod[0]
        least.cpu, least.mem, least.models = step_cpu[step], -1, 0   # -1: no class asks for that
        habit.column = self.table.build(&least, min(step_cpu[step + 1], self.largest_cpu), <int32_t> (-1 - place))
        self.built += habit.column >= 0
        return habit.column

    cdef int32_t search(self, const Pod* pod, int32_t c, int* reason) noexcept nogil:
        """The first node with the largest total, among those whose bound reaches it; -1 if none can host the pod.

        ``reason`` is then how far the furthest node got, or -1 if only a look at all nodes can tell.
        """
        cdef const Tree* bound = self.table.tree(c)
        cdef int32_t[FOUND] found
        cdef int32_t top
        cdef int32_t worst = self.table.worst
        cdef int32_t best_at = -1
        cdef int32_t first = tree_first(bound, &top)
        cdef int32_t at, after = 0
        cdef int furthest = top - self.table.unfit if top <= worst else 0
        cdef int64_t best = worst
        cdef int64_t total
        cdef int k, count
        cdef int wanted = 2
        self.searches += 1
        self.cost += self.search_ns
        if top > worst:
            total = self.worth(first, pod, &furthest)
            if total > worst:
                best, best_at = total, first
            while after < bound.count:
                # Behind the best node so far an equal total would lose the tie.
                count = tree_gather(bound, &after, <int32_t> (best + (after > best_at)), wanted, &found[0])
                wanted = min(2 * wanted, GATHER)
                for k in range(count if self.nodes.count >= FAR else 0):
                    if self.suits(found[k], pod):
                        self.nodes.expect(found[k])
                for k in range(count):
                    at = found[k]
                    if at == first or tree_leaf(bound, at) < best + (at > best_at):
                        continue
                    total = self.worth(at, pod, &furthest)
                    if total > best or (total == best and at < best_at):
                        best, best_at = total, at
        # A node that fails the bound fails the pod no later, and without named models no earlier.
        reason[0] = furthest
        if best_at < 0 and (self.nodes.n_full > 0 or (pod.models != 0 if top <= worst else furthest < NO_CPU)):
            reason[0] = -1
        return best_at

    cdef bint suits(self, int n, const Pod* pod) noexcept nogil:
        """Whether node ``n`` has the CPU and the memory."""
        return self.nodes.cpu_left[n] >= pod.cpu and self.nodes.mem_left[n] >= pod.mem

    cdef int64_t worth(self, int n, const Pod* pod, int* furthest) noexcept nogil:
        """The total of node ``n``, which fits the bound, for a pod; the table's ``worst`` if the pod does not fit."""
        cdef int64_t total = 0
        cdef int term
        cdef int stage = 0
        self.looked_at += 1
        # The bound already asked for the devices, for presence and for a pod slot. Columns, because most do not fit.
        if pod.num_gpu > 0 and pod.models != 0 and (
                self.nodes.model[n] < 0 or not (pod.models >> self.nodes.model[n]) & 1):
            stage = NO_GPU_MODEL
        elif not self.suits(n, pod):
            stage = NO_CPU if self.nodes.cpu_left[n] < pod.cpu else NO_MEMORY
        if stage != 0:
            furthest[0] = max(furthest[0], stage)
            self.cost += self.miss_ns
            return self.table.worst
        self.cost += self.worth_ns
        for term in range(self.kernel.shape[0]):
            total += self.table.weight[term] * self.fresh_points(term, n, pod)
        return total

    cdef int64_t fresh_points(self, int term, int n, const Pod* pod) noexcept nogil:
        """Raw points of one term on node ``n``, worked out."""
        cdef const Node* node = &self.nodes.records[n]
        if self.kernel[term] == FGD:
            return self.growth(n, node, pod)
        return points_alone(self.kernel[term], node, pod, &self.nodes.target.typical, self.dim[term], self.norm[term])

    cdef int64_t growth(self, int n, const Node* node, const Pod* pod) noexcept nogil:
        """Points of fragmentation on node ``n``: as it was worked out lately for a node in this state, or anew."""
        cdef uint64_t gpus
        cdef View view
        cdef CachedPoints* answer = NULL
        cdef int64_t points
        # A pod that asks for neither CPU nor devices is worth something else than one that asks for very little, and
        # before a memo knows any class its states say nothing of CPU.
        if (self.table.state_of[n] >= 0 and self.table.generation == self.table.memo.generation
                and self.table.memo.n_lanes > 0 and self.nodes.target.groups.n_ranks <= MOST_RANKS
                and needs_known(pod) and (pod.num_gpu > 0 or pod.cpu > 0)):
            answer = self.answers.place(self.table.generation, self.table.state_of[n],
                                        grouped_rank(&self.nodes.target.groups, node.cpu_left - pod.cpu), pod)
            if answer.points != NO_ANSWER:
                return answer.points
        self.nodes.look(node, n, &view)
        points = grouped_growth(&view, pod, &self.nodes.target.typical, &gpus)
        if answer != NULL:
            answer.points = <int32_t> points
        return points

    cdef int want_bound(self, const Pod* pod, int count, bint missed) except -1 nogil:
        """Note that the bound of a pod's family saves work on ``count`` nodes, or would; make it where that pays."""
        cdef int family = self.table.family_of(pod.num_gpu, pod.milli)
        cdef ClassFrequency* habit = &self.bounds[family * STEPS]
        if family >= 0:
            habit_charge(habit, self.changes, self.long_window, count * self.worth_ns if missed else 0.0)
            if habit.column < 0 and habit_rate(habit, self.changes, self.long_window) >= self.upkeep_ns:
                self.build_bound(habit, pod)
        return 0

    cdef int feasible(self, const Pod* pod, int* stage) noexcept nogil:
        """As a Selector lists them, without a branch for any node."""
        cdef int32_t wanted = 0          # of what a node has to spare
        cdef int32_t seen = SPARE - 1
        cdef int32_t[BLOCK] fits
        cdef int32_t* found
        cdef int i, some
        cdef int first = 0
        cdef int count = 0
        if self.plainly or not needs_known(pod) or self.nodes.count == 0:
            return Selector.feasible(self, pod, stage)
        found = &self.feasible__f[0]
        if pod.num_gpu > 0 and pod.milli == FULL:
            wanted, seen = SPARE * pod.num_gpu, -1
        elif pod.num_gpu > 0:
            wanted = pod.milli
        while first < self.nodes.count:
            some = min(self.nodes.count - first, BLOCK)
            self.fitting(first, some, pod, wanted, seen, &fits[0])
            for i in range(some):
                found[count] = first + i
                count += fits[i]
            first += some
        if count == 0:
            stage[0] = self.furthest(pod)
        return count

    cdef void fitting(self, int first, int count, const Pod* pod, int32_t wanted, int32_t seen,
                      int32_t* out) noexcept nogil:
        """For some nodes side by side 1 where the pod fits, else 0; one kind of number at a time, for speed."""
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

        Fragmentation is the dear term: it is worked out only where the other terms and an upper bound of it reach
        the best total so far. A node left out gets a total below all others.
        """
        cdef int term, f
        cdef int best = 0
        cdef int dear = self.table.dear
        cdef int64_t raw
        cdef int32_t most = -1
        cdef const int32_t* points
        if not self.plainly and self.table.stretched and dear >= 0 and self.lane_for(cls) < 0:
            most = self.table.most_points(pod)
            self.want_bound(pod, count, most < 0)
        if most < 0:
            return Selector.rank(self, cls, pod, count)
        points = self.table.columns[most].points[dear]
        for f in range(count):
            self.total__f[f] = 0
        for term in range(self.kernel.shape[0]):
            if term != dear:
                self.add_term(term, cls, pod, count)
        for f in range(count):
            raw = points[tree_place(self.feasible__f[f], self.table.trees[most].step)]
            self.raw__f[f] = self.total__f[f] + self.weight[dear] * (raw + 1 if raw > WORST else 100)
            if self.raw__f[f] > self.raw__f[best]:
                best = f
        self.total__f[best] += self.weight[dear] * self.fresh_points(dear, self.feasible__f[best], pod)
        self.raw__f[best] = WORST
        for f in range(count):
            if self.raw__f[f] > self.total__f[best] or (self.raw__f[f] == self.total__f[best] and f < best):
                self.total__f[f] += self.weight[dear] * self.fresh_points(dear, self.feasible__f[f], pod)
                if self.total__f[f] > self.total__f[best] or (self.total__f[f] == self.total__f[best] and f < best):
                    best = f
            elif self.raw__f[f] > WORST:
                self.total__f[f] = WORST
        return 0

    cdef int score(self, int term, int cls, const Pod* pod, int count) except -1 nogil:
        """Raw points of one term on every feasible node, from the memo where it knows the class."""
        cdef int f, n
        cdef int32_t lane
        cdef char* row
        cdef int64_t at
        if self.plainly or self.kernel[term] == RANDOM or self.kernel[term] == PYTHON:
            return Selector.score(self, term, cls, pod, count)
        lane = self.lane_for(cls) if self.table.figure[term] >= 0 else -1
        for f in range(count):
            n = self.feasible__f[f]
            if lane < 0:
                self.raw__f[f] = self.fresh_points(term, n, pod)
                continue
            row = self.table.memo.row(self.table.state(n))
            at = lane * self.table.memo.each + self.table.figure[term]
            self.raw__f[f] = memo_figure(row, at, self.table.memo.coarse)
            if self.raw__f[f] == UNKNOWN:
                self.raw__f[f] = self.fresh_points(term, n, pod)
                memo_keep(row, at, self.table.memo.coarse, <int32_t> self.raw__f[f])
        return 0

    cdef int32_t lane_for(self, int cls) except -2 nogil:
        """The lane of a class in the memo, for which it must be frequent or one of few."""
        cdef ClassFrequency* habit = &self.classes[cls]
        if habit.lane == -1:
            habit.lane = -3
            if self.work.n_classes <= self.few_classes:
                habit.lane = self.table.memo.lane(&self.work.classes[cls])
                if habit.lane < 0:
                    habit.lane = -3
        return habit.lane

    cdef int sweep(self) except -1 nogil:
        """Give up columns nobody has asked for lately."""
        cdef int32_t c
        cdef ClassFrequency* habit
        cdef double window
        for c in range(self.table.n_columns):
            if not self.table.columns[c].used:
                continue
            habit = self.habit_of(self.table.columns[c].owner)
            window = self.window if self.table.columns[c].owner >= 0 else self.long_window
            if habit_rate(habit, self.changes, window) < self.upkeep_ns / 4:
                self.table.drop(c)
                habit.column = -1
        self.next_sweep = self.changes + self.sweep_every
        if self.changes >= self.next_pack and self.table.pack():
            self.renumber()
            self.packed += 1
            self.next_pack = self.changes + self.pack_every    # it takes long
        return 0

    cdef void renumber(self) noexcept nogil:
        """Columns have other numbers, and pod classes other places in the memo."""
        cdef int32_t c
        cdef ClassFrequency* habit
        for c in range(self.class_room):
            self.classes[c].lane = min(self.classes[c].lane, -1)
        for c in range(self.table.n_columns):
            habit = self.habit_of(self.table.columns[c].owner)
            habit.column = habit.lane = c

    cdef ClassFrequency* habit_of(self, int32_t owner) noexcept nogil:
        """Of a pod class, or of a bound."""
        return &self.classes[owner] if owner >= 0 else &self.bounds[-1 - owner]

    cpdef int verify(self) except -1:
        """Every column says of every node what it would say if it were made now."""
        return self.table.verify()
