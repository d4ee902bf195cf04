"""Rows of groves of narrow trees, written now and summed up when somebody asks.

A grove that is seldom asked has many changed leaves by then. They climb together, level by level: far parts of a large
tree are on their way at the same time, no branch hangs on what cannot be foreseen, and what several leaves have above
them is summed up once.
"""

from libc.stdint cimport int8_t, int32_t, int64_t
from libc.string cimport memcpy
from fastsim_ext.memory cimport ahead
from fastsim_ext.select.max_tree cimport (
    BITS, FAN, LATE, ROW, MaxForest, Tree, tree_free, tree_first, tree_of, tree_alloc, tree_put, tree_sound,
)

cdef enum:
    FAR = 3              # levels of which most is not in the cache when there are many leaves
    STEPS = 12           # of a climb, between asking for memory and having it


cdef class DeferredMaxForest:
    """A grove of ROW narrow trees that Python can hold, with ``count`` leaves each, all of them -128."""

    cdef MaxForest grove

    def __init__(self, int32_t count):
        tree_alloc(&self.grove, count, ROW, 0, True)

    def __dealloc__(self):
        tree_free(&self.grove)

    def put(self, int32_t at, values):
        """Write the numbers of all trees at a position, and what follows from them when somebody asks."""
        cdef int8_t[ROW] row
        if not 0 <= at < self.grove.count or len(values) != ROW:
            raise IndexError(f"no row of {len(values)} at {at} in {ROW} trees of {self.grove.count}")
        for i in range(ROW):
            row[i] = values[i]
        climb_put(&self.grove, at, &row[0])

    def put_one(self, int which, int32_t at, int32_t value):
        """Write the number of one tree at a position, with what follows from it alone."""
        cdef Tree tree = self.tree(which)
        if not 0 <= at < self.grove.count:
            raise IndexError(f"no position {at} in a tree of {self.grove.count}")
        tree_put(&tree, at, value)

    def first(self, int which):
        """(the largest number of a tree, the first position that has it)."""
        cdef int32_t top
        cdef Tree tree = self.tree(which)
        climb_up(&self.grove)
        at = tree_first(&tree, &top)
        return top, at

    def sound(self, int which):
        """Whether every cell of a tree is the largest of those below it."""
        cdef Tree tree = self.tree(which)
        climb_up(&self.grove)
        return bool(tree_sound(&tree))

    cdef Tree tree(self, int which) except *:
        if not 0 <= which < ROW:
            raise IndexError(f"no tree {which} of {ROW}")
        return tree_of(&self.grove, which)


cdef void climb_put(MaxForest* grove, int32_t at, const int8_t* values) noexcept nogil:
    """Write one leaf of ROW trees, all those of a narrow grove, whose maxima are not right then."""
    memcpy(grove.cells + <int64_t> at * ROW, values, ROW)
    if grove.n_late == LATE:
        climb_up(grove)
    grove.late[grove.n_late] = at >> BITS
    grove.n_late += 1


cdef inline int8_t higher(int8_t a, int8_t b) noexcept nogil:
    return a if a > b else b


cdef inline bint overtop(const int8_t* below, int8_t* cells) noexcept nogil:
    """Write the largest of FAN rows of ROW cells; whether that is something else than it was."""
    cdef int8_t[ROW] value
    cdef int8_t apart = 0
    cdef int j
    for j in range(ROW):
        value[j] = higher(higher(below[j], below[j + ROW]), higher(below[j + 2 * ROW], below[j + 3 * ROW]))
    for j in range(ROW):
        apart |= value[j] ^ cells[j]
    memcpy(cells, &value[0], ROW)
    return apart != 0


cdef inline void expect_step(const int8_t* below, const int8_t* cells) noexcept nogil:
    """FAN rows and the one above them will be asked for."""
    ahead(below)
    ahead(below + FAN * ROW // 2)
    ahead(cells)


cdef void climb_up(MaxForest* grove) noexcept nogil:
    """Make every maximum right again above what climb_put wrote."""
    cdef int32_t* late = grove.late
    cdef int count = grove.n_late
    cdef int level, k, kept
    cdef int64_t i
    cdef const int8_t* below
    cdef int8_t* cells
    grove.n_late = 0
    for level in range(1, grove.depth):
        if count == 0:
            return
        below, cells = <int8_t*> grove.cells + grove.start[level - 1], <int8_t*> grove.cells + grove.start[level]
        kept = 0
        for k in range(count):
            if level <= FAR and k + STEPS < count:
                i = late[k + STEPS]
                expect_step(below + i * FAN * ROW, cells + i * ROW)
            i = late[k]
            late[kept] = <int32_t> (i >> BITS)
            kept += overtop(below + i * FAN * ROW, cells + i * ROW)
        count = kept
