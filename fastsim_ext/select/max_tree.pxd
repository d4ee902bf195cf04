# Trees of maxima over one number for each node, side by side: the largest, and the first position that has it.
from libc.stdint cimport int8_t, int32_t, int64_t

cdef enum:
    BITS = 2
    FAN = 4              # children of one cell, 1 << BITS
    DEPTH = 16
    GATHER = 16          # cells of the third level that are looked below at a time
    FOUND = 256          # leaves below them, GATHER << 2 * BITS
    ROW = 32             # trees that change at a stroke; more than compilers unroll
    LATE = 256           # leaves that may be written before what follows

cdef struct MaxForest:       # trees of equal size; the same cell of every tree lies side by side
    char* cells          # all levels, leaves first; rows of ``wide`` cells
    void* held           # the memory they lie in
    bint narrow          # whether a cell is one byte (numbers from -127 to 126) or four
    int depth            # levels; the last one has at most FAN cells a tree
    int64_t[DEPTH] start  # first cell of each level, and behind them the end
    int32_t count, wide  # leaves of a tree; trees
    int32_t* late        # blocks of FAN leaves that were written, and nothing above them yet
    int n_late

cdef struct Tree:        # one of them
    (char*)[DEPTH] level        # its first cell of each level
    int64_t step         # from one cell to the next
    bint narrow
    int depth
    int32_t count

cdef inline int64_t tree_place(int64_t at, int64_t step) noexcept nogil:
    """Where cell ``at`` of a level is."""
    return at * step

cdef inline int32_t tree_leaf(const Tree* tree, int64_t at) noexcept nogil:
    """What a leaf says."""
    if tree.narrow:
        return (<const int8_t*> tree.level[0])[at * tree.step]
    return (<const int32_t*> tree.level[0])[at * tree.step]

cdef int tree_alloc(MaxForest* grove, int32_t count, int32_t wide, int depth, bint narrow) except -1 nogil
cdef void tree_free(MaxForest* grove) noexcept nogil
cdef Tree tree_of(const MaxForest* grove, int32_t which) noexcept nogil
cdef void tree_expect(const MaxForest* grove, int32_t at, bint soon) noexcept nogil
cdef void tree_clear(Tree* tree) noexcept nogil
cdef void tree_repeat(const Tree* tree, Tree* to) noexcept nogil
cdef void tree_write(Tree* tree, int32_t at, int32_t value) noexcept nogil
cdef void tree_rebuild(Tree* tree) noexcept nogil
cdef void tree_put(Tree* tree, int32_t at, int32_t value) noexcept nogil
cdef void tree_put_row(const MaxForest* grove, int32_t at, const int32_t* values) noexcept nogil
cdef int32_t tree_first(const Tree* tree, int32_t* top) noexcept nogil
cdef int32_t tree_next(const Tree* tree, int base, int32_t at, int32_t least) noexcept nogil
cdef int tree_gather(const Tree* tree, int32_t* at, int32_t least, int wanted, int32_t* found) noexcept nogil
cdef bint tree_sound(const Tree* tree) noexcept nogil
