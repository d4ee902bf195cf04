"""A tree of maxima over one number for each node: the largest, and the first position that has it.

A change of one leaf climbs only as far as a maximum changes, so both questions and changes cost
about the logarithm of the number of nodes.
"""

from libc.stdint cimport INT32_MIN, int32_t, int64_t
from libc.stdlib cimport free, malloc


cdef class Maxima:
    """A tree that Python can hold, for a list of numbers."""

    cdef Tree tree

    def __init__(self, values):
        cdef int32_t i
        tree_plant(&self.tree, len(values))
        for i in range(self.tree.count):
            self.tree.cells[i] = values[i]
        tree_sum_up(&self.tree)

    def __dealloc__(self):
        tree_fell(&self.tree)

    def put(self, int32_t at, int32_t value):
        """Write the number at a position."""
        if not 0 <= at < self.tree.count:
            raise IndexError(f"no position {at} in a tree of {self.tree.count}")
        tree_put(&self.tree, at, self.tree.cells[at], value)

    def top(self):
        """The largest number."""
        return tree_top(&self.tree)

    def first(self):
        """The first position with the largest number."""
        return tree_first(&self.tree, tree_top(&self.tree))

    def next(self, int32_t at, int32_t least):
        """The first position from ``at`` on with ``least`` or more, or -1."""
        return tree_next(&self.tree, at, least)


cdef inline int32_t padded(int32_t count) noexcept nogil:
    return max(1, (count + FAN - 1) // FAN) * FAN


cdef inline int32_t highest(const int32_t* cells) noexcept nogil:
    """The largest of FAN numbers."""
    cdef int32_t best = cells[0]
    cdef int i
    for i in range(1, FAN):
        best = cells[i] if cells[i] > best else best
    return best


cdef int tree_plant(Tree* tree, int32_t count) except -1 nogil:
    """Room for ``count`` leaves, all of them the lowest number there is."""
    cdef int64_t i
    cdef int64_t room = 0
    cdef int32_t wide = padded(count)
    tree.count = count
    tree.depth = 0
    while True:
        tree.start[tree.depth] = room
        tree.depth += 1
        room += wide
        if wide == FAN:
            break
        wide = padded(wide // FAN)
    tree.cells = <int32_t*> malloc(room * sizeof(int32_t))
    if tree.cells == NULL:
        with gil:
            raise MemoryError()
    for i in range(room):
        tree.cells[i] = INT32_MIN
    return 0


cdef void tree_fell(Tree* tree) noexcept nogil:
    """Give the memory back."""
    free(tree.cells)
    tree.cells = NULL


cdef void tree_sum_up(Tree* tree) noexcept nogil:
    """Make every maximum true again after leaves were written directly."""
    cdef int level
    cdef int64_t i, n
    for level in range(1, tree.depth):
        n = (tree.start[level] - tree.start[level - 1]) // FAN
        for i in range(n):
            tree.cells[tree.start[level] + i] = highest(&tree.cells[tree.start[level - 1] + i * FAN])


cdef void tree_put(Tree* tree, int32_t at, int32_t old, int32_t value) noexcept nogil:
    """Write one leaf, which was ``old``, and every maximum that follows from it.

    The leaf is not read: with many trees it is seldom in the cache, while its maximum often is.
    """
    cdef int32_t* cells = tree.cells
    cdef int32_t* cell
    cdef int32_t most
    cdef int level
    cdef int64_t i = at
    cells[at] = value
    for level in range(1, tree.depth):
        i //= FAN
        cell = &cells[tree.start[level] + i]
        most = cell[0]
        if value < most:
            if old < most:           # it was not the largest before either
                return
            value = highest(&cells[tree.start[level - 1] + i * FAN])
        if value == most:
            return
        old = most
        cell[0] = value


cdef int32_t tree_top(const Tree* tree) noexcept nogil:
    """The largest leaf."""
    return highest(&tree.cells[tree.start[tree.depth - 1]])


cdef int32_t tree_first(const Tree* tree, int32_t value) noexcept nogil:
    """The first position with ``value``, which must be the largest leaf."""
    cdef int level = tree.depth - 1
    cdef int64_t i = 0
    cdef const int32_t* cells
    while True:
        cells = &tree.cells[tree.start[level] + i * FAN]
        i *= FAN
        while cells[0] != value:
            cells += 1
            i += 1
        if level == 0:
            return <int32_t> i
        level -= 1


cdef int32_t tree_next(const Tree* tree, int32_t at, int32_t least) noexcept nogil:
    """The first position from ``at`` on whose leaf is ``least`` or more, or -1."""
    cdef int level = 0
    cdef int64_t i = at
    cdef int64_t end
    if at >= tree.count:    # there may be no memory to look at
        return -1
    while True:
        end = (i // FAN + 1) * FAN
        while i < end and tree.cells[tree.start[level] + i] < least:
            i += 1
        if i == end:            # nothing here: look to the right, one level up
            if level == tree.depth - 1:
                return -1
            level += 1
            i //= FAN
        elif level == 0:
            return <int32_t> i if i < tree.count else -1
        else:                   # something below this cell
            level -= 1
            i *= FAN
