"""What every node is worth to one pod class, kept for many classes and corrected node by node.

A placement changes one node, so a column once made only needs the nodes that changed. A column is a
tree of maxima over the nodes, of the class's total or of how far the node got in the filter. Columns
that ask for the same devices form a family and share what follows from the devices alone. A bound is
a column for all pods of a family that ask for at least so much CPU.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from fastsim_ext.device cimport device_fit_count
from fastsim_ext.grouped cimport View, grouped_offers
from fastsim_ext.memo cimport UNKNOWN, Memo
from fastsim_ext.nodes cimport NodeTable
from fastsim_ext.points cimport points_bound, points_bounded, points_viewed
from fastsim_ext.tree cimport tree_fell, tree_plant, tree_put, tree_sum_up, tree_top
from fastsim_ext.types cimport FGD, FULL, MIN_MAX_100, NORM_NONE, Node, Pod
from fastsim_ext.work cimport NO_CPU, NO_GPU, NO_GPU_MODEL, NO_MEMORY, NO_NODE, NO_POD_SLOT

cdef enum:
    WIDE = 16                    # columns side by side in one cache line of a node
    ROOM = 256                   # most columns
    WORDS = 2                    # of 64 families each
    FAMILIES = 128               # most families; 64 * WORDS


cdef inline int64_t stretch(int64_t raw, int64_t low, int64_t high, int normalise) noexcept nogil:
    """Points stretched to 0..100 between the extremes over the feasible nodes."""
    if low == high:
        return 100 if normalise == MIN_MAX_100 else 0
    return (raw - low) * 100 // (high - low)


cdef inline void note(Detail* detail, int term, int n, int normalise, int64_t raw, int64_t opposite) noexcept nogil:
    """Keep the raw points of one term, with both extremes if they are stretched."""
    if normalise == NORM_NONE:
        detail.high[term].cells[n] = <int32_t> raw
        return
    if detail.high[term].cells[n] != raw:
        tree_put(&detail.high[term], n, detail.high[term].cells[n], <int32_t> raw)
    if detail.low[term].cells[n] != opposite:
        tree_put(&detail.low[term], n, detail.low[term].cells[n], <int32_t> opposite)


cdef inline int64_t stretched_total(const Detail* detail, int n, int n_terms, const int32_t* normalise,
                                    const int64_t* weight) noexcept nogil:
    """The total of a node that fits, between the extremes the column was last stretched with."""
    cdef int term
    cdef int64_t raw
    cdef int64_t total = 0
    for term in range(n_terms):
        raw = detail.high[term].cells[n]
        if normalise[term] != NORM_NONE:
            # Points beyond the extremes are new, so all totals will be made again; until then any will do.
            raw = min(max(raw, detail.least[term]), detail.most[term])
            raw = stretch(raw, detail.least[term], detail.most[term], normalise[term])
        total += weight[term] * raw
    return total


cdef inline int misfit(const Node* node, const Pod* pod, bint fits, int pods, int max_pods) noexcept nogil:
    """The first check a node fails for a pod, as a Reason, or 0; ``fits`` says whether its devices do."""
    if pod.num_gpu > 0:
        if pod.models != 0 and (node.model < 0 or not (pod.models >> node.model) & 1):
            return NO_GPU_MODEL
        if not fits:
            return NO_GPU
    if node.cpu_left < pod.cpu:
        return NO_CPU
    if node.mem_left < pod.mem:
        return NO_MEMORY
    return NO_POD_SLOT if pods >= max_pods else 0


cdef class ColumnTable:
    """The columns of one run; ``memo`` keeps points by node state, ``kind`` numbers equal nodes."""

    def __cinit__(self, NodeTable nodes, *args):
        self.columns = <Column*> calloc(ROOM, sizeof(Column))
        self.details = <Detail*> calloc(ROOM, sizeof(Detail))
        self.families = <Family*> calloc(FAMILIES, sizeof(Family))
        self.worth = <int32_t**> calloc(ROOM // WIDE, sizeof(int32_t*))
        self.fitted = <uint64_t*> calloc(max(nodes.count, 1) * WORDS, sizeof(uint64_t))
        self.gone = <uint8_t*> calloc(max(nodes.count, 1), sizeof(uint8_t))
        if (self.columns == NULL or self.details == NULL or self.families == NULL or self.worth == NULL
                or self.fitted == NULL or self.gone == NULL):
            raise MemoryError()

    def __init__(self, NodeTable nodes, plan, Memo memo, kind, state):
        cdef int term
        self.nodes, self.memo, self.kind, self.state_of = nodes, memo, kind, state
        self.kernel, self.normalise, self.weight = plan["kernel"], plan["normalise"], plan["weight"]
        self.dim, self.norm = plan["dim"], plan["norm"]
        self.n_terms = self.kernel.shape[0]
        if self.n_terms > TERMS:
            raise ValueError(f"found a plan of {self.n_terms} terms, expected at most {TERMS}")
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
        trees = 1 + 2 * self.n_terms if self.stretched else 1
        habits = plan["habits"]
        room = habits["columns_bytes"] // (5 * (1 + trees) * max(nodes.count, 1))
        self.limit = max(habits["least_columns"], min(ROOM, room))
        nodes.watched = True

    def __dealloc__(self):
        cdef int c
        for c in range(self.n_columns):
            self.drop(c)
        for c in range(ROOM // WIDE):
            free(self.worth[c])
        free(self.worth)
        free(self.fitted)
        free(self.gone)
        free(self.columns)
        free(self.details)
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
        cdef const Family* family
        cdef const Column* column
        cdef int f, g
        cdef int32_t c
        cdef int32_t* figures
        cdef int64_t total
        cdef int idle = 0
        cdef int32_t most = 0
        cdef bint fits, fitted
        cdef bint full = self.nodes.pods[n] >= self.nodes.max_pods[n]
        self.state_of[n] = -1
        if self.n_used == 0:
            return 0
        if not self.nodes.present[n]:
            self.gone[n] = 1
            for f in range(WORDS):
                self.fitted[n * WORDS + f] = 0
            for c in range(self.n_columns):
                if self.columns[c].cells != NULL:
                    self.enter(c, n, UNFIT + NO_NODE)
            return 0
        node = self.nodes.at(n)
        figures = self.memo.figures(self.state(n), 0)
        for g in range(node.num_gpu):
            idle += node.gpu_left[g] == FULL
            most = max(most, node.gpu_left[g])
        view.groups = NULL
        view.node = &node
        for f in range(self.n_families):
            family = &self.families[f]
            fits = family.num == 0 or (most >= family.milli if family.num == 1 else
                                       idle >= family.num)
            fitted = (self.fitted[n * WORDS + f // 64] >> (f % 64)) & 1
            if not fits and not fitted and not self.gone[n]:    # nor did they before: every column stays as it is
                continue
            self.fitted[n * WORDS + f // 64] ^= <uint64_t> (fits != fitted) << (f % 64)
            view.n_offers = 0
            c = family.first
            while c >= 0:
                column = &self.columns[c]
                if family.num > 0 and column.models != 0 and (
                        node.model < 0 or not (column.models >> node.model) & 1):
                    total = UNFIT + NO_GPU_MODEL
                elif not fits:
                    total = UNFIT + NO_GPU
                elif node.cpu_left < column.cpu:
                    total = UNFIT + NO_CPU
                elif node.mem_left < column.mem:
                    total = UNFIT + NO_MEMORY
                elif full:
                    total = UNFIT + NO_POD_SLOT
                else:
                    total = self.total(c, n, figures, &view)
                if column.worth[<int64_t> n * WIDE] != total:
                    self.enter(c, n, total)
                c = column.after
        self.gone[n] = 0
        return 0

    cdef void enter(self, int32_t c, int n, int64_t total) noexcept nogil:
        """Put what node ``n`` is worth in its places."""
        cdef Detail* detail = &self.details[c]
        cdef int term
        cdef int32_t* worth = &self.columns[c].worth[<int64_t> n * WIDE]
        tree_put(&detail.total, n, worth[0], <int32_t> total)
        worth[0] = <int32_t> total
        if self.stretched and total <= WORST:
            for term in range(self.n_terms):
                if detail.most_cpu < 0 or term == self.dear:
                    note(detail, term, n, self.normalise[term], total, UNFIT)

    cdef int64_t total(self, int32_t c, int n, int32_t* figures, View* view) noexcept nogil:
        """What a node that fits is worth to a column; ``figures`` are the first of its state."""
        cdef Detail* detail = &self.details[c]
        cdef int32_t* figure = figures + self.columns[c].lane * self.memo.each
        cdef int term
        cdef int64_t sum = 0
        for term in range(self.n_terms):
            if self.stretched and detail.most_cpu >= 0 and term != self.dear:
                continue
            if figure[term] == UNKNOWN:
                figure[term] = <int32_t> self.points(term, detail, n, view)
            if self.stretched:
                note(detail, term, n, self.normalise[term], figure[term], -figure[term])
            else:
                sum += self.weight[term] * figure[term]
        if self.stretched and detail.most_cpu < 0:
            return stretched_total(detail, n, self.n_terms, &self.normalise[0], &self.weight[0])
        return sum

    cdef int64_t points(self, int term, const Detail* detail, int n, View* view) noexcept nogil:
        """Raw points of one term, worked out; the groups' view and the offers are made when first needed."""
        if self.kernel[term] == FGD:
            if view.groups == NULL:
                self.nodes.look(view.node, n, view)
            if view.n_offers == 0:
                grouped_offers(view, detail.pod.num_gpu, detail.pod.milli)
        if detail.most_cpu >= 0:
            return points_bound(self.kernel[term], &detail.pod, detail.most_cpu, view)
        return points_viewed(self.kernel[term], &detail.pod, &self.nodes.target.typical, self.dim[term],
                             self.norm[term], view)

    cdef void stretch_again(self, int32_t c) noexcept nogil:
        """Make the totals true for the extremes of now."""
        cdef Detail* detail = &self.details[c]
        cdef int32_t* cells = self.columns[c].cells
        cdef int term, n
        cdef bint same = True
        cdef int64_t most, least, total
        for term in range(self.n_terms):
            if self.normalise[term] == NORM_NONE:
                continue
            most, least = tree_top(&detail.high[term]), -tree_top(&detail.low[term])
            if most <= WORST:
                return
            same = same and detail.most[term] == most and detail.least[term] == least
            detail.most[term], detail.least[term] = most, least
        if same:
            return
        for n in range(self.nodes.count):
            if cells[n] > WORST:
                total = stretched_total(detail, n, self.n_terms, &self.normalise[0], &self.weight[0])
                cells[n] = self.columns[c].worth[<int64_t> n * WIDE] = <int32_t> total
        tree_sum_up(&detail.total)

    cdef int32_t* most_points(self, int term, const Pod* pod) noexcept nogil:
        """By node, raw FGD points that a pod exceeds by at most one where they are above WORST; NULL if unknown.

        They are those of a class that asks for the same devices, less CPU and no other models: more CPU taken
        leaves more requests unsatisfied. The one point is what the order of summation can decide.
        """
        cdef int family = self.family_of(pod.num_gpu, pod.milli)
        cdef int32_t c = self.families[family].first if family >= 0 and self.stretched else -1
        cdef int32_t found = -1
        while c >= 0:
            if (self.columns[c].cpu <= pod.cpu and self.columns[c].models in (0, pod.models)
                    and (pod.num_gpu > 0 or self.columns[c].cpu > 0)
                    and (found < 0 or self.columns[c].cpu > self.columns[found].cpu)):
                found = c
            c = self.columns[c].after
        return self.details[found].high[term].cells if found >= 0 else NULL

    cdef int32_t build(self, const Pod* pod, int64_t most_cpu, int32_t owner) except -2 nogil:
        """A column with the value of every node, or -1 if there is no room for one."""
        cdef int32_t c = 0
        cdef int n
        cdef int family = self.family_of(pod.num_gpu, pod.milli)
        cdef int32_t lane = self.memo.lane(pod)
        if self.n_used >= self.limit or family < 0 or lane < 0 or (pod.num_gpu > 1 and pod.milli != FULL):
            return -1
        while c < self.n_columns and self.columns[c].cells != NULL:
            c += 1
        self.details[c].pod, self.details[c].most_cpu, self.details[c].owner = pod[0], most_cpu, owner
        self.details[c].family = family
        self.columns[c].cpu, self.columns[c].mem, self.columns[c].models = pod.cpu, pod.mem, pod.models
        self.columns[c].lane = lane
        self.plant(c)
        self.n_columns = max(self.n_columns, c + 1)
        self.n_used += 1
        for n in range(self.nodes.count):
            self.value(c, n)
        self.columns[c].after = self.families[family].first
        self.families[family].first = c
        return c

    cdef int plant(self, int32_t c) except -1 nogil:
        """Memory of a column."""
        cdef Detail* detail = &self.details[c]
        cdef int term, n
        cdef int32_t* rows = self.worth[c // WIDE]
        if rows == NULL:
            rows = <int32_t*> malloc(<int64_t> max(self.nodes.count, 1) * WIDE * sizeof(int32_t))
            if rows == NULL:
                with gil:
                    raise MemoryError()
            self.worth[c // WIDE] = rows
        tree_plant(&detail.total, self.nodes.count)
        for term in range(self.n_terms if self.stretched else 0):
            tree_plant(&detail.high[term], self.nodes.count)
            tree_plant(&detail.low[term], self.nodes.count)
            detail.most[term] = detail.least[term] = 0
        self.columns[c].worth = rows + c % WIDE
        self.columns[c].cells = detail.total.cells
        for n in range(self.nodes.count):
            self.columns[c].worth[<int64_t> n * WIDE] = UNKNOWN
        return 0

    cdef int value(self, int32_t c, int n) except -1 nogil:
        """Value one node for a new column."""
        cdef const Pod* pod = &self.details[c].pod
        cdef int f = self.details[c].family
        cdef Node node = self.nodes.at(n)
        cdef View view
        cdef bint fits = pod.num_gpu == 0 or device_fit_count(&node, pod.milli) >= pod.num_gpu
        cdef int stage = misfit(&node, pod, fits, self.nodes.pods[n], self.nodes.max_pods[n])
        if not self.nodes.present[n]:
            stage, fits, self.gone[n] = NO_NODE, False, 1
        view.groups = NULL
        view.node = &node
        view.n_offers = 0
        self.fitted[n * WORDS + f // 64] &= ~((<uint64_t> 1) << (f % 64))
        self.fitted[n * WORDS + f // 64] |= <uint64_t> fits << (f % 64)
        if stage != 0:
            self.enter(c, n, UNFIT + stage)
        else:
            self.enter(c, n, self.total(c, n, self.memo.figures(self.state(n), 0), &view))
        return 0

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
        """Give up a column and its memory."""
        cdef Detail* detail = &self.details[c]
        cdef int32_t* link = &self.families[detail.family].first
        cdef int term
        if self.columns[c].cells == NULL:
            return
        while link[0] != c:
            link = &self.columns[link[0]].after
        link[0] = self.columns[c].after
        self.columns[c].cells = NULL
        tree_fell(&detail.total)
        for term in range(self.n_terms if self.stretched else 0):
            tree_fell(&detail.high[term])
            tree_fell(&detail.low[term])
        self.n_used -= 1

    cpdef int verify(self) except -1:
        """Every column says of every node what it would say if it were made now, from points worked out anew."""
        cdef int c, n, term
        cdef int32_t kept
        cdef int32_t* figure
        cdef Node node
        cdef View view
        for n in range(self.nodes.n_changed):
            self.revalue(self.nodes.changed[n])
        for c in range(self.n_columns):
            if self.columns[c].cells == NULL:
                continue
            for n in range(self.nodes.count):
                self.state_of[n] = -1
                kept = self.columns[c].cells[n]
                assert kept == self.columns[c].worth[n * WIDE], f"column {c}, node {n}: two values"
                self.value(c, n)
                assert kept == self.columns[c].cells[n], f"column {c}, node {n}: kept {kept}"
                if kept <= WORST:
                    continue
                node = self.nodes.at(n)
                view.node, view.groups, view.n_offers = &node, NULL, 0
                figure = self.memo.figures(self.state(n), self.columns[c].lane)
                for term in range(self.n_terms):
                    if figure[term] != UNKNOWN:
                        raw = self.points(term, &self.details[c], n, &view)
                        assert figure[term] == raw, f"column {c}, node {n}, term {term}: {figure[term]}, not {raw}"
        return 0
