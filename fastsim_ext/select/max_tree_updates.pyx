"""Deferred updates of one-byte max trees: rows are written at once, the maxima above before the next query.

A forest that is seldom queried has many changed leaves by then. They are propagated together, level by level:
distant parts of a large tree are fetched at the same time, no branch depends on unpredictable data, and cells above
several changed leaves are computed once.
"""

from libc.stdint cimport int8_t, int32_t, int64_t
from libc.string cimport memcpy
from fastsim_ext.memory cimport ahead
from fastsim_ext.select.max_tree cimport (
    BITS, FAN, MOST_STALE, ROW, MaxForest, Tree, tree_free, tree_first, tree_of, tree_alloc, tree_put, tree_sound,
)

cdef enum:
    FAR = 3              # levels of which most is not in the cache when there are many leaves
    LOOKAHEAD = 12       # blocks between the prefetch of one and its update


cdef class DeferredMaxForest:
    """A forest of ROW narrow trees with ``count`` leaves each, at first -128; for tests in Python."""

    cdef MaxForest forest

    def __init__(self, int32_t count):
        tree_alloc(&self.forest, count, ROW, 0, True)

    def __dealloc__(self):
        tree_free(&self.forest)

    def put(self, int32_t at, values):
        """Write the numbers of all trees at a position; maxima are updated before the next query."""
        cdef int8_t[ROW] row
        if not 0 <= at < self.forest.count or len(values) != ROW:
            raise IndexError(f"no row of {len(values)} at {at} in {ROW} trees of {self.forest.count}")
        for i in range(ROW):
            row[i] = values[i]
        updates_put(&self.forest, at, &row[0])

    def put_one(self, int which, int32_t at, int32_t value):
        """Write the number of one tree at a position and update the maxima above it."""
        cdef Tree tree = self.tree(which)
        if not 0 <= at < self.forest.count:
            raise IndexError(f"no position {at} in a tree of {self.forest.count}")
        tree_put(&tree, at, value)

    def first(self, int which):
        """(largest number of a tree, first position that has it)."""
        cdef int32_t top
        cdef Tree tree = self.tree(which)
        updates_apply(&self.forest)
        at = tree_first(&tree, &top)
        return top, at

    def sound(self, int which):
        """Whether every cell of a tree is the largest of those below it."""
        cdef Tree tree = self.tree(which)
        updates_apply(&self.forest)
        return bool(tree_sound(&tree))

    cdef Tree tree(self, int which) except *:
        if not 0 <= which < ROW:
            raise IndexError(f"no tree {which} of {ROW}")
        return tree_of(&self.forest, which)


cdef void updates_put(MaxForest* forest, int32_t at, const int8_t* values) noexcept nogil:
    """Write one leaf of all ROW trees of a narrow forest; the maxima above are out of date until updates_apply."""
    memcpy(forest.cells + <int64_t> at * ROW, values, ROW)
    if forest.n_stale == MOST_STALE:
        updates_apply(forest)
    forest.stale[forest.n_stale] = at >> BITS
    forest.n_stale += 1


cdef inline int8_t higher(int8_t a, int8_t b) noexcept nogil:
    return a if a > b else b


cdef inline bint row_maximum(const int8_t* below, int8_t* cells) noexcept nogil:
    """Write the maxima of FAN rows of ROW cells; whether any of them changed."""
    cdef int8_t[ROW] value
    cdef int8_t differs = 0
    cdef int j
    for j in range(ROW):
        value[j] = higher(higher(below[j], below[j + ROW]), higher(below[j + 2 * ROW], below[j + 3 * ROW]))
    for j in range(ROW):
        differs |= value[j] ^ cells[j]
    memcpy(cells, &value[0], ROW)
    return differs != 0


cdef inline void prefetch_step(const int8_t* below, const int8_t* cells) noexcept nogil:
    """Prefetch FAN rows and the one above them."""
    ahead(below)
    ahead(below + FAN * ROW // 2)
    ahead(cells)


cdef void updates_apply(MaxForest* forest) noexcept nogil:
    """Update the maxima above all leaves that updates_put wrote."""
    cdef int32_t* stale = forest.stale
    cdef int count = forest.n_stale
    cdef int level, k, n_above
    cdef int64_t i
    cdef const int8_t* below
    cdef int8_t* cells
    forest.n_stale = 0
    for level in range(1, forest.depth):
        if count == 0:
            return
        below, cells = <int8_t*> forest.cells + forest.start[level - 1], <int8_t*> forest.cells + forest.start[level]
        n_above = 0
        for k in range(count):
            if level <= FAR and k + LOOKAHEAD < count:
                i = stale[k + LOOKAHEAD]
                prefetch_step(below + i * FAN * ROW, cells + i * ROW)
            i = stale[k]
            stale[n_above] = <int32_t> (i >> BITS)
            n_above += row_maximum(below + i * FAN * ROW, cells + i * ROW)
        count = n_above
