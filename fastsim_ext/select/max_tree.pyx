"""Trees of maxima over one number for each node: the largest, and the first position that has it.

Every cell is the largest of the FAN below it: a change is propagated until a level stays as it was.
Exact maxima pay in large clusters, where most cells are not in the cache and a search down a branch
without a match costs more than the propagation. Trees that change together form a forest: their numbers
for one node lie side by side in one row and are written together. Small numbers take one byte each, so
that more of them fit the cache; the fused type ``cell_t`` gives both widths one implementation.
``max_tree_updates`` defers the propagation for rows of bytes.
"""

from libc.stdint cimport INT8_MAX, INT8_MIN, INT32_MIN, int8_t, int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
from fastsim_ext.memory cimport ahead, ahead_line, ahead_pages

cdef enum:
    LINE = 64            # bytes of a cache line
    WORDS = 4            # of 64 bits, that ROW cells of one byte take
    FAR = 3              # levels of which most is not in the cache when there are many leaves

ctypedef fused cell_t:
    int8_t
    int32_t


cdef class MaxTree:
    """A tree over a list of numbers, for tests in Python; it is number ``beside`` of its forest.

    A ``narrow`` one holds numbers from -127 to 126.
    """

    cdef MaxForest forest
    cdef Tree tree

    def __init__(self, values, int beside=0, bint narrow=False):
        cdef int32_t i
        tree_alloc(&self.forest, len(values), beside + 1, 0, narrow)
        self.tree = tree_of(&self.forest, beside)
        tree_clear(&self.tree)
        for i in range(self.tree.count):
            tree_write(&self.tree, i, values[i])
        tree_rebuild(&self.tree)

    def __dealloc__(self):
        tree_free(&self.forest)

    def copy(self, MaxTree other):
        """Copy the numbers of another tree of the same size and width."""
        if other.tree.count != self.tree.count or other.tree.narrow != self.tree.narrow:
            raise ValueError(f"a tree of {other.tree.count} is no copy for one of {self.tree.count}")
        tree_duplicate(&other.tree, &self.tree)

    def put(self, int32_t at, int32_t value):
        """Write the number at a position."""
        if not 0 <= at < self.tree.count:
            raise IndexError(f"no position {at} in a tree of {self.tree.count}")
        tree_put(&self.tree, at, value)

    def put_row(self, int32_t at, values):
        """Write the numbers of all ROW trees of the forest at a position; this tree is its last one."""
        cdef int32_t[ROW] row
        if not 0 <= at < self.tree.count or len(values) != ROW or self.forest.n_trees != ROW:
            raise IndexError(f"no row of {len(values)} at {at} in {self.forest.n_trees} trees of {self.tree.count}")
        for i in range(ROW):
            row[i] = values[i]
        tree_put_row(&self.forest, at, &row[0])

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
        """All positions with ``least`` or more, gathered below ``wanted`` cells at a time."""
        cdef int32_t[GATHERED] leaves
        cdef int32_t at = 0
        positions = []
        while at < self.tree.count:
            count = tree_gather(&self.tree, &at, least, min(wanted, GATHER), &leaves[0])
            positions += [leaves[k] for k in range(count)]
        return positions

    def sound(self):
        """Whether every cell is the largest of those below it."""
        return bool(tree_sound(&self.tree))


