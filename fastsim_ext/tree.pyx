"""Trees of maxima over one number for each node: the largest, and the first position that has it.

A change of one leaf climbs only as far as a maximum changes, so both questions and changes cost
about the logarithm of the number of nodes. Trees that change together stand in one grove: what they
say of a node, and of its neighbours, lies in one stretch of memory.
"""

from libc.stdint cimport INT32_MIN, int32_t, int64_t
from libc.stdlib cimport free, malloc


cdef class Maxima:
    """A tree that Python can hold, for a list of numbers; ``beside`` trees stand before it in its grove."""

    cdef Grove grove
    cdef Tree tree

    def __init__(self, values, int beside=0):
        cdef int32_t i
        tree_plant(&self.grove, len(values), beside + 1, 0)
        self.tree = tree_of(&self.grove, beside)
        tree_clear(&self.tree)
        for i in range(self.tree.count):
            self.tree.level[0][tree_place(i, self.tree.step)] = values[i]
        tree_sum_up(&self.tree)

    def __dealloc__(self):
        tree_fell(&self.grove)

    def put(self, int32_t at, int32_t value):
        """Write the number at a position."""
        if not 0 <= at < self.tree.count:
            raise IndexError(f"no position {at} in a tree of {self.tree.count}")
        tree_put(&self.tree, at, value)

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


cdef int tree_plant(Grove* grove, int32_t count, int32_t wide, int depth) except -1 nogil:
    """Room for ``wide`` trees of ``count`` leaves, of which only so many levels unless ``depth`` is 0."""
    cdef int64_t room = 0
    cdef int32_t level = padded(count)
    if grove.cells != NULL:
        return 0
    grove.count, grove.wide, grove.depth = count, wide, 0
    while True:
        grove.start[grove.depth] = room
        grove.depth += 1
        room += <int64_t> level * wide
        if level == FAN or grove.depth == depth:
            break
        level = padded(level // FAN)
    grove.cells = <int32_t*> malloc(room * sizeof(int32_t))
    if grove.cells == NULL:
        with gil:
            raise MemoryError()
    return 0


cdef void tree_fell(Grove* grove) noexcept nogil:
    """Give the memory back."""
    free(grove.cells)
    grove.cells = NULL


cdef Tree tree_of(const Grove* grove, int32_t which) noexcept nogil:
    """One tree of a grove."""
    cdef Tree tree
    cdef int level
    tree.step, tree.depth, tree.count = <int64_t> grove.wide * FAN, grove.depth, grove.count
    for level in range(DEPTH):
        tree.level[level] = grove.cells + grove.start[level] + which * FAN if level < grove.depth else NULL
    return tree


cdef inline int32_t blocks(const Tree* tree, int level) noexcept nogil:
    """Blocks of one level of a tree."""
    cdef int32_t cells = padded(tree.count)
    while level > 0:
        cells = padded(cells // FAN)
        level -= 1
    return cells // FAN


cdef void tree_clear(Tree* tree) noexcept nogil:
    """Make every cell the lowest number there is."""
    cdef int level, i
    cdef int32_t block
    for level in range(tree.depth):
        for block in range(blocks(tree, level)):
            for i in range(FAN):
                tree.level[level][block * tree.step + i] = INT32_MIN


cdef void tree_sum_up(Tree* tree) noexcept nogil:
    """Make every maximum true again after leaves were written directly."""
    cdef int level
    cdef int32_t block
    for level in range(1, tree.depth):
        for block in range(blocks(tree, level - 1)):
            tree.level[level][tree_place(block, tree.step)] = highest(tree.level[level - 1] + block * tree.step)


cdef void tree_put(Tree* tree, int32_t at, int32_t value) noexcept nogil:
    """Write one leaf, and every maximum that follows from it."""
    cdef int32_t* cell = &tree.level[0][tree_place(at, tree.step)]
    cdef int32_t most, old = cell[0]
    cdef int level
    cdef int64_t i = at
    cell[0] = value
    for level in range(1, tree.depth):
        i >>= BITS
        cell = &tree.level[level][tree_place(i, tree.step)]
        most = cell[0]
        if value < most:
            if old < most:           # it was not the largest before either
                return
            value = highest(tree.level[level - 1] + i * tree.step)
        if value == most:
            return
        old = most
        cell[0] = value


cdef int32_t tree_top(const Tree* tree) noexcept nogil:
    """The largest leaf."""
    return highest(tree.level[tree.depth - 1])


cdef int32_t tree_first(const Tree* tree, int32_t value) noexcept nogil:
    """The first position with ``value``, which must be the largest leaf."""
    cdef int level = tree.depth - 1
    cdef int64_t i = 0
    cdef const int32_t* cells
    while True:
        cells = tree.level[level] + i * tree.step
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
    cdef int64_t k
    cdef int64_t span = 1   # leaves below one cell of the level
    cdef const int32_t* cells
    while i * span < tree.count:    # there may be no memory behind
        cells = tree.level[level] + (i // FAN) * tree.step
        k = i % FAN
        while k < FAN and cells[k] < least:
            k += 1
        i += k - i % FAN
        if k == FAN:            # nothing here: look to the right, one level up
            if level == tree.depth - 1:
                return -1
            level += 1
            span *= FAN
            i //= FAN
        elif level == 0:
            return <int32_t> i if i < tree.count else -1
        else:                   # something below this cell
            level -= 1
            span //= FAN
            i *= FAN
    return -1
