# A tree of maxima over one number for each node: the largest, and the first position that has it.
from libc.stdint cimport int32_t, int64_t

cdef enum:
    FAN = 16             # children of one cell: one cache line of numbers
    DEPTH = 8

cdef struct Tree:
    int32_t* cells       # all levels, leaves first, each padded to a multiple of FAN
    int depth            # levels; the last one has at most FAN cells
    int64_t[DEPTH] start  # first cell of each level
    int32_t count        # leaves

cdef int tree_plant(Tree* tree, int32_t count) except -1 nogil
cdef void tree_fell(Tree* tree) noexcept nogil
cdef void tree_sum_up(Tree* tree) noexcept nogil
cdef void tree_put(Tree* tree, int32_t at, int32_t old, int32_t value) noexcept nogil
cdef int32_t tree_top(const Tree* tree) noexcept nogil
cdef int32_t tree_first(const Tree* tree, int32_t value) noexcept nogil
cdef int32_t tree_next(const Tree* tree, int32_t at, int32_t least) noexcept nogil