cdef inline int32_t padded(int32_t count) noexcept nogil:
    return max(1, (count + FAN - 1) // FAN) * FAN


cdef inline cell_t higher(cell_t a, cell_t b) noexcept nogil:
    return a if a > b else b


cdef inline cell_t highest(const cell_t* cells, int64_t stride) noexcept nogil:
    """The largest of FAN numbers."""
    return higher(higher(cells[0], cells[stride]), higher(cells[2 * stride], cells[3 * stride]))


cdef inline int8_t narrowed(int32_t value) noexcept nogil:
    """The number as one byte; numbers out of range become the nearest one."""
    return <int8_t> min(max(value, INT8_MIN), INT8_MAX)


cdef int tree_alloc(MaxForest* forest, int32_t count, int32_t n_trees, int depth, bint narrow) except -1 nogil:
    """Allocate ``n_trees`` trees of ``count`` leaves, with ``depth`` levels (0: all)."""
    cdef int64_t room = 0
    cdef int64_t i
    cdef int32_t level = padded(count)
    if forest.cells != NULL:
        return 0
    forest.count, forest.n_trees, forest.depth, forest.narrow = count, n_trees, 0, narrow
    while True:
        forest.start[forest.depth] = room
        forest.depth += 1
        room += <int64_t> level * n_trees
        if level == FAN or forest.depth == depth:
            break
        level = padded(level // FAN)
    forest.memory = malloc(room * (1 if narrow else sizeof(int32_t)) + LINE + MOST_STALE * sizeof(int32_t))
    if forest.memory == NULL:
        with gil:
            raise MemoryError()
    ahead_pages(forest.memory, room * (1 if narrow else sizeof(int32_t)) + LINE)
    forest.cells = <char*> ahead_line(forest.memory)
    forest.stale = <int32_t*> (forest.cells + room * (1 if narrow else sizeof(int32_t)))
    forest.n_stale = 0
    for i in range(room):
        if narrow:
            (<int8_t*> forest.cells)[i] = INT8_MIN
        else:
            (<int32_t*> forest.cells)[i] = INT32_MIN
    return 0


cdef void tree_free(MaxForest* forest) noexcept nogil:
    """Free the memory of a forest."""
    free(forest.memory)
    forest.cells, forest.memory = NULL, NULL


cdef Tree tree_of(const MaxForest* forest, int32_t which) noexcept nogil:
    """One tree of a forest."""
    cdef Tree tree
    cdef int level
    cdef int64_t size = 1 if forest.narrow else sizeof(int32_t)
    tree.stride, tree.depth, tree.count, tree.narrow = forest.n_trees, forest.depth, forest.count, forest.narrow
    for level in range(DEPTH):
        tree.level[level] = forest.cells + (forest.start[level] + which) * size if level < forest.depth else NULL
    return tree


cdef inline void prefetch_cells(const MaxForest* forest, int64_t at, int levels, cell_t kind) noexcept nogil:
    cdef const cell_t* cells
    cdef int level, line
    for level in range(min(forest.depth, levels)):
        at >>= BITS
        cells = <const cell_t*> forest.cells + forest.start[level] + tree_offset(at, FAN * ROW)
        for line in range(<int> (FAN * ROW * sizeof(cell_t) // LINE)):
            ahead(<const char*> cells + line * LINE)


cdef void tree_prefetch(const MaxForest* forest, int32_t at, bint soon) noexcept nogil:
    """Prefetch one leaf of all ROW trees of a forest, and the cells above it.

    In a narrow forest those are updated later, so they are only fetched if a query comes ``soon``.
    """
    if forest.narrow:
        prefetch_cells(forest, at, FAR if soon else 1, <int8_t> 0)
    else:
        prefetch_cells(forest, at, FAR, <int32_t> 0)


cdef inline int32_t cells_of(const Tree* tree, int level) noexcept nogil:
    """Cells of one level of a tree."""
    cdef int32_t cells = padded(tree.count)
    while level > 0:
        cells = padded(cells // FAN)
        level -= 1
    return cells


cdef void clear_cells(Tree* tree, cell_t lowest) noexcept nogil:
    cdef int level
    cdef int64_t i
    for level in range(tree.depth):
        for i in range(cells_of(tree, level)):
            (<cell_t*> tree.level[level])[i * tree.stride] = lowest


cdef void tree_clear(Tree* tree) noexcept nogil:
    """Set every cell to the lowest number."""
    if tree.narrow:
        clear_cells(tree, <int8_t> INT8_MIN)
    else:
        clear_cells(tree, <int32_t> INT32_MIN)


cdef void copy_cells(const Tree* tree, Tree* to, cell_t kind) noexcept nogil:
    cdef int level
    cdef int64_t i
    for level in range(tree.depth):
        for i in range(cells_of(tree, level)):
            (<cell_t*> to.level[level])[tree_offset(i, to.stride)] = (
                <const cell_t*> tree.level[level])[tree_offset(i, tree.stride)]


cdef void tree_duplicate(const Tree* tree, Tree* to) noexcept nogil:
    """Copy all cells to a tree of the same size and width."""
    if tree.narrow:
        copy_cells(tree, to, <int8_t> 0)
    else:
        copy_cells(tree, to, <int32_t> 0)


cdef void tree_write(Tree* tree, int32_t at, int32_t value) noexcept nogil:
    """Write one leaf without its maxima; tree_rebuild updates those."""
    if tree.narrow:
        (<int8_t*> tree.level[0])[tree_offset(at, tree.stride)] = narrowed(value)
    else:
        (<int32_t*> tree.level[0])[tree_offset(at, tree.stride)] = value


cdef void rebuild_cells(Tree* tree, cell_t kind) noexcept nogil:
    cdef int level
    cdef int64_t block
    for level in range(1, tree.depth):
        for block in range(cells_of(tree, level - 1) // FAN):
            (<cell_t*> tree.level[level])[block * tree.stride] = highest(
                <cell_t*> tree.level[level - 1] + block * FAN * tree.stride, tree.stride)


cdef void tree_rebuild(Tree* tree) noexcept nogil:
    """Compute all maxima from the leaves."""
    if tree.narrow:
        rebuild_cells(tree, <int8_t> 0)
    else:
        rebuild_cells(tree, <int32_t> 0)


cdef void put_cell(Tree* tree, int64_t at, cell_t value) noexcept nogil:
    cdef cell_t* cell = <cell_t*> tree.level[0] + tree_offset(at, tree.stride)
    cdef int level
    cell[0] = value
    for level in range(1, tree.depth):
        at >>= BITS
        value = highest(<cell_t*> tree.level[level - 1] + tree_offset(at * FAN, tree.stride), tree.stride)
        cell = <cell_t*> tree.level[level] + tree_offset(at, tree.stride)
        if value == cell[0]:
            return
        cell[0] = value


cdef void tree_put(Tree* tree, int32_t at, int32_t value) noexcept nogil:
    """Write one leaf and update the maxima above it."""
    if tree.narrow:
        put_cell(tree, at, narrowed(value))
    else:
        put_cell(tree, at, value)


cdef inline bint unequal(const cell_t* a, const cell_t* b) noexcept nogil:
    """Whether two rows of ROW cells differ; narrow rows are compared by words of 64 bits."""
    cdef int64_t[WORDS] left, right
    cdef int64_t bits = 0
    cdef cell_t differs = 0
    cdef int j
    if cell_t is int32_t:
        for j in range(ROW):
            differs |= a[j] ^ b[j]
        bits = differs
    else:
        memcpy(&left[0], a, ROW)
        memcpy(&right[0], b, ROW)
        for j in range(WORDS):
            bits |= left[j] ^ right[j]
    return bits != 0


cdef inline void put_cells(const MaxForest* forest, int64_t at, cell_t* value) noexcept nogil:
    """Write ``value`` to one leaf of ROW trees and update the maxima above; ``value`` is overwritten."""
    cdef cell_t* cells = <cell_t*> forest.cells + tree_offset(at, ROW)
    cdef const cell_t* below
    cdef int level, j
    memcpy(cells, value, ROW * sizeof(cell_t))
    for level in range(1, forest.depth):
        at >>= BITS
        below = <const cell_t*> forest.cells + forest.start[level - 1] + tree_offset(at * FAN, ROW)
        cells = <cell_t*> forest.cells + forest.start[level] + tree_offset(at, ROW)
        for j in range(ROW):
            value[j] = higher(higher(below[j], below[j + ROW]), higher(below[j + 2 * ROW], below[j + 3 * ROW]))
        if not unequal(value, cells):
            return
        memcpy(cells, value, ROW * sizeof(cell_t))


cdef void tree_put_row(const MaxForest* forest, int32_t at, const int32_t* values) noexcept nogil:
    """Write one leaf of all ROW trees of a forest and update the maxima above."""
    cdef int32_t[ROW] row
    cdef int8_t[ROW] small
    cdef int j
    if forest.narrow:
        for j in range(ROW):
            small[j] = <int8_t> values[j]
        put_cells(forest, at, &small[0])
    else:
        for j in range(ROW):
            row[j] = values[j]
        put_cells(forest, at, &row[0])


cdef int32_t first_cell(const Tree* tree, cell_t* top) noexcept nogil:
    cdef int level = tree.depth - 1
    cdef int64_t i = 0
    cdef int64_t k
    cdef const cell_t* cells
    top[0] = highest(<const cell_t*> tree.level[level], tree.stride)
    while level >= 0:
        cells = <const cell_t*> tree.level[level] + tree_offset(i, tree.stride)
        k = FAN - 1              # no branch: it could not be predicted
        k = 2 if cells[2 * tree.stride] == top[0] else k
        k = 1 if cells[tree.stride] == top[0] else k
        k = 0 if cells[0] == top[0] else k
        i = (i + k) << BITS
        level -= 1
    return <int32_t> (i >> BITS)


cdef int32_t tree_first(const Tree* tree, int32_t* top) noexcept nogil:
    """The first position with the largest leaf; its number goes to ``top``."""
    cdef int32_t at
    cdef int8_t small
    if not tree.narrow:
        return first_cell(tree, top)
    at = first_cell(tree, &small)
    top[0] = small
    return at


cdef bint sound_cells(const Tree* tree, cell_t kind) noexcept nogil:
    cdef int level
    cdef int64_t i
    for level in range(1, tree.depth):
        for i in range(cells_of(tree, level - 1) // FAN):
            if (<cell_t*> tree.level[level])[tree_offset(i, tree.stride)] != highest(
                    <cell_t*> tree.level[level - 1] + tree_offset(i * FAN, tree.stride), tree.stride):
                return False
    return True


cdef bint tree_sound(const Tree* tree) noexcept nogil:
    """Whether every cell is the largest of those below it."""
    return sound_cells(tree, <int8_t> 0) if tree.narrow else sound_cells(tree, <int32_t> 0)


cdef int32_t next_cell(const Tree* tree, int base, int32_t at, cell_t least) noexcept nogil:
    cdef int level = base
    cdef int64_t i = at
    cdef int64_t k
    cdef int64_t span = (<int64_t> 1) << BITS * base     # leaves below one cell of the level
    cdef const cell_t* cells
    while i * span < tree.count:    # cells beyond may not be allocated
        cells = <const cell_t*> tree.level[level] + i * tree.stride
        k = i % FAN
        while k < FAN and cells[0] < least:
            cells += tree.stride
            k += 1
        i += k - i % FAN
        if k == FAN:            # no match: continue to the right, one level up
            if level == tree.depth - 1:
                return -1
            level += 1
            span *= FAN
            i //= FAN
        elif level == base:
            return <int32_t> i if i * span < tree.count else -1
        else:                   # a match below this cell
            level -= 1
            span //= FAN
            i *= FAN
    return -1


cdef int32_t tree_next(const Tree* tree, int base, int32_t at, int32_t least) noexcept nogil:
    """The first cell of level ``base`` from ``at`` on that is ``least`` or more, or -1; leaves are level 0."""
    return next_cell(tree, base, at, narrowed(least)) if tree.narrow else next_cell(tree, base, at, least)


cdef inline void prefetch_below(const Tree* tree, int level, int64_t at) noexcept nogil:
    """Prefetch the cells below one cell."""
    cdef int64_t size = 1 if tree.narrow else sizeof(int32_t)
    cdef int j
    for j in range(FAN if level > 0 else 0):
        ahead(tree.level[level - 1] + tree_offset(at * FAN + j, tree.stride) * size)


cdef int gather_cells(const Tree* tree, int32_t* at, cell_t least, int wanted, int32_t* leaves) noexcept nogil:
    cdef int32_t[GATHERED] cells
    cdef int32_t i
    cdef int base = min(2, tree.depth - 1)
    cdef int level, j, k, below
    cdef int count = 0
    i = at[0] >> BITS * base
    while count < wanted:
        i = next_cell(tree, base, i, least)
        if i < 0:
            break
        prefetch_below(tree, base, i)
        leaves[count] = i
        count += 1
        i += 1
    at[0] = i << BITS * base if i >= 0 else tree.count
    for level in range(base - 1, -1, -1):
        below = 0
        for k in range(count):
            for j in range(FAN):
                if (<const cell_t*> tree.level[level])[tree_offset(leaves[k] * FAN + j, tree.stride)] >= least:
                    cells[below] = leaves[k] * FAN + j
                    prefetch_below(tree, level, cells[below])
                    below += 1
        count = below
        memcpy(leaves, &cells[0], count * sizeof(int32_t))
    return count


cdef int tree_gather(const Tree* tree, int32_t* at, int32_t least, int wanted, int32_t* leaves) noexcept nogil:
    """Leaves of ``least`` or more below the next matching cells of the third level, ``wanted`` cells at most.

    Writes rising positions to ``leaves`` and returns their count. ``at`` is the position to begin at, 0 at first; it
    becomes the one to continue at, the number of leaves at the end. Goes level by level, so that many distant parts
    of a large tree are fetched at the same time.
    """
    if tree.narrow:
        return gather_cells(tree, at, narrowed(least), wanted, leaves)
    return gather_cells(tree, at, least, wanted, leaves)
