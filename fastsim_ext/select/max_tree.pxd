# Trees of maxima over one number for each node: the largest, and the first position that has it.
from libc.stdint cimport int8_t, int32_t, int64_t

cdef enum:
    BITS = 2
    FAN = 4              # children of one cell, 1 << BITS
    DEPTH = 16
    GATHER = 16          # cells of the third level that are expanded at a time
    GATHERED = 256       # leaves below them, GATHER << 2 * BITS
    ROW = 32             # trees written together; more than compilers unroll
    MOST_STALE = 256     # leaves written before their maxima are updated

cdef struct MaxForest:       # trees of equal size; equal cells of all trees are adjacent
    char* cells          # all levels, leaves first; rows of ``n_trees`` cells
    void* memory         # the allocation that holds them
    bint narrow          # whether a cell is one byte (numbers from -127 to 126) or four
    int depth            # levels; the last one has at most FAN cells a tree
    int64_t[DEPTH] start  # first cell of each level
    int32_t count, n_trees  # leaves of a tree; trees
    int32_t* stale       # blocks of FAN leaves whose maxima are out of date
    int n_stale

cdef struct Tree:        # one tree of a forest
    (char*)[DEPTH] level        # its first cell of each level
    int64_t stride       # from one cell to the next
    bint narrow
    int depth
    int32_t count

cdef inline int64_t tree_offset(int64_t at, int64_t stride) noexcept nogil:
    """Offset of cell ``at`` from the first one of its level."""
    return at * stride

cdef inline int32_t tree_leaf(const Tree* tree, int64_t at) noexcept nogil:
    """The number of a leaf."""
    if tree.narrow:
        return (<const int8_t*> tree.level[0])[at * tree.stride]
    return (<const int32_t*> tree.level[0])[at * tree.stride]

cdef int tree_alloc(MaxForest* forest, int32_t count, int32_t n_trees, int depth, bint narrow) except -1 nogil
cdef void tree_free(MaxForest* forest) noexcept nogil
cdef Tree tree_of(const MaxForest* forest, int32_t which) noexcept nogil
cdef void tree_prefetch(const MaxForest* forest, int32_t at, bint soon) noexcept nogil
cdef void tree_clear(Tree* tree) noexcept nogil
cdef void tree_duplicate(const Tree* tree, Tree* to) noexcept nogil
cdef void tree_write(Tree* tree, int32_t at, int32_t value) noexcept nogil
cdef void tree_rebuild(Tree* tree) noexcept nogil
cdef void tree_put(Tree* tree, int32_t at, int32_t value) noexcept nogil
cdef void tree_put_row(const MaxForest* forest, int32_t at, const int32_t* values) noexcept nogil
cdef int32_t tree_first(const Tree* tree, int32_t* top) noexcept nogil
cdef int32_t tree_next(const Tree* tree, int base, int32_t at, int32_t least) noexcept nogil
cdef int tree_gather(const Tree* tree, int32_t* at, int32_t least, int wanted, int32_t* leaves) noexcept nogil
cdef bint tree_sound(const Tree* tree) noexcept nogil
