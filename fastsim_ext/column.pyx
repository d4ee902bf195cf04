"""What every node is worth to one pod class, kept for many classes and corrected node by node.

A placement changes one node, so a column once made only needs the nodes that changed. A column is a
tree of maxima over the nodes, of the class's total or of how far the node got in the filter. What all
columns say of a node lies side by side and is corrected in one pass. Columns that ask for the same
devices form a family and share what follows from the devices alone. A bound is a column for all pods
of a family that ask for at least so much CPU.
"""

from array import array
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free
from fastsim_ext.grouped cimport View, grouped_offers
from fastsim_ext.memo cimport UNKNOWN, Memo, memo_keep, memo_spread
from fastsim_ext.needs cimport (
    ROOM, SMALL_UNFIT, SMALL_WORST, TERMS, UNFIT, WORST, Needs, needs_drop, needs_judge, needs_known, needs_plan,
    needs_set,
)
from fastsim_ext.nodes cimport NodeTable
from fastsim_ext.points cimport points_bound, points_bounded, points_viewed
from fastsim_ext.power cimport power_savings
from fastsim_ext.tally cimport KINDS, Tally, tally_add, tally_clear, tally_remove
from fastsim_ext.tree cimport (
    ROW, Grove, Tree, tree_clear, tree_expect, tree_fell, tree_leaf, tree_of, tree_place, tree_plant, tree_put,
    tree_put_row, tree_sound, tree_sum_up, tree_write,
)
from fastsim_ext.types cimport FGD, GPU_PACKING, MIN_MAX_100, NORM_NONE, PWR, Node, Pod
from fastsim_ext.work cimport NO_NODE

ONE = array("q", [1])

cdef enum:
    FAMILIES = 128               # most families


cdef inline int64_t stretch(int64_t raw, int64_t low, int64_t high, int normalise) noexcept nogil:
    """Points stretched to 0..100 between the extremes over the feasible nodes."""
    if low == high:
        return 100 if normalise == MIN_MAX_100 else 0
    return (raw - low) * 100 // (high - low)


