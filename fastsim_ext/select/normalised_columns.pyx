"""Columns of plans whose totals depend on extremes over the nodes.

Totals are kept between extremes of some earlier moment, beside the raw points. Where the extremes have
moved, only the few nodes are looked at whose kept total is near enough to the best one. Most changes of a
node leave most of its points as they were, so what changed is found in one pass over all columns and only
that is looked at one by one.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport calloc
from fastsim_ext.select.class_demands cimport ROOM, TERMS, UNFIT, WORST
from fastsim_ext.select.max_tree cimport (
    ROW, Tree, tree_clear, tree_first, tree_leaf, tree_next, tree_of, tree_place, tree_alloc, tree_rebuild, tree_write,
)
from fastsim_ext.select.score_columns cimport Ends, ScoreColumn, ScoreColumns
from fastsim_ext.select.value_counts cimport (
    ValueCounts, tally_add, tally_clear, tally_ends, tally_remove, unlike_first, unlike_row,
)
from fastsim_ext.types cimport MIN_MAX_100, NORM_NONE, Pod

cdef enum:
    MOST_LOOKS = 48      # nodes looked at before totals are kept anew


cdef int32_t[ROW] nothing        # zeros, what a verdict is where a node fits


cdef inline int64_t stretch(int64_t raw, int64_t low, int64_t high, int normalise) noexcept nogil:
    """Points stretched to 0..100 between the extremes over the feasible nodes."""
    if low == high:
        return 100 if normalise == MIN_MAX_100 else 0
    # Points beyond the extremes are newer than these; any number will do that follows from them.
    return (min(max(raw, low), high) - low) * 100 // (high - low)


cdef inline int64_t term_gained(const Ends* before, const Ends* now, int64_t weight, int normalise) noexcept nogil:
    """No stretched points times ``weight`` rise by more than this where these extremes take the place of those."""
    cdef int32_t[4] corner
    cdef int64_t point, gained
    cdef int64_t most = 0
    cdef int i
    corner[:] = [now.least, now.most, before.least, before.most]
    for i in range(4):
        point = min(max(corner[i], now.least), now.most)
        gained = weight * (stretch(point, now.least, now.most, normalise)
                           - stretch(point, before.least, before.most, normalise))
        most = max(most, gained) if i > 0 else gained
    return most + 2 * max(weight, -weight)    # less than one point is cut off of each


cdef class NormalisedScoreColumns(ScoreColumns):
    """Also keeps raw points, and how often each occurs among the nodes that fit, so that both ends are known."""

    cdef void add_up(self, int n, int first, int last) noexcept nogil:
        """Totals of the columns that node ``n`` fits, between the extremes each was last stretched with."""
        cdef int end
        while first < last:
            end = min(last, (first // ROW + 1) * ROW)
            self.add_up_row(n, first, end)
            first = end

    cdef void add_up_row(self, int n, int first, int last) noexcept nogil:
        """The same for columns that lie side by side, from the first one of their row or for one alone."""
        cdef const int32_t* total = <const int32_t*> self.trees[first].level[0] + tree_place(n, ROW)
        cdef int32_t* verdict = self.verdict + first
        cdef const ScoreColumn* column
        cdef int64_t place = tree_place(n, ROW)
        cdef uint32_t fresh = 0
        cdef int32_t stage, kept
        cdef int term, j
        for term in range(self.n_terms):
            fresh |= self.keep(term, n, first, last)
        if last - first == 1:
            fresh &= verdict[0] == 0
        else:
            fresh &= ~unlike_row(verdict, &nothing[0])
        for j in range(last - first):
            stage, kept = verdict[j], total[j]       # both are read, so that compilers need no branch
            verdict[j] = kept if stage == 0 else stage
        while fresh:
            j = unlike_first(fresh)
            fresh &= fresh - 1
            if self.columns[first + j].most_cpu >= 0:
                verdict[j] = 0                       # such a bound tells of the dear term only
            else:
                column = &self.columns[first + j]
                verdict[j] = <int32_t> self.stretched_total(column, &column.ends[0], place)

    cdef uint32_t keep(self, int term, int n, int first, int last) noexcept nogil:
        """Keep raw points of a term that may be stretched, and count them; where they changed, as bits."""
        cdef int32_t[ROW] raw
        cdef const int32_t* raws = self.raw + term * ROOM + first
        cdef const int32_t* verdict = self.verdict + first
        cdef int32_t* kept = self.columns[first].points[term] + tree_place(n, ROW)
        cdef int32_t points
        cdef uint32_t changed, left
        cdef int j
        if last - first == 1:
            raw[0] = raws[0] if verdict[0] == 0 else UNFIT
            changed = raw[0] != kept[0]
        else:
            for j in range(ROW):
                points = raws[j]
                raw[j] = points if verdict[j] == 0 else UNFIT
            changed = unlike_row(&raw[0], kept) & (<uint32_t> 0xFFFFFFFF >> (ROW - (last - first)))
        left = changed & (self.counted[first // ROW] >> (first % ROW)) if self.normalise[term] != NORM_NONE else 0
        while left:
            j = unlike_first(left)
            left &= left - 1
            if kept[j] > WORST:
                tally_remove(&self.columns[first + j].tallies[term], kept[j])
            if raw[j] > WORST:
                tally_add(&self.columns[first + j].tallies[term], raw[j])
        for j in range(last - first):    # what stands beyond belongs to columns that are not made yet
            kept[j] = raw[j]
        return changed

    cdef int64_t stretched_total(self, const ScoreColumn* column, const Ends* ends, int64_t place) noexcept nogil:
        """The total of a node that fits, between these extremes."""
        cdef int term
        cdef int64_t raw
        cdef int64_t total = 0
        for term in range(self.n_terms):
            raw = column.points[term][place]
            if self.normalise[term] != NORM_NONE:
                raw = stretch(raw, ends[term].least, ends[term].most, self.normalise[term])
            total += self.weight[term] * raw
        return total

    cdef bint find_ends(self, const ScoreColumn* column, Ends* ends) noexcept nogil:
        """The extremes of now; False if no node fits."""
        cdef const int32_t* points
        cdef ValueCounts* tally
        cdef int term, n
        for term in range(self.n_terms):
            if self.normalise[term] == NORM_NONE:
                continue
            tally = &column.tallies[term]
            if tally.beyond == 0:
                if not tally_ends(tally, &ends[term].least, &ends[term].most):
                    return False
                continue
            ends[term].least, ends[term].most = -WORST, WORST
            for n in range(self.nodes.count):
                points = &column.points[term][tree_place(n, ROW)]
                if points[0] > WORST:
                    ends[term].least = min(ends[term].least, points[0])
                    ends[term].most = max(ends[term].most, points[0])
        return True

    cdef int64_t most_gained(self, const ScoreColumn* column, const Ends* ends) noexcept nogil:
        """No total between these extremes exceeds the one that is kept by more than this; -1 if they are the same.

        What a term gains is piecewise linear between the old and the new extremes, but for what is cut off.
        """
        cdef int64_t gained = 0
        cdef bint same = True
        cdef int term
        for term in range(self.n_terms):
            if self.normalise[term] != NORM_NONE and (
                    ends[term].least != column.ends[term].least or ends[term].most != column.ends[term].most):
                same = False
                gained += term_gained(&column.ends[term], &ends[term], self.weight[term], self.normalise[term])
        return -1 if same else gained

    cdef int32_t first(self, int32_t c, int32_t* top) noexcept nogil:
        """The first node with the largest total of a column, between the extremes of now.

        Extremes move often and little. Then only nodes are looked at whose kept total comes as close to the best
        as totals can have risen meanwhile; if there are many, all are kept anew.
        """
        cdef Ends[TERMS] ends
        cdef const ScoreColumn* column = &self.columns[c]
        cdef Tree* tree = &self.trees[c]
        cdef int32_t start = tree_first(tree, top)
        cdef int32_t best_at = start
        cdef int32_t at = 0
        cdef int looks = MOST_LOOKS
        cdef int64_t best, total, gained
        if top[0] <= WORST or not self.find_ends(column, &ends[0]):
            return start
        gained = self.most_gained(column, &ends[0])
        if gained < 0:
            return start
        best = self.stretched_total(column, &ends[0], tree_place(start, ROW))
        while at < self.nodes.count:
            # Behind the best node so far an equal total would lose the tie.
            at = tree_next(tree, 0, at, <int32_t> max(best - gained + (at > best_at), WORST + 1))
            if at < 0:
                break
            looks -= 1
            if looks == 0:
                self.stretch_again(c, &ends[0])
                return tree_first(tree, top)
            total = self.stretched_total(column, &ends[0], tree_place(at, ROW))
            if total > best or (total == best and at < best_at):
                best, best_at = total, at
            at += 1
        top[0] = <int32_t> best
        return best_at

    cdef void stretch_again(self, int32_t c, const Ends* ends) noexcept nogil:
        """Keep totals between these extremes."""
        cdef ScoreColumn* column = &self.columns[c]
        cdef Tree* tree = &self.trees[c]
        cdef int term, n
        for term in range(self.n_terms):
            column.ends[term] = ends[term]
        for n in range(self.nodes.count):
            if tree_leaf(tree, n) > WORST:
                tree_write(tree, n, <int32_t> self.stretched_total(column, ends, tree_place(n, ROW)))
        tree_rebuild(tree)

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
        cdef ScoreColumn* column = &self.columns[c]
        cdef Tree points
        cdef int grove, term, g
        ScoreColumns.plant(self, c)
        for grove in range(c // ROW + 1):
            for term in range(self.n_terms):
                tree_alloc(&self.points[grove * TERMS + term], self.nodes.count, ROW, 1, False)
                for g in range(ROW):
                    self.columns[grove * ROW + g].points[term] = (
                        <int32_t*> self.points[grove * TERMS + term].cells + g)
        if column.tallies == NULL:
            column.tallies = <ValueCounts*> calloc(self.n_terms, sizeof(ValueCounts))
            if column.tallies == NULL:
                with gil:
                    raise MemoryError()
        # Nobody asks for the extremes of a bound.
        self.counted[c // ROW] &= ~(<uint32_t> 1 << (c % ROW))
        self.counted[c // ROW] |= <uint32_t> (column.most_cpu < 0) << (c % ROW)
        for term in range(self.n_terms):
            points = tree_of(&self.points[c // ROW * TERMS + term], c % ROW)
            tree_clear(&points)
            column.ends[term].least = column.ends[term].most = 0
            tally_clear(&column.tallies[term])
        return 0
