"""Trees of maxima over one number for each node: the largest, and the first position that has it.

The cells right above the leaves are exact. What rises there lifts the cells above as far as it
exceeds them; what falls does nothing more: cells further up may then promise more than there is, and
a search that finds a promise empty lowers it. Most promises are below the largest number and never
looked at, so changes cost little. Trees that change together stand in one grove: what they say of a
node lies in one row, written at a stroke.
"""

from libc.stdint cimport INT32_MIN, int32_t, int64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
from fastsim_ext.ahead cimport ahead

cdef enum:
    LINE = 64            # bytes of a cache line


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
        cdef int32_t top
        tree_first(&self.tree, &top)
        return top

    def first(self):
        """The first position with the largest number."""
        cdef int32_t top
        return tree_first(&self.tree, &top)

    def next(self, int32_t at, int32_t least):
        """The first position from ``at`` on with ``least`` or more, or -1."""
        return tree_next(&self.tree, 0, at, least)

    def gathered(self, int32_t least, int wanted):
        """All positions with ``least`` or more, gathered below so many cells at a time."""
        cdef int32_t[FOUND] found
        cdef int32_t at = 0
        every = []
        while at < self.tree.count:
            count = tree_gather(&self.tree, &at, least, min(wanted, GATHER), &found[0])
            every += [found[k] for k in range(count)]
        return every

    def sound(self):
        """Whether the cells above the leaves are exact and no cell exceeds the one above it."""
        return bool(tree_sound(&self.tree))