cdef class ColumnTable:
    """The columns of one plan over one table of nodes; ``plan`` as in a Selector."""

    def __init__(self, NodeTable nodes, plan, Memo memo, kind, state_of):
        cdef int term
        self.nodes, self.memo, self.kind, self.state_of = nodes, memo, kind, state_of
        self.kernel, self.normalise, self.weight = plan["kernel"], plan["normalise"], plan["weight"]
        self.dim, self.norm, self.figure = plan["dim"], plan["norm"], plan["figure"]
        self.n_terms = self.kernel.shape[0]
        if self.n_terms > TERMS:
            raise ValueError(f"found a plan of {self.n_terms} terms, expected at most {TERMS}")
        self.columns = <Column*> calloc(ROOM, sizeof(Column))
        self.trees = <Tree*> calloc(ROOM, sizeof(Tree))
        self.groves = <Grove*> calloc(ROOM, sizeof(Grove))
        self.points = <Grove*> calloc(ROOM * TERMS, sizeof(Grove))
        self.families = <Family*> calloc(FAMILIES, sizeof(Family))
        self.place = <int32_t*> calloc(ROOM * TERMS, sizeof(int32_t))
        self.verdict = <int32_t*> calloc(ROOM, sizeof(int32_t))
        self.total = <int32_t*> calloc(ROOM, sizeof(int32_t))
        self.fresh = <int32_t*> calloc(ROOM, sizeof(int32_t))
        self.raw = <int32_t*> calloc(ROOM * TERMS, sizeof(int32_t))
        self.needs = <Needs*> calloc(1, sizeof(Needs))
        if (self.columns == NULL or self.trees == NULL or self.groves == NULL or self.points == NULL
                or self.families == NULL or self.place == NULL or self.verdict == NULL or self.fresh == NULL
                or self.raw == NULL or self.total == NULL or self.needs == NULL):
            raise MemoryError()
        needs_plan(self.needs, max(nodes.model, default=-1) + 1)
        self.bounded, self.dear = True, -1
        for term in range(self.n_terms):
            # One term alone has its largest total where its points are largest, however they are stretched;
            # its smallest points may become equal.
            alone = self.n_terms == 1 and self.weight[term] >= 0
            self.stretched = self.stretched or (not alone and self.normalise[term] != NORM_NONE)
            self.bounded = self.bounded and points_bounded(self.kernel[term]) and self.weight[term] >= 0
            if self.kernel[term] == FGD and self.normalise[term] == NORM_NONE and self.weight[term] >= 0:
                self.dear = term
        self.bounded = self.bounded and not self.stretched
        # Of one term alone the order of totals is that of its points, whatever its weight.
        self.narrow = self.n_terms == 1 and self.weight[0] > 0 and self.kernel[0] in (FGD, GPU_PACKING)
        self.unfit, self.worst = (SMALL_UNFIT, SMALL_WORST) if self.narrow else (UNFIT, WORST)
        if self.narrow:
            self.weight = ONE
        rows = 1 + self.n_terms if self.stretched else 1
        habits = plan["habits"]
        room = habits["columns_bytes"] // ((2 if self.narrow else 6) * rows * max(nodes.count, 1))
        self.limit = max(habits["least_columns"], min(ROOM, room))
        nodes.watched = True

    def __dealloc__(self):
        cdef int c
        if self.columns != NULL:
            for c in range(ROOM):
                free(self.columns[c].tallies)
                tree_fell(&self.groves[c])
            for c in range(ROOM * TERMS):
                tree_fell(&self.points[c])
        if self.needs != NULL:
            free(self.needs.closed)
        free(self.columns)
        free(self.trees)
        free(self.groves)
        free(self.points)
        free(self.families)
        free(self.place)
        free(self.verdict)
        free(self.total)
        free(self.fresh)
        free(self.raw)
        free(self.needs)

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
        cdef int32_t found = self.state_of[n]
        if found >= 0 and self.generation == self.memo.generation:
            return found
        found = self.memo.state(self.kind[n], &self.nodes.records[n])
        if self.generation != self.memo.generation:    # numbers given before it forgot mean nothing now
            self.generation = self.memo.generation
            self.state_of[:] = -1
        self.state_of[n] = found
        return found

    cdef void expect(self, int n) noexcept nogil:
        """Node ``n`` will change soon: of large clusters, its leaves are not in the cache."""
        cdef int g
        for g in range((self.n_columns + ROW - 1) // ROW):
            tree_expect(&self.groves[g], n)

    cdef int changed(self, int n) except -1 nogil:
        """Node ``n`` is not as it was: correct every column."""
        self.state_of[n] = -1
        if self.n_used > 0:
            self.revalue(n, 0, self.n_columns)
        return 0

    cdef int revalue(self, int n, int first, int last) except -1 nogil:
        """Value node ``n`` anew for the columns from ``first`` to before ``last``."""
        cdef const Node* node = &self.nodes.records[n]
        cdef View view
        cdef int c, term
        if self.nodes.present[n]:
            needs_judge(self.needs, first, last, node, self.nodes.pods[n] >= self.nodes.max_pods[n], self.unfit,
                        self.verdict)
            view.groups, view.node = NULL, node
            for term in range(self.n_terms):
                self.value(term, n, first, last, &view)
        else:
            for c in range(first, last):
                self.verdict[c] = self.unfit + NO_NODE
        if self.stretched:
            self.add_up_stretched(n, first, last)
        elif self.nodes.present[n]:
            self.add_up(first, last)
        self.enter(n, first, last)
        return 0

    cdef int survey(self, int n, int c) except -1 nogil:
        """Value node ``n`` for a new column, without its tree."""
        cdef const Node* node = &self.nodes.records[n]
        cdef View view
        cdef int term
        if not self.nodes.present[n]:
            self.verdict[c] = self.unfit + NO_NODE
        else:
            needs_judge(self.needs, c, c + 1, node, self.nodes.pods[n] >= self.nodes.max_pods[n], self.unfit,
                        self.verdict)
        if self.verdict[c] == 0:
            view.groups, view.node = NULL, node
            for term in range(self.n_terms):
                self.value(term, n, c, c + 1, &view)
        if self.stretched:
            self.add_up_stretched(n, c, c + 1)
        elif self.verdict[c] == 0:
            self.add_up(c, c + 1)
        tree_write(&self.trees[c], n, self.verdict[c])
        return 0

    cdef int value(self, int term, int n, int first, int last, View* view) except -1 nogil:
        """Raw points of one term on node ``n``, for the columns that it fits."""
        cdef int32_t* raw = self.raw + term * ROOM
        cdef char* row
        cdef int c
        view.n_offers = 0
        if self.kernel[term] == PWR:
            power_savings(view.node, self.needs.cpu, self.needs.most, self.needs.idle, first, last, self.verdict, raw)
            return 0
        if self.figure[term] < 0:
            for c in range(first, last):
                if self.verdict[c] == 0:
                    raw[c] = self.worked_out(term, c, n, view)
            return 0
        row = self.memo.row(self.state(n))
        if not memo_spread(row, self.memo.coarse, NULL if self.straight else self.place + term * ROOM, self.verdict,
                           first, last, raw):
            return 0
        if last - first > 1:
            self.fill(term, n, row, view)
        else:
            raw[first] = self.worked_out(term, first, n, view)
            memo_keep(row, self.place[term * ROOM + first], self.memo.coarse, raw[first])
        return 0

    cdef void fill(self, int term, int n, char* row, View* view) noexcept nogil:
        """Work out what the memo does not know, family by family, because they share offers."""
        cdef int32_t* raw = self.raw + term * ROOM
        cdef int f
        cdef int32_t c
        for f in range(self.n_families):
            view.n_offers = 0
            c = self.families[f].first
            while c >= 0:
                if raw[c] == UNKNOWN and self.verdict[c] == 0:
                    raw[c] = self.worked_out(term, c, n, view)
                    memo_keep(row, self.place[term * ROOM + c], self.memo.coarse, raw[c])
                c = self.columns[c].after

    cdef int32_t worked_out(self, int term, int c, int n, View* view) noexcept nogil:
        """Raw points of one term; the groups' view and the offers are made when first needed."""
        cdef const Column* column = &self.columns[c]
        if self.stretched and column.most_cpu >= 0 and term != self.dear and self.kernel[term] != PWR:
            return 0                     # such a bound is asked for the dear term only
        if self.kernel[term] == FGD:
            if view.groups == NULL:
                self.nodes.look(view.node, n, view)
            if view.n_offers == 0:
                grouped_offers(view, column.pod.num_gpu, column.pod.milli)
        if column.most_cpu >= 0:
            return <int32_t> points_bound(self.kernel[term], &column.pod, column.most_cpu, view)
        return <int32_t> points_viewed(self.kernel[term], &column.pod, &self.nodes.target.typical, self.dim[term],
                                       self.norm[term], view)

    cdef void add_up(self, int first, int last) noexcept nogil:
        """Totals of the columns that fit."""
        cdef int term, c
        cdef int32_t weight, stage, fits
        cdef int32_t* verdict = self.verdict
        cdef int32_t* total = self.total
        cdef const int32_t* raw = self.raw
        weight = <int32_t> self.weight[0]
        for c in range(first, last):
            total[c] = weight * raw[c]
        for term in range(1, self.n_terms):
            weight, raw = <int32_t> self.weight[term], self.raw + term * ROOM
            for c in range(first, last):
                total[c] += weight * raw[c]
        for c in range(first, last):
            stage, fits = verdict[c], total[c]       # both are read, so that compilers need no branch
            verdict[c] = fits if stage == 0 else stage

    cdef void note(self, int term, int n, int first, int last) noexcept nogil:
        """Keep raw points of a term that may be stretched, and count them."""
        cdef const int32_t* raws = self.raw + term * ROOM
        cdef const Column* column
        cdef bint counted = self.normalise[term] != NORM_NONE
        cdef int64_t place = tree_place(n, ROW)
        cdef int32_t raw
        cdef int32_t* kept
        cdef int c
        for c in range(first, last):
            column = &self.columns[c]
            kept = &column.points[term][place]
            raw = raws[c] if self.verdict[c] == 0 else UNFIT
            if kept[0] == raw:
                continue
            self.fresh[c] = 1
            if counted:
                if kept[0] > WORST:
                    tally_remove(&column.tallies[term], kept[0])
                if raw > WORST:
                    tally_add(&column.tallies[term], raw)
            kept[0] = raw

    cdef void add_up_stretched(self, int n, int first, int last) noexcept nogil:
        """The same where totals depend on extremes: those the column was last stretched with."""
        cdef int64_t place = tree_place(n, ROW)
        cdef int term, c
        for term in range(self.n_terms):
            self.note(term, n, first, last)
        for c in range(first, last):
            if self.verdict[c] == 0:
                if self.columns[c].most_cpu >= 0:
                    self.verdict[c] = 0              # such a bound tells of the dear term only
                elif self.fresh[c]:
                    self.verdict[c] = <int32_t> self.stretched_total(&self.columns[c], place)
                else:
                    self.verdict[c] = tree_leaf(&self.trees[c], n)
            self.fresh[c] = 0

    cdef void enter(self, int n, int first, int last) noexcept nogil:
        """Put what node ``n`` is worth in its places."""
        cdef int grove
        if last - first == 1:
            tree_put(&self.trees[first], n, self.verdict[first])
            return
        for grove in range((last + ROW - 1) // ROW):
            first = grove * ROW
            tree_put_row(&self.groves[grove], n, self.verdict + first)

    cdef int64_t stretched_total(self, const Column* column, int64_t place) noexcept nogil:
        """The total of a node that fits, between the extremes the column was last stretched with."""
        cdef int term
        cdef int64_t raw
        cdef int64_t total = 0
        for term in range(self.n_terms):
            raw = column.points[term][place]
            if self.normalise[term] != NORM_NONE:
                # Points beyond the extremes are new, so all totals will be made again; until then any will do.
                raw = min(max(raw, column.least[term]), column.most[term])
                raw = stretch(raw, column.least[term], column.most[term], self.normalise[term])
            total += self.weight[term] * raw
        return total

    cdef void stretch_again(self, int32_t c) noexcept nogil:
        """Make the totals true for the extremes of now."""
        cdef Column* column = &self.columns[c]
        cdef Tree* tree = &self.trees[c]
        cdef const Tally* tally
        cdef int term, n
        cdef bint same = True
        cdef int32_t least, most
        cdef int64_t place
        for term in range(self.n_terms):
            if self.normalise[term] == NORM_NONE:
                continue
            tally = &column.tallies[term]
            if tally.kinds == 0:
                return
            if tally.kinds <= KINDS:
                least, most = tally.value[0], tally.value[tally.kinds - 1]
            else:
                least, most = -WORST, WORST
                for n in range(self.nodes.count):
                    place = tree_place(n, tree.step)
                    if column.points[term][place] > WORST:
                        least = min(least, column.points[term][place])
                        most = max(most, column.points[term][place])
                if most == WORST:
                    return
            same = same and column.most[term] == most and column.least[term] == least
            column.most[term], column.least[term] = most, least
        if same:
            return
        for n in range(self.nodes.count):
            if tree_leaf(tree, n) > WORST:
                tree_write(tree, n, <int32_t> self.stretched_total(column, tree_place(n, tree.step)))
        tree_sum_up(tree)

    cdef int32_t most_points(self, const Pod* pod) noexcept nogil:
        """A column whose raw points of the dear term a pod exceeds by at most one where they are above WORST, or -1.

        They are those of a class that asks for the same devices, less CPU and no other models: more CPU taken
        leaves more requests unsatisfied. The one point is what the order of summation can decide.
        """
        cdef int family = self.family_of(pod.num_gpu, pod.milli)
        cdef int32_t c = self.families[family].first if family >= 0 and self.stretched else -1
        cdef int32_t found = -1
        cdef const Pod* other
        while c >= 0:
            other = &self.columns[c].pod
            if (other.cpu <= pod.cpu and other.models in (0, pod.models) and (pod.num_gpu > 0 or other.cpu > 0)
                    and (found < 0 or other.cpu > self.columns[found].pod.cpu)):
                found = c
            c = self.columns[c].after
        return found

    cdef int32_t build(self, const Pod* pod, int64_t most_cpu, int32_t owner) except -2 nogil:
        """A column with the value of every node, or -1 if there is no room for one."""
        cdef int32_t c = 0
        cdef int n
        cdef Column* column
        cdef int family = self.family_of(pod.num_gpu, pod.milli)
        cdef int32_t lane = self.memo.lane(pod)
        if self.n_used >= self.limit or family < 0 or lane < 0 or not needs_known(pod):
            return -1
        if lane < min(self.limit, 2 * (self.n_used + ROW)) and not self.columns[lane].used:
            c = lane
        while self.columns[c].used:
            c += 1
        self.straight = (self.n_used == 0 or self.straight) and c == lane and self.memo.each == 1
        column = &self.columns[c]
        column.pod, column.most_cpu, column.owner, column.family = pod[0], most_cpu, owner, family
        column.lane, column.used = lane, True
        for n in range(self.n_terms):
            self.place[n * ROOM + c] = lane * self.memo.each + max(self.figure[n], 0)
        needs_set(self.needs, c, pod)
        plant(self, c)
        for n in range(self.nodes.count):
            self.survey(n, c)
        tree_sum_up(&self.trees[c])
        self.n_columns = max(self.n_columns, c + 1)
        self.n_used += 1
        column.after = self.families[family].first
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
        """Give up a column; its place goes to the next one."""
        cdef int32_t* link = &self.families[self.columns[c].family].first
        if not self.columns[c].used:
            return
        while link[0] != c:
            link = &self.columns[link[0]].after
        link[0] = self.columns[c].after
        self.columns[c].used = False
        needs_drop(self.needs, c)
        self.n_used -= 1

    cpdef int verify(self) except -1:
        """Every column says of every node what it would say if it were made now, from points worked out anew."""
        cdef int c, n, term
        cdef int32_t kept
        cdef View view
        for n in range(self.nodes.n_changed):
            self.changed(self.nodes.changed[n])
        for c in range(self.n_columns):
            if not self.columns[c].used:
                continue
            assert tree_sound(&self.trees[c]), f"column {c} promises too little"
            for n in range(self.nodes.count):
                self.state_of[n] = -1
                kept = tree_leaf(&self.trees[c], n)
                self.revalue(n, c, c + 1)
                assert kept == tree_leaf(&self.trees[c], n), f"column {c}, node {n}: kept {kept}"
                view.node, view.groups, view.n_offers = &self.nodes.records[n], NULL, 0
                for term in range(self.n_terms if kept > self.worst else 0):
                    raw = self.worked_out(term, c, n, &view)
                    assert self.raw[term * ROOM + c] == raw, f"column {c}, node {n}, term {term}: not {raw}"
        return 0


cdef int plant(ColumnTable table, int32_t c) except -1 nogil:
    """Memory of a column, without values."""
    cdef Column* column = &table.columns[c]
    cdef int grove, term
    cdef Tree points
    for grove in range(c // ROW + 1):    # changes go through all of them
        plant_grove(table, grove)
    tree_clear(&table.trees[c])
    if not table.stretched:
        return 0
    if column.tallies == NULL:
        column.tallies = <Tally*> calloc(table.n_terms, sizeof(Tally))
        if column.tallies == NULL:
            with gil:
                raise MemoryError()
    for term in range(table.n_terms):
        points = tree_of(&table.points[c // ROW * TERMS + term], c % ROW)
        tree_clear(&points)
        column.most[term] = column.least[term] = 0
        tally_clear(&column.tallies[term])
    return 0


cdef int plant_grove(ColumnTable table, int grove) except -1 nogil:
    """Memory of columns that lie side by side."""
    cdef int c, term
    if table.groves[grove].cells != NULL:
        return 0
    tree_plant(&table.groves[grove], table.nodes.count, ROW, 0, table.narrow)
    for c in range(ROW):
        table.trees[grove * ROW + c] = tree_of(&table.groves[grove], c)
    for term in range(table.n_terms if table.stretched else 0):
        tree_plant(&table.points[grove * TERMS + term], table.nodes.count, ROW, 1, False)
        for c in range(ROW):
            table.columns[grove * ROW + c].points[term] = <int32_t*> table.points[grove * TERMS + term].cells + c
    return 0
