"""Columns of plans whose totals are normalised by extremes over the nodes.

Totals are stored beside the raw points, normalised with the extremes of an earlier time. After the extremes
move, only nodes whose stored total is near the best one are evaluated again. Most changes of a node leave
most of its points as they were, so one pass over all columns finds the changed ones, and only those are
processed one by one.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport calloc
from fastsim_ext.select.class_demands cimport ROOM, TERMS, UNFIT, WORST
from fastsim_ext.select.max_tree cimport (
    ROW, Tree, tree_clear, tree_first, tree_leaf, tree_next, tree_of, tree_offset, tree_alloc, tree_rebuild, tree_write,
)
from fastsim_ext.select.score_columns cimport Extremes, ScoreColumn, ScoreColumns
from fastsim_ext.select.value_counts cimport (
    ValueCounts, counts_add, counts_clear, counts_ends, counts_remove, lowest_bit, differing,
)
from fastsim_ext.types cimport MIN_MAX_100, NORM_NONE, Pod

cdef enum:
    MOST_CHECKED = 48    # nodes evaluated before all totals are normalised again


cdef int32_t[ROW] nothing        # zeros: the node fits


cdef inline int64_t normalised_points(int64_t raw, int64_t low, int64_t high, int normalise) noexcept nogil:
    """Points scaled to 0..100 between the extremes over the feasible nodes."""
    if low == high:
        return 100 if normalise == MIN_MAX_100 else 0
    # Points beyond the extremes are newer than these; any function of them will do.
    return (min(max(raw, low), high) - low) * 100 // (high - low)


cdef inline int64_t term_gain(const Extremes* before, const Extremes* now, int64_t weight,
                              int normalise) noexcept nogil:
    """Most that ``weight`` times normalised points rise when the extremes change from ``before`` to ``now``."""
    cdef int32_t[4] corner
    cdef int64_t point, gained
    cdef int64_t most = 0
    cdef int i
    corner[:] = [now.least, now.most, before.least, before.most]
    for i in range(4):
        point = min(max(corner[i], now.least), now.most)
        gained = weight * (normalised_points(point, now.least, now.most, normalise)
                           - normalised_points(point, before.least, before.most, normalise))
        most = max(most, gained) if i > 0 else gained
    return most + 2 * max(weight, -weight)    # truncation takes less than one point of each


cdef class NormalisedScoreColumns(ScoreColumns):
    """Also stores raw points, and counts each value among the nodes that fit, for the extremes."""

    cdef void add_up(self, int n, int first, int last) noexcept nogil:
        """Totals of node ``n`` in the columns it fits, with the extremes last used for each."""
        cdef int end
        while first < last:
            end = min(last, (first // ROW + 1) * ROW)
            self.add_up_row(n, first, end)
            first = end

    cdef void add_up_row(self, int n, int first, int last) noexcept nogil:
        """The same for adjacent columns, from the first one of their row, or for one column."""
        cdef const int32_t* total = <const int32_t*> self.trees[first].level[0] + tree_offset(n, ROW)
        cdef int32_t* verdict = self.verdict + first
        cdef const ScoreColumn* column
        cdef int64_t offset = tree_offset(n, ROW)
        cdef uint32_t fresh = 0
        cdef int32_t stage, stored
        cdef int term, j
        for term in range(self.n_terms):
            fresh |= self.keep(term, n, first, last)
        if last - first == 1:
            fresh &= verdict[0] == 0
        else:
            fresh &= ~differing(verdict, &nothing[0])
        for j in range(last - first):
            stage, stored = verdict[j], total[j]       # reading both avoids a branch
            verdict[j] = stored if stage == 0 else stage
        while fresh:
            j = lowest_bit(fresh)
            fresh &= fresh - 1
            if self.columns[first + j].most_cpu >= 0:
                verdict[j] = 0                       # such a bound is of ``frag_term`` only
            else:
                column = &self.columns[first + j]
                verdict[j] = <int32_t> self.normalised_total(column, &column.extremes[0], offset)

    cdef uint32_t keep(self, int term, int n, int first, int last) noexcept nogil:
        """Store raw points of a term, and count them if it is normalised; the changed columns, as bits."""
        cdef int32_t[ROW] raw
        cdef const int32_t* raws = self.raw + term * ROOM + first
        cdef const int32_t* verdict = self.verdict + first
        cdef int32_t* stored = self.columns[first].points[term] + tree_offset(n, ROW)
        cdef int32_t points
        cdef uint32_t changed, left
        cdef int j
        if last - first == 1:
            raw[0] = raws[0] if verdict[0] == 0 else UNFIT
            changed = raw[0] != stored[0]
        else:
            for j in range(ROW):
                points = raws[j]
                raw[j] = points if verdict[j] == 0 else UNFIT
            changed = differing(&raw[0], stored) & (<uint32_t> 0xFFFFFFFF >> (ROW - (last - first)))
        left = changed & (self.counted[first // ROW] >> (first % ROW)) if self.normalise[term] != NORM_NONE else 0
        while left:
            j = lowest_bit(left)
            left &= left - 1
            if stored[j] > WORST:
                counts_remove(&self.columns[first + j].counts[term], stored[j])
            if raw[j] > WORST:
                counts_add(&self.columns[first + j].counts[term], raw[j])
        for j in range(last - first):    # entries beyond belong to columns not built yet
            stored[j] = raw[j]
        return changed

    cdef int64_t normalised_total(self, const ScoreColumn* column, const Extremes* extremes,
                                  int64_t offset) noexcept nogil:
        """The total of a node that fits, normalised with these extremes."""
        cdef int term
        cdef int64_t raw
        cdef int64_t total = 0
        for term in range(self.n_terms):
            raw = column.points[term][offset]
            if self.normalise[term] != NORM_NONE:
                raw = normalised_points(raw, extremes[term].least, extremes[term].most, self.normalise[term])
            total += self.weight[term] * raw
        return total

    cdef bint find_extremes(self, const ScoreColumn* column, Extremes* extremes) noexcept nogil:
        """The present extremes; False if no node fits."""
        cdef const int32_t* points
        cdef ValueCounts* counts
        cdef int term, n
        for term in range(self.n_terms):
            if self.normalise[term] == NORM_NONE:
                continue
            counts = &column.counts[term]
            if counts.beyond == 0:
                if not counts_ends(counts, &extremes[term].least, &extremes[term].most):
                    return False
                continue
            extremes[term].least, extremes[term].most = -WORST, WORST
            for n in range(self.nodes.count):
                points = &column.points[term][tree_offset(n, ROW)]
                if points[0] > WORST:
                    extremes[term].least = min(extremes[term].least, points[0])
                    extremes[term].most = max(extremes[term].most, points[0])
        return True

    cdef int64_t largest_gain(self, const ScoreColumn* column, const Extremes* extremes) noexcept nogil:
        """Upper bound of the rise of a total when normalised with these extremes; -1 if they are unchanged.

        The rise of a term is piecewise linear between the old and the new extremes, except for truncation.
        """
        cdef int64_t gained = 0
        cdef bint same = True
        cdef int term
        for term in range(self.n_terms):
            if self.normalise[term] != NORM_NONE and (
                    extremes[term].least != column.extremes[term].least
                    or extremes[term].most != column.extremes[term].most):
                same = False
                gained += term_gain(&column.extremes[term], &extremes[term], self.weight[term], self.normalise[term])
        return -1 if same else gained

    cdef int32_t first(self, int32_t c, int32_t* top) noexcept nogil:
        """The first node with the largest total of a column, normalised with the present extremes.

        Extremes move often and little. So only nodes are evaluated whose stored total is as near to the best as
        totals can have risen since; if there are many, all totals are normalised again.
        """
        cdef Extremes[TERMS] extremes
        cdef const ScoreColumn* column = &self.columns[c]
        cdef Tree* tree = &self.trees[c]
        cdef int32_t start = tree_first(tree, top)
        cdef int32_t best_at = start
        cdef int32_t at = 0
        cdef int unchecked = MOST_CHECKED
        cdef int64_t best, total, gained
        if top[0] <= WORST or not self.find_extremes(column, &extremes[0]):
            return start
        gained = self.largest_gain(column, &extremes[0])
        if gained < 0:
            return start
        best = self.normalised_total(column, &extremes[0], tree_offset(start, ROW))
        while at < self.nodes.count:
            # After the best node so far an equal total loses the tie.
            at = tree_next(tree, 0, at, <int32_t> max(best - gained + (at > best_at), WORST + 1))
            if at < 0:
                break
            unchecked -= 1
            if unchecked == 0:
                self.renormalise(c, &extremes[0])
                return tree_first(tree, top)
            total = self.normalised_total(column, &extremes[0], tree_offset(at, ROW))
            if total > best or (total == best and at < best_at):
                best, best_at = total, at
            at += 1
        top[0] = <int32_t> best
        return best_at

    cdef void renormalise(self, int32_t c, const Extremes* extremes) noexcept nogil:
        """Normalise the stored totals with these extremes."""
        cdef ScoreColumn* column = &self.columns[c]
        cdef Tree* tree = &self.trees[c]
        cdef int term, n
        for term in range(self.n_terms):
            column.extremes[term] = extremes[term]
        for n in range(self.nodes.count):
            if tree_leaf(tree, n) > WORST:
                tree_write(tree, n, <int32_t> self.normalised_total(column, extremes, tree_offset(n, ROW)))
        tree_rebuild(tree)

    cdef int32_t bound_column(self, const Pod* pod) noexcept nogil:
        """A column whose raw points of ``frag_term`` a pod exceeds by at most one where they are above WORST, or -1.

        It belongs to a class with the same devices, less CPU and no other models: more CPU taken leaves more
        requests unsatisfied. The order of summation can make a difference of one point.
        """
        cdef int family = self.family_of(pod.num_gpu, pod.milli)
        cdef int32_t c = self.families[family].first if family >= 0 else -1
        cdef int32_t best = -1
        cdef const Pod* other
        while c >= 0:
            other = &self.columns[c].pod
            if (other.cpu <= pod.cpu and other.models in (0, pod.models) and (pod.num_gpu > 0 or other.cpu > 0)
                    and (best < 0 or other.cpu > self.columns[best].pod.cpu)):
                best = c
            c = self.columns[c].next_in_family
        return best

    cdef int allocate(self, int32_t c) except -1 nogil:
        """Allocate the memory of a column and of its points."""
        cdef ScoreColumn* column = &self.columns[c]
        cdef Tree points
        cdef int forest, term, g
        ScoreColumns.allocate(self, c)
        for forest in range(c // ROW + 1):
            for term in range(self.n_terms):
                tree_alloc(&self.points[forest * TERMS + term], self.nodes.count, ROW, 1, False)
                for g in range(ROW):
                    self.columns[forest * ROW + g].points[term] = (
                        <int32_t*> self.points[forest * TERMS + term].cells + g)
        if column.counts == NULL:
            column.counts = <ValueCounts*> calloc(self.n_terms, sizeof(ValueCounts))
            if column.counts == NULL:
                with gil:
                    raise MemoryError()
        # The extremes of a bound are not used.
        self.counted[c // ROW] &= ~(<uint32_t> 1 << (c % ROW))
        self.counted[c // ROW] |= <uint32_t> (column.most_cpu < 0) << (c % ROW)
        for term in range(self.n_terms):
            points = tree_of(&self.points[c // ROW * TERMS + term], c % ROW)
            tree_clear(&points)
            column.extremes[term].least = column.extremes[term].most = 0
            counts_clear(&column.counts[term])
        return 0
