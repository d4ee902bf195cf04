"""What every node is worth to one pod class, kept for many classes and corrected node by node.

A placement changes one node, so a column once made only needs the nodes that changed. A column is a
tree of maxima over the nodes, of the class's total or of how far the node got in the filter. Columns
that ask for the same devices form a family and share what follows from the devices alone. A bound is
a column for all pods of a family that ask for at least so much CPU.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free
from fastsim_ext.device cimport device_fit_count
from fastsim_ext.grouped cimport View, grouped_offers, grouped_view
from fastsim_ext.memo cimport UNKNOWN, Memo
from fastsim_ext.nodes cimport NodeTable
from fastsim_ext.points cimport points_bound, points_bounded, points_viewed
from fastsim_ext.tree cimport tree_fell, tree_plant, tree_put, tree_sum_up, tree_top
from fastsim_ext.types cimport FGD, MIN_MAX_100, NORM_NONE, Node, Pod
from fastsim_ext.work cimport NO_CPU, NO_GPU, NO_GPU_MODEL, NO_MEMORY, NO_NODE, NO_POD_SLOT

cdef enum:
    ROOM = 512                   # most columns, and most families
    BYTES = 100663296            # most memory of all columns
    LEAST = 16                   # columns that are always allowed


cdef inline int64_t stretch(int64_t raw, int64_t low, int64_t high, int normalise) noexcept nogil:
    """Points stretched to 0..100 between the extremes over the feasible nodes."""
    if low == high:
        return 100 if normalise == MIN_MAX_100 else 0
    return (raw - low) * 100 // (high - low)


cdef class ColumnTable:
    """The columns of one run; ``memo`` keeps points by node state, ``kind`` numbers equal nodes."""

    def __cinit__(self):
        self.columns = <Column*> calloc(ROOM, sizeof(Column))
        self.families = <Family*> calloc(ROOM, sizeof(Family))
        if self.columns == NULL or self.families == NULL:
            raise MemoryError()

    def __init__(self, NodeTable nodes, plan, Memo memo, kind, state):
        cdef int term
        self.nodes, self.memo, self.kind, self.state_of = nodes, memo, kind, state
        self.kernel, self.normalise, self.weight = plan["kernel"], plan["normalise"], plan["weight"]
        self.dim, self.norm = plan["dim"], plan["norm"]
        self.n_terms = self.kernel.shape[0]
        if self.n_terms > TERMS:
            raise ValueError(f"found a plan of {self.n_terms} terms, expected at most {TERMS}")
        self.bounded = True
        for term in range(self.n_terms):
            # One term alone orders the nodes as its points do, however they are stretched.
            self.stretched = self.stretched or (self.n_terms > 1 and self.normalise[term] != NORM_NONE)
            self.bounded = self.bounded and points_bounded(self.kernel[term])
        self.bounded = self.bounded and not self.stretched
        trees = 1 + 2 * self.n_terms if self.stretched else 1
        self.limit = max(LEAST, min(ROOM, BYTES // (5 * trees * max(nodes.count, 1))))
        nodes.watched = True

    def __dealloc__(self):
        cdef int c
        for c in range(self.n_columns):
            self.drop(c)
        free(self.columns)
        free(self.families)

    def restart(self, Memo memo):
        """Forget all columns and keep points in another memo from now on."""
        cdef int c
        for c in range(self.n_columns):
            self.drop(c)
        self.n_columns = self.n_families = 0
        self.memo = memo
        self.state_of[:] = -1

    cdef int32_t state(self, int n) except -1 nogil:
        """The number of the state that node ``n`` is in."""
        cdef Node node
        cdef int32_t found = self.state_of[n]
        if found >= 0 and self.generation == self.memo.generation:
            return found
        node = self.nodes.at(n)
        found = self.memo.state(self.kind[n], &node)
        if self.generation != self.memo.generation:    # numbers given before it forgot mean nothing now
            self.generation = self.memo.generation
            self.state_of[:] = -1
        self.state_of[n] = found
        return found

    cdef int revalue(self, int n) except -1 nogil:
        """Value node ``n`` anew for every column, family by family."""
        cdef Node node
        cdef View view
        cdef Family* family
        cdef int f
        cdef int32_t c
        cdef bint fits
        cdef int32_t* figures
        self.state_of[n] = -1
        if self.n_used == 0:
            return 0
        node = self.nodes.at(n)
        figures = self.memo.figures(self.state(n), 0)
        view.groups = NULL
        view.node = &node
        for f in range(self.n_families):
            family = &self.families[f]
            if family.first < 0:
                continue
            fits = family.num == 0 or device_fit_count(&node, family.milli) >= family.num
            view.n_offers = 0
            c = family.first
            while c >= 0:
                self.write(&self.columns[c], n, self.stage(&node, n, &self.columns[c].pod, fits), figures, &view)
                c = self.columns[c].after
        return 0

    cdef int value(self, Column* column, int n) except -1 nogil:
        """Value one node for one column."""
        cdef Node node = self.nodes.at(n)
        cdef View view
        cdef bint fits = column.pod.num_gpu == 0 or device_fit_count(&node, column.pod.milli) >= column.pod.num_gpu
        view.groups = NULL
        view.node = &node
        view.n_offers = 0
        self.write(column, n, self.stage(&node, n, &column.pod, fits), self.memo.figures(self.state(n), 0), &view)
        return 0

    cdef int stage(self, const Node* node, int n, const Pod* pod, bint fits) noexcept nogil:
        """The first check the node fails for the pod, as a Reason, or 0; ``fits`` says whether the devices do."""
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

    cdef void write(self, Column* column, int n, int stage, int32_t* figures, View* view) noexcept nogil:
        """Enter what node ``n`` is worth to a column; ``figures`` are the first of its state."""
        cdef int term
        cdef int32_t raw
        cdef int64_t total = UNFIT + stage if stage != 0 else 0
        cdef int32_t* figure = figures + column.lane * self.memo.each
        for term in range(self.n_terms):
            if stage != 0:
                if not self.stretched:
                    break
                self.note(column, term, n, total, False)
                continue
            raw = figure[term] if column.lane >= 0 else UNKNOWN
            if raw == UNKNOWN:
                raw = <int32_t> self.points(term, column, view)
                if column.lane >= 0:
                    figure[term] = raw
            if self.stretched:
                self.note(column, term, n, raw, True)
            else:
                total += self.weight[term] * raw
        if self.stretched and stage == 0:
            total = self.stretched_total(column, n)
        if column.total.cells[n] != total:
            tree_put(&column.total, n, <int32_t> total)

    cdef int64_t points(self, int term, const Column* column, View* view) noexcept nogil:
        """Raw points of one term, worked out; the groups' view and the offers are made when first needed."""
        if self.kernel[term] == FGD:
            if view.groups == NULL:
                grouped_view(view.node, &self.nodes.target.groups, view)
                view.n_offers = 0
            if view.n_offers == 0:
                grouped_offers(view, column.pod.num_gpu, column.pod.milli)
        if column.most_cpu >= 0:
            return points_bound(self.kernel[term], &column.pod, column.most_cpu, view)
        return points_viewed(self.kernel[term], &column.pod, &self.nodes.target.typical, self.dim[term],
                             self.norm[term], view)

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
            if most <= WORST:
                return
            same = same and column.most[term] == most and column.least[term] == least
            column.most[term], column.least[term] = most, least
        if same:
            return
        for n in range(self.nodes.count):
            if column.total.cells[n] > WORST:
                column.total.cells[n] = <int32_t> self.stretched_total(column, n)
        tree_sum_up(&column.total)

    cdef int32_t build(self, const Pod* pod, int64_t most_cpu, int32_t owner) except -2 nogil:
        """A column with the value of every node, or -1 if there is no room for one."""
        cdef int32_t c = 0
        cdef int32_t lane = -1
        cdef int n, term
        cdef Column* column
        cdef int family = self.family_of(pod.num_gpu, pod.milli)
        if self.n_used >= self.limit or family < 0:
            return -1
        if most_cpu < 0:
            lane = self.memo.lane(pod)
            if lane < 0:
                return -1
        while c < self.n_columns and self.columns[c].total.cells != NULL:
            c += 1
        column = &self.columns[c]
        column.pod, column.most_cpu, column.lane, column.owner = pod[0], most_cpu, lane, owner
        column.family = family
        tree_plant(&column.total, self.nodes.count)
        for term in range(self.n_terms if self.stretched else 0):
            tree_plant(&column.high[term], self.nodes.count)
            tree_plant(&column.low[term], self.nodes.count)
            column.most[term] = column.least[term] = 0
        self.n_columns = max(self.n_columns, c + 1)
        self.n_used += 1
        column.after = self.families[column.family].first
        self.families[column.family].first = c
        for n in range(self.nodes.count):
            self.value(column, n)
        return c

    cdef int family_of(self, int num, int milli) noexcept nogil:
        """The family of a device request, new or known; -1 if there are too many."""
        cdef int f = 0
        while f < self.n_families and not (self.families[f].num == num and self.families[f].milli == milli):
            f += 1
        if f == ROOM:
            return -1
        if f == self.n_families:
            self.n_families += 1
            self.families[f].num, self.families[f].milli, self.families[f].first = num, milli, -1
        return f

    cdef void drop(self, int32_t c) noexcept nogil:
        """Give up a column and its memory."""
        cdef Column* column = &self.columns[c]
        cdef int32_t* link = &self.families[column.family].first
        cdef int term
        if column.total.cells == NULL:
            return
        while link[0] != c:
            link = &self.columns[link[0]].after
        link[0] = column.after
        tree_fell(&column.total)
        for term in range(self.n_terms if self.stretched else 0):
            tree_fell(&column.high[term])
            tree_fell(&column.low[term])
        self.n_used -= 1

    cpdef int verify(self) except -1:
        """Every column says of every node what it would say if it were made now."""
        cdef int c, n
        cdef int32_t kept
        for n in range(self.nodes.n_changed):
            self.revalue(self.nodes.changed[n])
        for c in range(self.n_columns):
            if self.columns[c].total.cells == NULL:
                continue
            for n in range(self.nodes.count):
                kept = self.columns[c].total.cells[n]
                self.value(&self.columns[c], n)
                assert kept == self.columns[c].total.cells[n], f"column {c}, node {n}: kept {kept}"
        return 0
