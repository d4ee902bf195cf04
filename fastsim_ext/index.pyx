"""The fast spelling of a decision: scores kept for frequent pod classes and corrected node by node.

A placement changes one node, so a class that was scored before only needs the nodes that changed
since. Every frequent class has a column: a tree over the nodes with its total, or with how far the
node got in the filter. A class that comes too seldom to pay for its column is scanned for.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from fastsim_ext.grouped cimport (
    View, grouped_best, grouped_growth, grouped_offers, grouped_view,
)
from fastsim_ext.device cimport device_fit_count
from fastsim_ext.memo cimport UNKNOWN, Memo
from fastsim_ext.nodes cimport NodeTable
from fastsim_ext.select cimport Choice, Selector, raw_points
from fastsim_ext.tree cimport Tree, tree_fell, tree_first, tree_plant, tree_put, tree_sum_up, tree_top
from fastsim_ext.types cimport FGD, FULL, MIN_MAX_100, NORM_NONE, PICK_FGD, PYTHON, RANDOM, Node, Pod
from fastsim_ext.work cimport NO_CPU, NO_GPU, NO_GPU_MODEL, NO_MEMORY, NO_NODE, NO_POD_SLOT, WorkTable

cdef enum:
    ROOM = 512                   # most columns
    BYTES = 96 * 1024 * 1024     # most memory of all columns
    FEW = 192                    # so few classes that each may have a lane of the memo
    LASTING = 8                  # a column goes after this many changes per node without a question


cdef inline int64_t stretch(int64_t raw, int64_t low, int64_t high, int normalise) noexcept nogil:
    """Points stretched to 0..100 between the extremes over the feasible nodes."""
    if low == high:
        return 100 if normalise == MIN_MAX_100 else 0
    return (raw - low) * 100 // (high - low)


cdef class Indexed(Selector):
    """A Selector that answers the same choices from kept scores.

    ``memo`` keeps points by node state and may be lent to one run after the other; ``kind`` numbers equal nodes.
    """

    def __cinit__(self):
        self.columns = <Column*> calloc(ROOM, sizeof(Column))
        self.families = <Family*> calloc(ROOM, sizeof(Family))
        self.after = <int32_t*> calloc(ROOM, sizeof(int32_t))
        if self.columns == NULL or self.families == NULL or self.after == NULL:
            raise MemoryError()

    def __init__(self, NodeTable nodes, WorkTable work, plan, uint64_t seed, scorer):
        cdef int term
        Selector.__init__(self, nodes, work, plan, seed, scorer)
        self.memo, self.kind, self.state_of = plan["memo"], plan["kind"], plan["state"]
        self.n_terms = self.kernel.shape[0]
        if self.n_terms > TERMS:
            raise ValueError(f"found a plan of {self.n_terms} terms, expected at most {TERMS}")
        for term in range(self.n_terms):
            # One term alone orders the nodes as its points do, however they are stretched.
            self.stretched = self.stretched or (self.n_terms > 1 and self.normalise[term] != NORM_NONE)
        self.limit = max(16, min(ROOM, BYTES // (5 * (1 + 2 * TERMS * self.stretched) * max(nodes.count, 1))))
        nodes.watched = True

    def __dealloc__(self):
        cdef int c
        for c in range(self.n_columns):
            self.fell(c)
        free(self.columns)
        free(self.families)
        free(self.after)
        free(self.column_of)
        free(self.lane_of)
        free(self.seen)

    def restart(self, Memo memo):
        """Forget all columns and keep points in another memo from now on."""
        cdef int32_t c
        for c in range(self.n_columns):
            self.fell(c)
        for c in range(self.class_room):
            self.column_of[c] = self.lane_of[c] = -1
        self.n_columns = self.n_used = self.n_families = 0
        self.memo = memo
        self.state_of[:] = -1

    cdef int choose(self, int cls, Choice* choice) except -1 nogil:
        """Decide where a pod of class ``cls`` goes; counts as one attempt."""
        cdef const Pod* pod = &self.work.classes[cls]
        cdef int32_t c, top
        cdef Node node
        self.settle()
        c = self.column_for(cls)
        if c < 0:
            self.scans += 1
            return Selector.choose(self, cls, choice)
        if self.stretched:
            self.stretch_again(&self.columns[c])
        top = tree_top(&self.columns[c].total)
        choice.node, choice.gpus, choice.reason = -1, 0, NO_NODE
        if top <= UNFIT // 2:
            choice.reason = top - UNFIT if self.nodes.count > 0 else NO_NODE
        else:
            choice.node = tree_first(&self.columns[c].total, top)
            node = self.nodes.at(choice.node)
            choice.gpus = self.devices(&node, pod, self.gpu_pick)
        self.attempts += 1
        return 0

    cdef uint64_t devices(self, const Node* node, const Pod* pod, int pick) noexcept nogil:
        """The devices a pod gets on its node, as a Selector would answer."""
        cdef View view
        cdef uint64_t gpus
        if pick == PICK_FGD and pod.num_gpu == 1 and pod.milli < FULL:
            grouped_view(node, &self.nodes.target.groups, &view)
            grouped_growth(&view, pod, &self.nodes.target.typical, &gpus)
            return gpus
        return Selector.devices(self, node, pod, pick)

    cdef int feasible(self, const Pod* pod, int* stage) noexcept nogil:
        """List the nodes that can host the pod; how far the others got matters only if there is none."""
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
        return count if count > 0 else Selector.feasible(self, pod, stage)

    cdef int score(self, int term, int cls, const Pod* pod, int count) except -1 nogil:
        """Raw points of one term on every feasible node, from the memo where it knows the class."""
        cdef int f, n
        cdef int32_t lane = self.lane_for(cls)
        cdef int32_t* figure
        if self.kernel[term] == RANDOM or self.kernel[term] == PYTHON:
            return Selector.score(self, term, cls, pod, count)
        for f in range(count):
            n = self.feasible__f[f]
            if lane < 0:
                self.raw__f[f] = self.fresh_points(term, n, pod)
                continue
            figure = self.memo.figures(self.state(n), lane) + term
            if figure[0] == UNKNOWN:
                figure[0] = <int32_t> self.fresh_points(term, n, pod)
            self.raw__f[f] = figure[0]
        return 0

    cdef int32_t lane_for(self, int cls) except -2 nogil:
        """The lane of a class in the memo; a class has one if it has a column or if there are few classes."""
        if cls >= self.class_room:
            self.know(self.work.n_classes)
        if self.lane_of[cls] == -1:
            self.lane_of[cls] = -2
            if self.work.n_classes <= FEW or self.column_of[cls] >= 0:
                self.lane_of[cls] = self.memo.lane(&self.work.classes[cls])
        return self.lane_of[cls]

    cdef int32_t state(self, int n) except -1 nogil:
        """The number of the state that node ``n`` is in."""
        cdef Node node
        if self.generation != self.memo.generation:
            self.generation = self.memo.generation
            self.state_of[:] = -1
        if self.state_of[n] < 0:
            node = self.nodes.at(n)
            self.state_of[n] = self.memo.state(self.kind[n], &node)
            if self.generation != self.memo.generation:   # it forgot everything else to make room
                self.generation = self.memo.generation
                self.state_of[:] = -1
                self.state_of[n] = self.memo.state(self.kind[n], &node)
        return self.state_of[n]

    cdef int64_t fresh_points(self, int term, int n, const Pod* pod) noexcept nogil:
        """Raw points of one term on node ``n``, worked out."""
        cdef uint64_t gpus
        cdef View view
        cdef Node node = self.nodes.at(n)
        if self.kernel[term] == FGD:
            grouped_view(&node, &self.nodes.target.groups, &view)
            return grouped_growth(&view, pod, &self.nodes.target.typical, &gpus)
        return raw_points(self.kernel[term], &node, pod, &self.nodes.target.typical, self.dim[term], self.norm[term],
                          &gpus)

    cdef int settle(self) except -1 nogil:
        """Correct every column for the nodes that changed since the last time."""
        cdef int i, n
        for i in range(self.nodes.n_changed):
            n = self.nodes.changed[i]
            self.nodes.listed[n] = 0
            self.state_of[n] = -1
            if self.n_used > 0:
                self.revalue(n)
        self.changes += self.nodes.n_changed
        self.nodes.n_changed = 0
        return 0

    cdef int revalue(self, int n) except -1 nogil:
        """Value node ``n`` anew for every column, family by family."""
        cdef Node node = self.nodes.at(n)
        cdef View view
        cdef Family* family
        cdef int f
        cdef int32_t c
        cdef bint fits
        cdef int32_t* figures = self.memo.figures(self.state(n), 0)
        view.node = NULL
        for f in range(self.n_families):
            family = &self.families[f]
            fits = family.num == 0 or device_fit_count(&node, family.milli) >= family.num
            view.n_offers = 0
            c = family.first
            while c >= 0:
                self.write(&self.columns[c], n, &node, fits, figures, &view)
                c = self.after[c]
        return 0

    cdef int stage(self, const Node* node, int n, const Pod* pod, bint fits) noexcept nogil:
        """The first check the node fails for the pod, as ``misfit`` has it, or 0."""
        if not self.nodes.present[n]:
            return NO_NODE
        if pod.num_gpu > 0:
            if pod.models != 0 and (node.model < 0 or not (pod.models >> node.model) & 1):
                return NO_GPU_MODEL
            if not fits:
                return NO_GPU
        if node.cpu_left < pod.cpu:
            return NO_CPU
        if node.mem_left < pod.mem:
            return NO_MEMORY
        return NO_POD_SLOT if self.nodes.pods[n] >= self.nodes.max_pods[n] else 0

    cdef int64_t points(self, int term, const Node* node, const Pod* pod, View* view) noexcept nogil:
        """Raw points of one term, worked out; the view and its offers are made when first needed."""
        cdef uint64_t gpus
        cdef int points
        if self.kernel[term] != FGD:
            return raw_points(self.kernel[term], node, pod, &self.nodes.target.typical, self.dim[term],
                              self.norm[term], &gpus)
        if view.node == NULL:
            grouped_view(node, &self.nodes.target.groups, view)
            view.n_offers = 0
        if view.n_offers == 0:
            grouped_offers(view, pod.num_gpu, pod.milli)
        points = grouped_best(view, pod)
        return points if points >= 0 else grouped_growth(view, pod, &self.nodes.target.typical, &gpus)

    cdef void write(self, Column* column, int n, const Node* node, bint fits, int32_t* figures,
                    View* view) noexcept nogil:
        """Enter what node ``n`` is worth to a column; ``figures`` are the first of its state."""
        cdef const Pod* pod = &self.work.classes[column.cls]
        cdef int stage = self.stage(node, n, pod, fits)
        cdef int term
        cdef int64_t total = UNFIT + stage if stage != 0 else 0
        cdef int32_t* figure = figures + column.lane * self.memo.each
        for term in range(self.n_terms):
            if stage == 0 and figure[term] == UNKNOWN:
                figure[term] = <int32_t> self.points(term, node, pod, view)
            if self.stretched:
                self.note(column, term, n, figure[term] if stage == 0 else total, stage == 0)
            elif stage == 0:
                total += self.weight[term] * figure[term]
        if self.stretched and stage == 0:
            total = self.stretched_total(column, n)
        if column.total.cells[n] != total:
            tree_put(&column.total, n, <int32_t> total)

    cdef void note(self, Column* column, int term, int n, int64_t raw, bint fits) noexcept nogil:
        """Keep the raw points of one term, with both extremes if they are stretched."""
        if self.normalise[term] == NORM_NONE:
            column.high[term].cells[n] = <int32_t> raw
            return
        if column.high[term].cells[n] != raw:
            tree_put(&column.high[term], n, <int32_t> raw)
        raw = -raw if fits else UNFIT
        if column.low[term].cells[n] != raw:
            tree_put(&column.low[term], n, <int32_t> raw)

    cdef int64_t stretched_total(self, const Column* column, int n) noexcept nogil:
        """The total of a node that fits, between the extremes the column was last stretched with."""
        cdef int term
        cdef int64_t raw
        cdef int64_t total = 0
        for term in range(self.n_terms):
            raw = column.high[term].cells[n]
            if self.normalise[term] != NORM_NONE:
                raw = stretch(raw, column.least[term], column.most[term], self.normalise[term])
            total += self.weight[term] * raw
        return total

    cdef void stretch_again(self, Column* column) noexcept nogil:
        """Make the totals true for the extremes of now."""
        cdef int term, n
        cdef bint same = True
        cdef int64_t most, least
        for term in range(self.n_terms):
            if self.normalise[term] == NORM_NONE:
                continue
            most, least = tree_top(&column.high[term]), -tree_top(&column.low[term])
            if most <= UNFIT // 2:
                return
            same = same and column.most[term] == most and column.least[term] == least
            column.most[term], column.least[term] = most, least
        if same:
            return
        for n in range(self.nodes.count):
            if column.total.cells[n] > UNFIT // 2:
                column.total.cells[n] = <int32_t> self.stretched_total(column, n)
        tree_sum_up(&column.total)

    cdef int32_t column_for(self, int cls) except -2 nogil:
        """The column of a class, made now if the class has become frequent; -1 if it has none."""
        cdef int64_t last
        if cls >= self.class_room:
            self.know(self.work.n_classes)
        if self.column_of[cls] >= 0:
            self.columns[self.column_of[cls]].seen = self.changes
            return self.column_of[cls]
        last = self.seen[cls]
        self.seen[cls] = self.changes
        # A column costs about as much per change as a scan costs per node.
        if last < 0 or self.changes - last > self.nodes.count:
            return -1
        if self.n_used >= self.limit:
            self.drop_stale()
        return self.build(cls) if self.n_used < self.limit else -1

    cdef int know(self, int classes) except -1 nogil:
        """Room for what is remembered of each class."""
        cdef int room = max(2 * self.class_room, classes + 64)
        cdef int c
        cdef int32_t* column_of = <int32_t*> realloc(self.column_of, room * sizeof(int32_t))
        if column_of != NULL:
            self.column_of = column_of
        cdef int32_t* lane_of = <int32_t*> realloc(self.lane_of, room * sizeof(int32_t))
        if lane_of != NULL:
            self.lane_of = lane_of
        cdef int64_t* seen = <int64_t*> realloc(self.seen, room * sizeof(int64_t))
        if seen != NULL:
            self.seen = seen
        if column_of == NULL or lane_of == NULL or seen == NULL:
            with gil:
                raise MemoryError()
        for c in range(self.class_room, room):
            self.column_of[c] = self.lane_of[c] = -1
            self.seen[c] = -1
        self.class_room = room
        return 0

    cdef int32_t build(self, int cls) except -2 nogil:
        """A column for a class, with the value of every node."""
        cdef int32_t c = 0
        cdef int n, term
        cdef Column* column
        while c < self.n_columns and self.columns[c].total.cells != NULL:
            c += 1
        column = &self.columns[c]
        column.cls, column.seen, self.column_of[cls] = cls, self.changes, c
        if self.lane_of[cls] < 0:
            self.lane_of[cls] = -1
        column.lane = self.lane_for(cls)
        if column.lane < 0:
            self.column_of[cls] = -1
            return -1
        tree_plant(&column.total, self.nodes.count)
        if self.stretched:
            for term in range(self.n_terms):
                tree_plant(&column.high[term], self.nodes.count)
                tree_plant(&column.low[term], self.nodes.count)
        self.n_columns = max(self.n_columns, c + 1)
        self.n_used += 1
        self.built += 1
        self.join_family(c)
        for n in range(self.nodes.count):
            self.value(column, n)
        tree_sum_up(&column.total)
        if self.stretched:
            for term in range(self.n_terms):
                tree_sum_up(&column.high[term])
                tree_sum_up(&column.low[term])
        return c

    cdef int value(self, Column* column, int n) except -1 nogil:
        """Value one node for one column."""
        cdef Node node = self.nodes.at(n)
        cdef const Pod* pod = &self.work.classes[column.cls]
        cdef View view
        cdef bint fits = pod.num_gpu == 0 or device_fit_count(&node, pod.milli) >= pod.num_gpu
        view.node = NULL
        view.n_offers = 0
        self.write(column, n, &node, fits, self.memo.figures(self.state(n), 0), &view)
        return 0

    cdef void join_family(self, int32_t c) noexcept nogil:
        """Link a column to those that ask for the same devices."""
        cdef const Pod* pod = &self.work.classes[self.columns[c].cls]
        cdef int f = 0
        while f < self.n_families and not (
                self.families[f].num == pod.num_gpu and self.families[f].milli == pod.milli):
            f += 1
        if f == self.n_families:
            self.n_families += 1
            self.families[f].num, self.families[f].milli, self.families[f].first = pod.num_gpu, pod.milli, -1
        self.columns[c].family = f
        self.after[c] = self.families[f].first
        self.families[f].first = c

    cdef void fell(self, int32_t c) noexcept nogil:
        """Give the memory of a column back."""
        cdef int term
        tree_fell(&self.columns[c].total)
        for term in range(self.n_terms):
            tree_fell(&self.columns[c].high[term])
            tree_fell(&self.columns[c].low[term])

    cdef void drop_stale(self) noexcept nogil:
        """Give up columns nobody has asked for a long time."""
        cdef int32_t c
        cdef int32_t* link
        cdef int64_t oldest = self.changes - LASTING * <int64_t> self.nodes.count
        for c in range(self.n_columns):
            if self.columns[c].total.cells == NULL or self.columns[c].seen >= oldest:
                continue
            link = &self.families[self.columns[c].family].first
            while link[0] != c:
                link = &self.after[link[0]]
            link[0] = self.after[c]
            self.column_of[self.columns[c].cls] = -1
            self.fell(c)
            self.n_used -= 1
