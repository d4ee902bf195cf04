"""Totals of all nodes for one pod class, stored as columns for many classes and updated node by node.

A placement changes one node, so a column is only updated for nodes that changed. A column is a tree
of maxima over the nodes, of the class's total or of the check that the node failed. Values of one node
in all columns are adjacent and updated in one pass. Columns that request the same devices form a
family and share what follows from the devices alone. A bound is a column for all pods of a family
whose CPU request is in a range; no pod in it has a larger total.
"""

from array import array
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free
from fastsim_ext.memory cimport ahead
from fastsim_ext.scores.frag_grouped cimport View
from fastsim_ext.scores.points cimport points_bound, points_bounded, points_frag, points_viewed
from fastsim_ext.scores.power cimport power_savings
from fastsim_ext.select.class_demands cimport (
    ROOM, SMALL_UNFIT, SMALL_WORST, TERMS, UNFIT, WORST, ClassDemands, demands_alloc, demands_check, demands_check_one,
    demands_drop, demands_expressible, demands_set,
)
from fastsim_ext.select.max_tree cimport (
    ROW, MaxForest, Tree, tree_clear, tree_prefetch, tree_free, tree_first, tree_leaf, tree_of, tree_alloc,
    tree_put, tree_put_row, tree_duplicate, tree_sound, tree_rebuild, tree_write,
)
from fastsim_ext.select.max_tree_updates cimport updates_apply
from fastsim_ext.select.state_memo cimport UNKNOWN, Key, Memo, memo_figure, memo_keep, memo_spread
from fastsim_ext.state.node_table cimport NodeTable
from fastsim_ext.state.pod_outcomes cimport NO_NODE
from fastsim_ext.types cimport FGD, GPU_PACKING, NORM_NONE, PWR, Node, Pod, Typical

ONE = array("q", [1])

cdef enum:
    FAMILIES = 128               # most families
    BATCH = 4                    # nodes whose states are looked up together


def normalises(plan):
    """Whether totals depend on extremes over the nodes; ``plan`` as in a Selector."""
    # A single term has its largest total where its points are largest, however they are normalised; its smallest
    # points may become equal.
    alone = len(plan["kernel"]) == 1 and plan["weight"][0] >= 0
    return not alone and any(normalise != NORM_NONE for normalise in plan["normalise"])


def fits_byte(plan):
    """Whether totals take one byte: of one term alone their order is that of its points, whatever its weight."""
    return len(plan["kernel"]) == 1 and plan["weight"][0] > 0 and plan["kernel"][0] in (FGD, GPU_PACKING)