cdef inline int32_t padded(int32_t count) noexcept nogil:
    return max(1, (count + FAN - 1) // FAN) * FAN


cdef inline int32_t higher(int32_t a, int32_t b) noexcept nogil:
    return a if a > b else b


cdef inline int32_t highest(const int32_t* cells, int64_t step) noexcept nogil:
    """The largest of FAN numbers."""
    return higher(higher(cells[0], cells[step]), higher(cells[2 * step], cells[3 * step]))


cdef int tree_plant(Grove* grove, int32_t count, int32_t wide, int depth) except -1 nogil:
    """Room for ``wide`` trees of ``count`` leaves, of which only so many levels unless ``depth`` is 0."""
    cdef int64_t room = 0
    cdef int64_t i
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
    grove.held = malloc(room * sizeof(int32_t) + LINE)
    if grove.held == NULL:
        with gil:
            raise MemoryError()
    grove.cells = <int32_t*> ((<uintptr_t> grove.held + LINE - 1) // LINE * LINE)
    for i in range(room):
        grove.cells[i] = INT32_MIN
    return 0


cdef void tree_fell(Grove* grove) noexcept nogil:
    """Give the memory back."""
    free(grove.held)
    grove.cells, grove.held = NULL, NULL


cdef Tree tree_of(const Grove* grove, int32_t which) noexcept nogil:
    """One tree of a grove."""
    cdef Tree tree
    cdef int level
    tree.step, tree.depth, tree.count = grove.wide, grove.depth, grove.count
    for level in range(DEPTH):
        tree.level[level] = grove.cells + grove.start[level] + which if level < grove.depth else NULL
    return tree


cdef inline int32_t cells_of(const Tree* tree, int level) noexcept nogil:
    """Cells of one level of a tree."""
    cdef int32_t cells = padded(tree.count)
    while level > 0:
        cells = padded(cells // FAN)
        level -= 1
    return cells


cdef void tree_clear(Tree* tree) noexcept nogil:
    """Make every cell the lowest number there is."""
    cdef int level
    cdef int32_t i
    for level in range(tree.depth):
        for i in range(cells_of(tree, level)):
            tree.level[level][i * tree.step] = INT32_MIN


cdef void tree_sum_up(Tree* tree) noexcept nogil:
    """Make every maximum true again after leaves were written directly."""
    cdef int level
    cdef int32_t block
    for level in range(1, tree.depth):
        for block in range(cells_of(tree, level - 1) // FAN):
            tree.level[level][block * tree.step] = highest(tree.level[level - 1] + block * FAN * tree.step, tree.step)


cdef void tree_put(Tree* tree, int32_t at, int32_t value) noexcept nogil:
    """Write one leaf, and what follows from it."""
    cdef int32_t* cell = &tree.level[0][tree_place(at, tree.step)]
    cdef int level
    cell[0] = value
    if tree.depth == 1:
        return
    at >>= BITS
    value = highest(tree.level[0] + tree_place(at * FAN, tree.step), tree.step)
    tree.level[1][tree_place(at, tree.step)] = value
    for level in range(2, tree.depth):
        at >>= BITS
        cell = &tree.level[level][tree_place(at, tree.step)]
        if value <= cell[0]:
            return
        cell[0] = value


cdef void tree_put_row(const Grove* grove, int32_t at, const int32_t* values) noexcept nogil:
    """Write one leaf of ROW trees, all those of a grove, and what follows from them."""
    cdef int32_t[ROW] value
    cdef int32_t* cells = grove.cells + tree_place(at, ROW)
    cdef int32_t risen
    cdef int level, j
    for j in range(ROW):
        cells[j] = values[j]
    if grove.depth == 1:
        return
    at >>= BITS
    cells = grove.cells + tree_place(at * FAN, ROW)
    for j in range(ROW):
        value[j] = highest(cells + j, ROW)
    cells = grove.cells + grove.start[1] + tree_place(at, ROW)
    for j in range(ROW):
        cells[j] = value[j]
    for level in range(2, grove.depth):
        at >>= BITS
        cells = grove.cells + grove.start[level] + tree_place(at, ROW)
        risen = 0
        for j in range(ROW):
            risen |= value[j] > cells[j]
        if not risen:        # most changes do not exceed what was promised
            return
        for j in range(ROW):
            cells[j] = higher(cells[j], value[j])


cdef void lower(const Tree* tree, int level, int64_t at) noexcept nogil:
    """Make one cell the largest of those below it, and the cells above it accordingly."""
    cdef int32_t value
    while level < tree.depth:
        value = highest(tree.level[level - 1] + tree_place(at * FAN, tree.step), tree.step)
        if value == tree.level[level][tree_place(at, tree.step)]:
            return
        tree.level[level][tree_place(at, tree.step)] = value
        at >>= BITS
        level += 1


cdef int32_t tree_first(const Tree* tree, int32_t* top) noexcept nogil:
    """The first position with the largest leaf; how large it is into ``top``."""
    cdef int level
    cdef int64_t i, end
    while True:
        level, i, end = tree.depth - 1, 0, FAN
        top[0] = highest(tree.level[level], tree.step)
        while level < tree.depth:
            while i < end and tree.level[level][tree_place(i, tree.step)] != top[0]:
                i += 1
            if i == end:         # an empty promise: go on behind it
                level += 1
                i = (end >> BITS) - 1
                if level < tree.depth:
                    tree.level[level][tree_place(i, tree.step)] = highest(
                        tree.level[level - 1] + tree_place(end - FAN, tree.step), tree.step)
                end = (i | (FAN - 1)) + 1
            elif level == 0:
                return <int32_t> i
            else:
                level -= 1
                i <<= BITS
                end = i + FAN


cdef bint tree_sound(const Tree* tree) noexcept nogil:
    """Whether the cells above the leaves are exact and no cell exceeds the one above it."""
    cdef int level
    cdef int64_t i
    cdef int32_t most
    for level in range(1, tree.depth):
        for i in range(cells_of(tree, level - 1) // FAN):
            most = highest(tree.level[level - 1] + tree_place(i * FAN, tree.step), tree.step)
            if most > tree.level[level][tree_place(i, tree.step)] or (
                    level == 1 and most < tree.level[level][tree_place(i, tree.step)]):
                return False
    return True


cdef int32_t tree_next(const Tree* tree, int base, int32_t at, int32_t least) noexcept nogil:
    """The first cell of level ``base`` from ``at`` on that is ``least`` or more, or -1; leaves are level 0."""
    cdef int level = base
    cdef int64_t i = at
    cdef int64_t k
    cdef int64_t span = (<int64_t> 1) << BITS * base     # leaves below one cell of the level
    cdef bint whole         # whether a block is looked at from its start
    cdef const int32_t* cells
    while i * span < tree.count:    # there may be no memory behind
        cells = tree.level[level] + i * tree.step
        k = i % FAN
        whole = k == 0
        while k < FAN and cells[0] < least:
            cells += tree.step
            k += 1
        i += k - i % FAN
        if k == FAN:            # nothing here: look to the right, one level up
            if level == tree.depth - 1:
                return -1
            level += 1
            span *= FAN
            i //= FAN
            if whole and tree.level[level][tree_place(i - 1, tree.step)] >= least:
                lower(tree, level, i - 1)
        elif level == base:
            return <int32_t> i if i * span < tree.count else -1
        else:                   # something below this cell
            level -= 1
            span //= FAN
            i *= FAN
    return -1


cdef inline void expect_below(const Tree* tree, int level, int64_t at) noexcept nogil:
    """The cells below one cell will be looked at."""
    cdef int j
    for j in range(FAN if level > 0 else 0):
        ahead(&tree.level[level - 1][tree_place(at * FAN + j, tree.step)])


cdef int tree_gather(const Tree* tree, int32_t* at, int32_t least, int wanted, int32_t* found) noexcept nogil:
    """Leaves of ``least`` or more below the next cells of the third level that promise them, at most GATHER.

    Positions, rising, into ``found``; how many is the answer, 0 as well where promises were empty. ``at`` is where
    to begin, at first 0, then where to go on: the number of leaves if that was all. Level by level, so that many
    far parts of a large tree are on their way at the same time.
    """
    cdef int32_t[FOUND] cells
    cdef int32_t i
    cdef int base = min(2, tree.depth - 1)
    cdef int level, j, k, below
    cdef int count = 0
    i = at[0] >> BITS * base
    while count < wanted:
        i = tree_next(tree, base, i, least)
        if i < 0:
            break
        expect_below(tree, base, i)
        found[count] = i
        count += 1
        i += 1
    at[0] = i << BITS * base if i >= 0 else tree.count
    for level in range(base - 1, -1, -1):
        below = 0
        for k in range(count):
            i = below
            for j in range(FAN):
                if tree.level[level][tree_place(found[k] * FAN + j, tree.step)] >= least:
                    cells[below] = found[k] * FAN + j
                    expect_below(tree, level, cells[below])
                    below += 1
            if below == i:
                lower(tree, level + 1, found[k])
        count = below
        memcpy(found, &cells[0], count * sizeof(int32_t))
    return count
