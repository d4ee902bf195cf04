"""Columns of plans whose totals depend on extremes over the nodes.

Totals are those between the extremes a column was last asked with; where these have moved, all are made
again from the raw points, which are kept. Most changes of a node leave most of its points as they were,
so what changed is found in one pass over all columns and only that is looked at one by one.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc
from fastsim_ext.column cimport Column, ColumnTable
from fastsim_ext.needs cimport ROOM, TERMS, UNFIT, WORST
from fastsim_ext.tally cimport Tally, tally_add, tally_clear, tally_ends, tally_remove
from fastsim_ext.tree cimport ROW, Tree, tree_clear, tree_leaf, tree_of, tree_place, tree_plant, tree_sum_up, tree_write
from fastsim_ext.types cimport MIN_MAX_100, NORM_NONE, Pod


cdef inline int64_t stretch(int64_t raw, int64_t low, int64_t high, int normalise) noexcept nogil:
    """Points stretched to 0..100 between the extremes over the feasible nodes."""
    if low == high:
        return 100 if normalise == MIN_MAX_100 else 0
    return (raw - low) * 100 // (high - low)


cdef class StretchedTable(ColumnTable):
    """Also keeps raw points, and how often each occurs among the nodes that fit, so that both ends are known."""

    cdef void add_up(self, int n, int first, int last) noexcept nogil:
        """Totals of the columns that node ``n`` fits, between the extremes each was last stretched with."""
        cdef int end
        while first < last:
            end = min(last, (first // ROW + 1) * ROW)
            self.add_up_row(n, first, end)
            first = end

    cdef void add_up_row(self, int n, int first, int last) noexcept nogil:
        """The same for columns that lie side by side."""
        cdef int32_t[ROW] at
        cdef const int32_t* total = <const int32_t*> self.trees[first].level[0] + tree_place(n, ROW)
        cdef int32_t* verdict = self.verdict + first
        cdef int32_t* fresh = self.fresh + first
        cdef int64_t place = tree_place(n, ROW)
        cdef int count = 0
        cdef int32_t stage, kept
        cdef int term, i, j
        for term in range(self.n_terms):
            self.keep(term, n, first, last)
        for j in range(last - first):
            stage, kept = verdict[j], total[j]       # both are read, so that compilers need no branch
            at[count] = j
            count += stage == 0 and fresh[j] != 0
            verdict[j] = kept if stage == 0 else stage
            fresh[j] = 0
        for i in range(count):
            j = at[i]
            if self.columns[first + j].most_cpu >= 0:
                verdict[j] = 0                       # such a bound tells of the dear term only
            else:
                verdict[j] = <int32_t> self.stretched_total(&self.columns[first + j], place)

    cdef void keep(self, int term, int n, int first, int last) noexcept nogil:
        """Keep raw points of a term that may be stretched, and count them."""
        cdef int32_t[ROW] raw, at
        cdef const int32_t* raws = self.raw + term * ROOM + first
        cdef const int32_t* verdict = self.verdict + first
        cdef int32_t* fresh = self.fresh + first
        cdef int32_t* kept = self.columns[first].points[term] + tree_place(n, ROW)
        cdef int32_t points
        cdef int count = 0
        cdef int i, j
        for j in range(last - first):
            points = raws[j]
            points = points if verdict[j] == 0 else UNFIT
            raw[j] = points
            fresh[j] |= points ^ kept[j]
        if self.normalise[term] != NORM_NONE:
            for j in range(last - first):
                at[count] = j
                count += raw[j] != kept[j]
            for i in range(count):
                j = at[i]
                if kept[j] > WORST:
                    tally_remove(&self.columns[first + j].tallies[term], kept[j])
                if raw[j] > WORST:
                    tally_add(&self.columns[first + j].tallies[term], raw[j])
        for j in range(last - first):
            kept[j] = raw[j]

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

    cdef bint ends_moved(self, int32_t c) noexcept nogil:
        """Bring a column's extremes up to date; whether any is another than before and some node fits."""
        cdef Column* column = &self.columns[c]
        cdef const int32_t* points
        cdef Tally* tally
        cdef bint moved = False
        cdef int32_t least, most
        cdef int term, n
        for term in range(self.n_terms):
            if self.normalise[term] == NORM_NONE:
                continue
            tally = &column.tallies[term]
            if tally.beyond == 0:
                if not tally_ends(tally, &least, &most):
                    return False
            else:
                least, most = -WORST, WORST
                for n in range(self.nodes.count):
                    points = &column.points[term][tree_place(n, ROW)]
                    if points[0] > WORST:
                        least, most = min(least, points[0]), max(most, points[0])
            moved = moved or column.most[term] != most or column.least[term] != least
            column.most[term], column.least[term] = most, least
        return moved

    cdef void stretch_again(self, int32_t c) noexcept nogil:
        """Make the totals true for the extremes of now."""
        cdef Tree* tree = &self.trees[c]
        cdef int n
        if not self.ends_moved(c):
            return
        for n in range(self.nodes.count):
            if tree_leaf(tree, n) > WORST:
                tree_write(tree, n, <int32_t> self.stretched_total(&self.columns[c], tree_place(n, tree.step)))
        tree_sum_up(tree)

    cdef int32_t most_points(self, const Pod* pod) noexcept nogil:
        """A column whose raw points of the dear term a pod exceeds by at most one where they are above WORST, or -1.

        They are those of a class that asks for the same devices, less CPU and no other models: more CPU taken
        leaves more requests unsatisfied. The one point is what the order of summation can decide.
        """
        cdef int family = self.family_of(pod.num_gpu, pod.milli)
        cdef int32_t c = self.families[family].first if family >= 0 else -1
        cdef int32_t found = -1
        cdef const Pod* other
        while c >= 0:
            other = &self.columns[c].pod
            if (other.cpu <= pod.cpu and other.models in (0, pod.models) and (pod.num_gpu > 0 or other.cpu > 0)
                    and (found < 0 or other.cpu > self.columns[found].pod.cpu)):
                found = c
            c = self.columns[c].after
        return found

    cdef int plant(self, int32_t c) except -1 nogil:
        """Memory of a column and of its points, without values."""
        cdef Column* column = &self.columns[c]
        cdef Tree points
        cdef int grove, term, g
        ColumnTable.plant(self, c)
        for grove in range(c // ROW + 1):
            for term in range(self.n_terms):
                tree_plant(&self.points[grove * TERMS + term], self.nodes.count, ROW, 1, False)
                for g in range(ROW):
                    self.columns[grove * ROW + g].points[term] = (
                        <int32_t*> self.points[grove * TERMS + term].cells + g)
        if column.tallies == NULL:
            column.tallies = <Tally*> calloc(self.n_terms, sizeof(Tally))
            if column.tallies == NULL:
                with gil:
                    raise MemoryError()
        for term in range(self.n_terms):
            points = tree_of(&self.points[c // ROW * TERMS + term], c % ROW)
            tree_clear(&points)
            column.most[term] = column.least[term] = 0
            tally_clear(&column.tallies[term])
        return 0