cdef class ScoreColumns:
    """The columns of one plan over one table of nodes; ``plan`` as in a Selector."""

    def __init__(self, NodeTable nodes, plan, Memo memo, kind, state_of):
        cdef const int32_t[::1] kinds = kind
        cdef int term, n
        self.nodes, self.memo, self.state_of = nodes, memo, state_of
        for n in range(nodes.count):
            nodes.records[n].kind = kinds[n]
        self.kernel, self.normalise, self.weight = plan["kernel"], plan["normalise"], plan["weight"]
        self.dim, self.norm, self.figure = plan["dim"], plan["norm"], plan["figure"]
        self.n_terms = self.kernel.shape[0]
        if self.n_terms > TERMS:
            raise ValueError(f"found a plan of {self.n_terms} terms, expected at most {TERMS}")
        self.columns = <ScoreColumn*> calloc(ROOM, sizeof(ScoreColumn))
        self.trees = <Tree*> calloc(ROOM, sizeof(Tree))
        self.forests = <MaxForest*> calloc(ROOM, sizeof(MaxForest))
        self.points = <MaxForest*> calloc(ROOM * TERMS, sizeof(MaxForest))
        self.families = <DeviceFamily*> calloc(FAMILIES, sizeof(DeviceFamily))
        self.memo_at = <int32_t*> calloc(ROOM * TERMS, sizeof(int32_t))
        self.verdict = <int32_t*> calloc(ROOM, sizeof(int32_t))
        self.total = <int32_t*> calloc(ROOM, sizeof(int32_t))
        self.raw = <int32_t*> calloc(ROOM * TERMS, sizeof(int32_t))
        self.demands = <ClassDemands*> calloc(1, sizeof(ClassDemands))
        if (self.columns == NULL or self.trees == NULL or self.forests == NULL or self.points == NULL
                or self.families == NULL or self.memo_at == NULL or self.verdict == NULL or self.raw == NULL
                or self.total == NULL or self.demands == NULL):
            raise MemoryError()
        demands_alloc(self.demands, max(nodes.model, default=-1) + 1)
        self.bounded, self.frag_term, self.normalised = True, -1, normalises(plan)
        self.memoised = any(figure >= 0 for figure in self.figure)
        for term in range(self.n_terms):
            self.bounded = self.bounded and points_bounded(self.kernel[term]) and self.weight[term] >= 0
            if self.kernel[term] == FGD and self.normalise[term] == NORM_NONE and self.weight[term] >= 0:
                self.frag_term = term
        self.bounded = self.bounded and not self.normalised
        self.narrow = fits_byte(plan)
        self.unfit, self.worst = (SMALL_UNFIT, SMALL_WORST) if self.narrow else (UNFIT, WORST)
        if self.narrow:
            self.weight = ONE
        rows = 1 + self.n_terms if self.normalised else 1
        settings = plan["column_settings"]
        room = settings["columns_bytes"] // ((2 if self.narrow else 6) * rows * max(nodes.count, 1))
        self.limit = max(settings["least_columns"], min(ROOM, room))
        self.most_gaps = settings["most_gaps"]
        nodes.watched = True

    def __dealloc__(self):
        cdef int c
        if self.columns != NULL:
            for c in range(ROOM):
                free(self.columns[c].counts)
                tree_free(&self.forests[c])
            for c in range(ROOM * TERMS):
                tree_free(&self.points[c])
        if self.demands != NULL:
            free(self.demands.closed)
        free(self.columns)
        free(self.trees)
        free(self.forests)
        free(self.points)
        free(self.families)
        free(self.memo_at)
        free(self.verdict)
        free(self.total)
        free(self.raw)
        free(self.demands)

    def restart(self, Memo memo):
        """Drop all columns and store points in another memo from now on."""
        cdef int c
        for c in range(self.n_columns):
            self.drop(c)
        self.n_columns = self.n_families = 0
        self.memo = memo
        self.state_of[:] = -1

    cdef int32_t state(self, int n) except -1 nogil:
        """The number of the state of node ``n``."""
        cdef int32_t state = self.state_of[n]
        cdef Key key
        if state >= 0 and self.generation == self.memo.generation:
            return state
        self.memo.describe(&self.nodes.records[n], &key)
        return self.number(n, &key)

    cdef int32_t number(self, int n, const Key* key) except -1 nogil:
        """The number of the state with this key, noted for node ``n``."""
        cdef int32_t state = self.memo.state(key)
        if self.generation != self.memo.generation:    # state numbers were reassigned
            self.generation = self.memo.generation
            self.state_of[:] = -1
        self.state_of[n] = state
        return state

    cdef void prefetch(self, int n) noexcept nogil:
        """Prefetch what a change of node ``n`` touches; in large clusters it is not in the cache."""
        cdef int g
        ahead(&self.state_of[n])
        for g in range((self.n_columns + ROW - 1) // ROW):
            tree_prefetch(&self.forests[g], n, g == 0)

    cdef int changed(self, const int32_t* nodes, int count) except -1 nogil:
        """Update every column for nodes that changed.

        Rows of the memo are prefetched for a few nodes at a time.
        """
        cdef Key[BATCH] key
        cdef int i, few
        cdef int first = 0
        for i in range(count):
            self.state_of[nodes[i]] = -1
        while first < count and self.n_used > 0:
            few = min(count - first, BATCH)
            if self.memoised:
                for i in range(few):
                    self.memo.describe(&self.nodes.records[nodes[first + i]], &key[i])
                for i in range(few):
                    self.memo.prefetch(&key[i])
            for i in range(few):
                if self.memoised and self.nodes.present[nodes[first + i]]:
                    self.number(nodes[first + i], &key[i])
                self.revalue(nodes[first + i], 0, self.n_columns)
            first += few
        return 0

    cdef int revalue(self, int n, int first, int last) except -1 nogil:
        """Compute the values of node ``n`` for the columns from ``first`` to before ``last``."""
        cdef const Node* node = &self.nodes.records[n]
        cdef View view
        cdef int c, term
        if self.nodes.present[n]:
            demands_check(self.demands, first, last, node, node.slots <= 0, self.unfit, self.verdict)
            view.groups, view.node = NULL, node
            for term in range(self.n_terms):
                self.value(term, n, first, last, &view)
        else:
            for c in range(first, last):
                self.verdict[c] = self.unfit + NO_NODE
        self.add_up(n, first, last)
        write_row(self, n, first, last)
        return 0

    cdef int value(self, int term, int n, int first, int last, View* view) except -1 nogil:
        """Raw points of one term on node ``n``, for the columns whose checks it passes."""
        cdef int32_t* raw = self.raw + term * ROOM
        cdef char* row
        cdef int c
        view.n_offers = 0
        if self.kernel[term] == PWR:
            power_savings(view.node, self.demands.cpu, self.demands.most, self.demands.idle, first, last, self.verdict,
                          raw)
            return 0
        if self.figure[term] < 0:
            for c in range(first, last):
                if self.verdict[c] == 0:
                    raw[c] = self.raw_points(term, c, n, view)
            return 0
        row = self.memo.row(self.state(n))
        if not memo_spread(row, self.memo.coarse, NULL if self.aligned else self.memo_at + term * ROOM, self.verdict,
                           first, last, raw):
            return 0
        if last - first > 1:
            self.fill_missing(term, n, row, view)
        else:
            raw[first] = self.raw_points(term, first, n, view)
            memo_keep(row, self.memo_at[term * ROOM + first], self.memo.coarse, raw[first])
        return 0

    cdef void fill_missing(self, int term, int n, char* row, View* view) noexcept nogil:
        """Compute the points missing from the memo; columns of a family share their offers."""
        cdef int32_t* raw = self.raw + term * ROOM
        cdef const Typical* typical = &self.nodes.target.typical
        cdef const ScoreColumn* column
        cdef int f
        cdef int32_t c
        cdef bint frag = self.kernel[term] == FGD and (not self.normalised or term == self.frag_term)
        if frag:
            self.nodes.load_view(view.node, n, view)
        for f in range(self.n_families):
            view.n_offers = 0
            c = self.families[f].first
            while c >= 0:
                column = &self.columns[c]
                if raw[c] == UNKNOWN and self.verdict[c] == 0:
                    raw[c] = (points_frag(&column.pod, column.most_cpu >= 0, typical, view) if frag
                              else self.raw_points(term, c, n, view))
                    memo_keep(row, self.memo_at[term * ROOM + c], self.memo.coarse, raw[c])
                c = self.columns[c].next_in_family

    cdef int32_t raw_points(self, int term, int c, int n, View* view) noexcept nogil:
        """Raw points of one term; the view and the offers are computed when first needed."""
        cdef const ScoreColumn* column = &self.columns[c]
        if self.normalised and column.most_cpu >= 0 and term != self.frag_term and self.kernel[term] != PWR:
            return 0                     # such a bound is used for ``frag_term`` only
        if self.kernel[term] == FGD:
            if view.groups == NULL:
                self.nodes.load_view(view.node, n, view)
            return points_frag(&column.pod, column.most_cpu >= 0, &self.nodes.target.typical, view)
        if column.most_cpu >= 0:
            return <int32_t> points_bound(self.kernel[term], &column.pod, column.most_cpu, view)
        return <int32_t> points_viewed(self.kernel[term], &column.pod, &self.nodes.target.typical, self.dim[term],
                                       self.norm[term], view)

    cdef void add_up(self, int n, int first, int last) noexcept nogil:
        """Totals of node ``n`` in the columns whose checks it passes."""
        cdef int term, c
        cdef int32_t weight, stage, fits
        cdef int32_t* verdict = self.verdict
        cdef int32_t* total = self.total
        cdef const int32_t* raw = self.raw
        weight = <int32_t> self.weight[0] if self.n_terms > 0 else 0  # a plan may have preferences alone
        for c in range(first, last):
            total[c] = weight * raw[c]
        for term in range(1, self.n_terms):
            weight, raw = <int32_t> self.weight[term], self.raw + term * ROOM
            for c in range(first, last):
                total[c] += weight * raw[c]
        for c in range(first, last):
            stage, fits = verdict[c], total[c]       # both are read, so that compilers need no branch
            verdict[c] = fits if stage == 0 else stage

    cdef int32_t first(self, int32_t c, int32_t* top) noexcept nogil:
        """The first node with the largest value of a column; ``top`` becomes the value."""
        return tree_first(self.tree(c), top)

    cdef const Tree* tree(self, int32_t c) noexcept nogil:
        """The tree of a column, its maxima updated."""
        updates_apply(&self.forests[c // ROW])
        return &self.trees[c]

    cdef int32_t bound_column(self, const Pod* pod) noexcept nogil:
        """A column that bounds a pod's points of ``frag_term`` if totals are normalised; here none."""
        return -1

    cdef int allocate(self, int32_t c) except -1 nogil:
        """Allocate the memory of a column."""
        cdef int forest, g
        for forest in range(c // ROW + 1):   # updates write to all of them
            if self.forests[forest].cells == NULL:
                tree_alloc(&self.forests[forest], self.nodes.count, ROW, 0, self.narrow)
                for g in range(ROW):
                    self.trees[forest * ROW + g] = tree_of(&self.forests[forest], g)
        tree_clear(&self.trees[c])
        return 0

    cdef int32_t build(self, const Pod* pod, int64_t most_cpu, int32_t owner) except -2 nogil:
        """Build a column with the values of all nodes; -1 if there is no room."""
        cdef int32_t c = 0
        cdef int n
        cdef ScoreColumn* column
        cdef int family = self.family_of(pod.num_gpu, pod.milli)
        cdef int32_t lane = self.memo.lane(pod)
        if self.n_used >= self.limit or family < 0 or lane < 0 or not demands_expressible(pod):
            return -1
        if lane < min(self.limit, 2 * (self.n_used + ROW)) and not self.columns[lane].used:
            c = lane
        while self.columns[c].used:
            c += 1
        self.aligned = (self.n_used == 0 or self.aligned) and c == lane and self.memo.terms_each == 1
        column = &self.columns[c]
        column.pod, column.most_cpu, column.owner, column.family = pod[0], most_cpu, owner, family
        column.lane, column.used = lane, True
        for n in range(self.n_terms):
            self.memo_at[n * ROOM + c] = lane * self.memo.terms_each + max(self.figure[n], 0)
        demands_set(self.demands, c, pod)
        self.allocate(c)
        write_column(self, c)
        tree_rebuild(&self.trees[c])
        self.n_columns = max(self.n_columns, c + 1)
        self.n_used += 1
        column.next_in_family = self.families[family].first
        self.families[family].first = c
        return c

    cdef int family_of(self, int num, int milli) noexcept nogil:
        """The family of a device request, new or known; -1 if there are too many."""
        cdef int f = 0
        while f < self.n_families and not (self.families[f].num == num and self.families[f].milli == milli):
            f += 1
        if f == FAMILIES:
            return -1
        if f == self.n_families:
            self.n_families += 1
            self.families[f].num, self.families[f].milli, self.families[f].first = num, milli, -1
        return f

    cdef void drop(self, int32_t c) noexcept nogil:
        """Drop a column; its number is free for the next one."""
        cdef int32_t* link = &self.families[self.columns[c].family].first
        if not self.columns[c].used:
            return
        while link[0] != c:
            link = &self.columns[link[0]].next_in_family
        link[0] = self.columns[c].next_in_family
        self.columns[c].used = False
        demands_drop(self.demands, c)
        self.n_used -= 1

    cdef int pack(self) except -1 nogil:
        """Move the last columns and their lanes to unused numbers; 1 if anything was moved."""
        cdef int32_t[ROOM] lane
        cdef int32_t c
        cdef int32_t gap = 0
        if self.n_columns - self.n_used <= self.most_gaps or self.normalised or not self.aligned:
            return 0
        for c in range(self.n_used):
            lane[c] = c
        for c in range(self.n_used, self.n_columns):
            if self.columns[c].used:
                while self.columns[gap].used:
                    gap += 1
                move_column(self, c, gap)
                lane[gap] = c
        self.n_columns = self.n_used
        self.memo.reorder_lanes(&lane[0], self.n_used)
        return 1

    cpdef int verify(self) except -1:
        """Check that every column equals one built now from points computed again."""
        cdef int c, n, term
        cdef int32_t stored
        cdef View view
        for n in range(self.nodes.n_changed):
            self.changed(&self.nodes.changed[n], 1)
        for c in range(self.n_columns):
            if not self.columns[c].used:
                continue
            assert tree_sound(self.tree(c)), f"column {c}: a maximum is not that of its nodes"
            for n in range(self.nodes.count):
                self.state_of[n] = -1
                stored = tree_leaf(&self.trees[c], n)
                self.revalue(n, c, c + 1)
                assert stored == tree_leaf(&self.trees[c], n), f"column {c}, node {n}: kept {stored}"
                view.node, view.groups, view.n_offers = &self.nodes.records[n], NULL, 0
                for term in range(self.n_terms if stored > self.worst else 0):
                    raw = self.raw_points(term, c, n, &view)
                    assert self.raw[term * ROOM + c] == raw, f"column {c}, node {n}, term {term}: not {raw}"
        return 0


cdef int write_column(ScoreColumns table, int c) except -1 nogil:
    """Write the values of all nodes to a new column, without maxima; the memo has most points of a single term."""
    cdef const Node* node
    cdef View view
    cdef bint single = table.n_terms == 1 and table.memoised and not table.normalised
    cdef int64_t wide = table.memo.row_bytes(table.memo.lane_room)
    cdef int32_t verdict, figure
    cdef int n, term
    for n in range(table.nodes.count):
        node, figure = &table.nodes.records[n], UNKNOWN
        verdict = table.unfit + NO_NODE
        if table.nodes.present[n]:
            verdict = demands_check_one(table.demands, c, node, node.slots <= 0, table.unfit)
        if verdict == 0 and single and table.state_of[n] >= 0 and table.generation == table.memo.generation:
            figure = memo_figure(table.memo.rows + table.state_of[n] * wide, table.memo_at[c], table.memo.coarse)
        if figure != UNKNOWN:
            verdict = <int32_t> table.weight[0] * figure
        elif verdict == 0:
            table.verdict[c], view.groups, view.node = 0, NULL, node
            for term in range(table.n_terms):
                table.value(term, n, c, c + 1, &view)
            table.add_up(n, c, c + 1)
            verdict = table.verdict[c]
        tree_write(&table.trees[c], n, verdict)
    return 0


cdef void write_row(ScoreColumns table, int n, int first, int last) noexcept nogil:
    """Write the values of node ``n`` to the trees."""
    cdef int forest
    if last - first == 1:
        tree_put(&table.trees[first], n, table.verdict[first])
        return
    for forest in range((last + ROW - 1) // ROW):
        tree_put_row(&table.forests[forest], n, table.verdict + forest * ROW)


cdef void move_column(ScoreColumns table, int32_t c, int32_t to) noexcept nogil:
    """Move a column to an unused number."""
    cdef int term
    cdef int32_t* link = &table.families[table.columns[c].family].first
    while link[0] != c:
        link = &table.columns[link[0]].next_in_family
    link[0] = to
    table.columns[to] = table.columns[c]
    table.columns[to].lane = to
    table.columns[c].used = False
    for term in range(table.n_terms):
        table.memo_at[term * ROOM + to] = to + max(table.figure[term], 0)
    demands_set(table.demands, to, &table.columns[to].pod)
    demands_drop(table.demands, c)
    tree_duplicate(table.tree(c), &table.trees[to])
