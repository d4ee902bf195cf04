"""Trees of maxima over one number for each node: the largest, and the first position that has it.

Every cell is the largest of the FAN below it, at all times: a change climbs until a level stays as
it was. So a search never goes where there is nothing; in large clusters that would cost it more than
all climbing, because most cells are not in the cache. Trees that change together stand in one grove:
what they say of a node lies in one row, written at a stroke. Small numbers take one byte each, so
that of a large cluster more is in the cache and less has to be fetched; every search is spelled once
for both widths. What follows from rows of bytes may come later, see climb.
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
    """A tree that Python can hold, for a list of numbers; ``beside`` trees stand before it in its grove.

    A ``narrow`` one has room for numbers from -127 to 126.
    """

    cdef MaxForest grove
    cdef Tree tree

    def __init__(self, values, int beside=0, bint narrow=False):
        cdef int32_t i
        tree_alloc(&self.grove, len(values), beside + 1, 0, narrow)
        self.tree = tree_of(&self.grove, beside)
        tree_clear(&self.tree)
        for i in range(self.tree.count):
            tree_write(&self.tree, i, values[i])
        tree_rebuild(&self.tree)

    def __dealloc__(self):
        tree_free(&self.grove)

    def repeat(self, MaxTree other):
        """Say what another tree of the same size and width says."""
        if other.tree.count != self.tree.count or other.tree.narrow != self.tree.narrow:
            raise ValueError(f"a tree of {other.tree.count} is no copy for one of {self.tree.count}")
        tree_repeat(&other.tree, &self.tree)

    def put(self, int32_t at, int32_t value):
        """Write the number at a position."""
        if not 0 <= at < self.tree.count:
            raise IndexError(f"no position {at} in a tree of {self.tree.count}")
        tree_put(&self.tree, at, value)

    def put_row(self, int32_t at, values):
        """Write the numbers of all trees of a grove of ROW at a position; its last tree is this one."""
        cdef int32_t[ROW] row
        if not 0 <= at < self.tree.count or len(values) != ROW or self.grove.wide != ROW:
            raise IndexError(f"no row of {len(values)} at {at} in {self.grove.wide} trees of {self.tree.count}")
        for i in range(ROW):
            row[i] = values[i]
        tree_put_row(&self.grove, at, &row[0])

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
        """Whether every cell is the largest of those below it."""
        return bool(tree_sound(&self.tree))


cdef inline int32_t padded(int32_t count) noexcept nogil:
    return max(1, (count + FAN - 1) // FAN) * FAN


cdef inline cell_t higher(cell_t a, cell_t b) noexcept nogil:
    return a if a > b else b


cdef inline cell_t highest(const cell_t* cells, int64_t step) noexcept nogil:
    """The largest of FAN numbers."""
    return higher(higher(cells[0], cells[step]), higher(cells[2 * step], cells[3 * step]))


cdef inline int8_t narrowed(int32_t value) noexcept nogil:
    """The number as one byte; what is beyond them all stays so."""
    return <int8_t> min(max(value, INT8_MIN), INT8_MAX)


cdef int tree_alloc(MaxForest* grove, int32_t count, int32_t wide, int depth, bint narrow) except -1 nogil:
    """Room for ``wide`` trees of ``count`` leaves, of which only so many levels unless ``depth`` is 0."""
    cdef int64_t room = 0
    cdef int64_t i
    cdef int32_t level = padded(count)
    if grove.cells != NULL:
        return 0
    grove.count, grove.wide, grove.depth, grove.narrow = count, wide, 0, narrow
    while True:
        grove.start[grove.depth] = room
        grove.depth += 1
        room += <int64_t> level * wide
        if level == FAN or grove.depth == depth:
            break
        level = padded(level // FAN)
    grove.held = malloc(room * (1 if narrow else sizeof(int32_t)) + LINE + LATE * sizeof(int32_t))
    if grove.held == NULL:
        with gil:
            raise MemoryError()
    ahead_pages(grove.held, room * (1 if narrow else sizeof(int32_t)) + LINE)
    grove.cells = <char*> ahead_line(grove.held)
    grove.late = <int32_t*> (grove.cells + room * (1 if narrow else sizeof(int32_t)))
    grove.n_late = 0
    for i in range(room):
        if narrow:
            (<int8_t*> grove.cells)[i] = INT8_MIN
        else:
            (<int32_t*> grove.cells)[i] = INT32_MIN
    return 0


cdef void tree_free(MaxForest* grove) noexcept nogil:
    """Give the memory back."""
    free(grove.held)
    grove.cells, grove.held = NULL, NULL


cdef Tree tree_of(const MaxForest* grove, int32_t which) noexcept nogil:
    """One tree of a grove."""
    cdef Tree tree
    cdef int level
    cdef int64_t size = 1 if grove.narrow else sizeof(int32_t)
    tree.step, tree.depth, tree.count, tree.narrow = grove.wide, grove.depth, grove.count, grove.narrow
    for level in range(DEPTH):
        tree.level[level] = grove.cells + (grove.start[level] + which) * size if level < grove.depth else NULL
    return tree


cdef inline void expect_cells(const MaxForest* grove, int64_t at, int levels, cell_t kind) noexcept nogil:
    cdef const cell_t* cells
    cdef int level, line
    for level in range(min(grove.depth, levels)):
        at >>= BITS
        cells = <const cell_t*> grove.cells + grove.start[level] + tree_place(at, FAN * ROW)
        for line in range(<int> (FAN * ROW * sizeof(cell_t) // LINE)):
            ahead(<const char*> cells + line * LINE)


cdef void tree_expect(const MaxForest* grove, int32_t at, bint soon) noexcept nogil:
    """One leaf of ROW trees, all those of a grove, will change: of many leaves, most are not in the cache.

    What is above it will change as well, but of a narrow grove only if that is asked ``soon``.
    """
    if grove.narrow:
        expect_cells(grove, at, FAR if soon else 1, <int8_t> 0)
    else:
        expect_cells(grove, at, FAR, <int32_t> 0)


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
            (<cell_t*> tree.level[level])[i * tree.step] = lowest


cdef void tree_clear(Tree* tree) noexcept nogil:
    """Make every cell the lowest number there is."""
    if tree.narrow:
        clear_cells(tree, <int8_t> INT8_MIN)
    else:
        clear_cells(tree, <int32_t> INT32_MIN)


cdef void repeat_cells(const Tree* tree, Tree* to, cell_t kind) noexcept nogil:
    cdef int level
    cdef int64_t i
    for level in range(tree.depth):
        for i in range(cells_of(tree, level)):
            (<cell_t*> to.level[level])[tree_place(i, to.step)] = (
                <const cell_t*> tree.level[level])[tree_place(i, tree.step)]


cdef void tree_repeat(const Tree* tree, Tree* to) noexcept nogil:
    """Make a tree say what another one of its size and width says."""
    if tree.narrow:
        repeat_cells(tree, to, <int8_t> 0)
    else:
        repeat_cells(tree, to, <int32_t> 0)


cdef void tree_write(Tree* tree, int32_t at, int32_t value) noexcept nogil:
    """Write one leaf and nothing else, see tree_sum_up."""
    if tree.narrow:
        (<int8_t*> tree.level[0])[tree_place(at, tree.step)] = narrowed(value)
    else:
        (<int32_t*> tree.level[0])[tree_place(at, tree.step)] = value


cdef void sum_cells(Tree* tree, cell_t kind) noexcept nogil:
    cdef int level
    cdef int64_t block
    for level in range(1, tree.depth):
        for block in range(cells_of(tree, level - 1) // FAN):
            (<cell_t*> tree.level[level])[block * tree.step] = highest(
                <cell_t*> tree.level[level - 1] + block * FAN * tree.step, tree.step)


cdef void tree_rebuild(Tree* tree) noexcept nogil:
    """Make every maximum true again after leaves were written directly."""
    if tree.narrow:
        sum_cells(tree, <int8_t> 0)
    else:
        sum_cells(tree, <int32_t> 0)


cdef void put_cell(Tree* tree, int64_t at, cell_t value) noexcept nogil:
    cdef cell_t* cell = <cell_t*> tree.level[0] + tree_place(at, tree.step)
    cdef int level
    cell[0] = value
    for level in range(1, tree.depth):
        at >>= BITS
        value = highest(<cell_t*> tree.level[level - 1] + tree_place(at * FAN, tree.step), tree.step)
        cell = <cell_t*> tree.level[level] + tree_place(at, tree.step)
        if value == cell[0]:
            return
        cell[0] = value


cdef void tree_put(Tree* tree, int32_t at, int32_t value) noexcept nogil:
    """Write one leaf, and what follows from it."""
    if tree.narrow:
        put_cell(tree, at, narrowed(value))
    else:
        put_cell(tree, at, value)


cdef inline bint unequal(const cell_t* a, const cell_t* b) noexcept nogil:
    """Whether two rows of ROW cells differ anywhere; narrow ones by words, which are fewer than cells."""
    cdef int64_t[WORDS] left, right
    cdef int64_t found = 0
    cdef cell_t apart = 0
    cdef int j
    if cell_t is int32_t:
        for j in range(ROW):
            apart |= a[j] ^ b[j]
        found = apart
    else:
        memcpy(&left[0], a, ROW)
        memcpy(&right[0], b, ROW)
        for j in range(WORDS):
            found |= left[j] ^ right[j]
    return found != 0


cdef inline void put_cells(const MaxForest* grove, int64_t at, cell_t* value) noexcept nogil:
    """Write ``value`` to one leaf of ROW trees; it is room for what follows above."""
    cdef cell_t* cells = <cell_t*> grove.cells + tree_place(at, ROW)
    cdef const cell_t* below
    cdef int level, j
    memcpy(cells, value, ROW * sizeof(cell_t))
    for level in range(1, grove.depth):
        at >>= BITS
        below = <const cell_t*> grove.cells + grove.start[level - 1] + tree_place(at * FAN, ROW)
        cells = <cell_t*> grove.cells + grove.start[level] + tree_place(at, ROW)
        for j in range(ROW):
            value[j] = higher(higher(below[j], below[j + ROW]), higher(below[j + 2 * ROW], below[j + 3 * ROW]))
        if not unequal(value, cells):
            return
        memcpy(cells, value, ROW * sizeof(cell_t))


cdef void tree_put_row(const MaxForest* grove, int32_t at, const int32_t* values) noexcept nogil:
    """Write one leaf of ROW trees, all those of a grove, and what follows from them."""
    cdef int32_t[ROW] row
    cdef int8_t[ROW] small
    cdef int j
    if grove.narrow:
        for j in range(ROW):
            small[j] = <int8_t> values[j]
        put_cells(grove, at, &small[0])
    else:
        for j in range(ROW):
            row[j] = values[j]
        put_cells(grove, at, &row[0])


cdef int32_t first_cell(const Tree* tree, cell_t* top) noexcept nogil:
    cdef int level = tree.depth - 1
    cdef int64_t i = 0
    cdef int64_t k
    cdef const cell_t* cells
    top[0] = highest(<const cell_t*> tree.level[level], tree.step)
    while level >= 0:
        cells = <const cell_t*> tree.level[level] + tree_place(i, tree.step)
        k = FAN - 1              # no branch: which of them it is cannot be foreseen
        k = 2 if cells[2 * tree.step] == top[0] else k
        k = 1 if cells[tree.step] == top[0] else k
        k = 0 if cells[0] == top[0] else k
        i = (i + k) << BITS
        level -= 1
    return <int32_t> (i >> BITS)


cdef int32_t tree_first(const Tree* tree, int32_t* top) noexcept nogil:
    """The first position with the largest leaf; how large it is into ``top``."""
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
            if (<cell_t*> tree.level[level])[tree_place(i, tree.step)] != highest(
                    <cell_t*> tree.level[level - 1] + tree_place(i * FAN, tree.step), tree.step):
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
    while i * span < tree.count:    # there may be no memory behind
        cells = <const cell_t*> tree.level[level] + i * tree.step
        k = i % FAN
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
        elif level == base:
            return <int32_t> i if i * span < tree.count else -1
        else:                   # something below this cell
            level -= 1
            span //= FAN
            i *= FAN
    return -1


cdef int32_t tree_next(const Tree* tree, int base, int32_t at, int32_t least) noexcept nogil:
    """The first cell of level ``base`` from ``at`` on that is ``least`` or more, or -1; leaves are level 0."""
    return next_cell(tree, base, at, narrowed(least)) if tree.narrow else next_cell(tree, base, at, least)


cdef inline void expect_below(const Tree* tree, int level, int64_t at) noexcept nogil:
    """The cells below one cell will be looked at."""
    cdef int64_t size = 1 if tree.narrow else sizeof(int32_t)
    cdef int j
    for j in range(FAN if level > 0 else 0):
        ahead(tree.level[level - 1] + tree_place(at * FAN + j, tree.step) * size)


cdef int gather_cells(const Tree* tree, int32_t* at, cell_t least, int wanted, int32_t* found) noexcept nogil:
    cdef int32_t[FOUND] cells
    cdef int32_t i
    cdef int base = min(2, tree.depth - 1)
    cdef int level, j, k, below
    cdef int count = 0
    i = at[0] >> BITS * base
    while count < wanted:
        i = next_cell(tree, base, i, least)
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
            for j in range(FAN):
                if (<const cell_t*> tree.level[level])[tree_place(found[k] * FAN + j, tree.step)] >= least:
                    cells[below] = found[k] * FAN + j
                    expect_below(tree, level, cells[below])
                    below += 1
        count = below
        memcpy(found, &cells[0], count * sizeof(int32_t))
    return count


cdef int tree_gather(const Tree* tree, int32_t* at, int32_t least, int wanted, int32_t* found) noexcept nogil:
    """Leaves of ``least`` or more below the next cells of the third level that have some, at most GATHER.

    Positions, rising, into ``found``; how many is the answer. ``at`` is where to begin, at first 0, then where to go
    on: the number of leaves if that was all. Level by level, so that many far parts of a large tree are on their way
    at the same time.
    """
    if tree.narrow:
        return gather_cells(tree, at, narrowed(least), wanted, found)
    return gather_cells(tree, at, least, wanted, found)
