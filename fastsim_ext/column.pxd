# What every node is worth to one pod class, kept for many classes and corrected node by node.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from fastsim_ext.grouped cimport View
from fastsim_ext.memo cimport Memo
from fastsim_ext.nodes cimport NodeTable
from fastsim_ext.tree cimport Tree
from fastsim_ext.types cimport Pod

cdef enum:
    TERMS = 8            # most terms of a plan
    UNFIT = -1073741824  # plus a Reason: the node cannot host the class
    WORST = -536870912   # every total is above this, every UNFIT below

cdef struct Column:      # what the loop over the columns of a node reads: one cache line
    int64_t cpu, mem     # of the class: milli-CPU, MiB
    uint64_t models
    int32_t* worth       # by node, WIDE apart: totals, or UNFIT plus a Reason
    int32_t* cells       # the leaves of its tree, NULL: not in use
    int32_t lane, after  # in the memo; the next column of its family, or -1

cdef struct Detail:      # the rest
    Pod pod              # what it is valued for
    int64_t most_cpu     # of a bound: no pod from pod.cpu to here is worth more; -1: exact
    int32_t owner, family               # whoever asked for it
    Tree total
    Tree[TERMS] high, low               # by term: points, and minus points, where totals are stretched
    int64_t[TERMS] most, least          # the extremes that totals were stretched with

cdef struct Family:      # columns that ask for the same devices
    int32_t num, milli, first    # first: its first column, or -1

cdef class ColumnTable:
    cdef NodeTable nodes
    cdef Memo memo
    cdef const int32_t[::1] kernel, normalise, dim, norm, kind
    cdef const int64_t[::1] weight
    cdef int64_t generation      # of the memo's states
    cdef int32_t[::1] state_of   # by node: its state in the memo, or -1
    cdef Column* columns
    cdef Detail* details                # of the columns
    cdef Family* families
    cdef int32_t** worth         # by column // WIDE: n_nodes rows of WIDE
    cdef uint8_t* gone           # by node: whether its columns say that it is not there
    cdef uint64_t* fitted        # by node: families whose devices it could serve, as WORDS of bits
    cdef readonly int n_columns, n_used, n_families, n_terms, limit, dear   # dear: a fragmentation term, or -1
    cdef readonly bint stretched, bounded    # totals depend on extremes over the nodes; have an upper bound over CPU
    cdef int32_t state(self, int n) except -1 nogil
    cdef int revalue(self, int n) except -1 nogil
    cdef int32_t* most_points(self, int term, const Pod* pod) noexcept nogil
    cdef int32_t build(self, const Pod* pod, int64_t most_cpu, int32_t owner) except -2 nogil
    cdef int value(self, int32_t c, int n) except -1 nogil
    cdef int plant(self, int32_t c) except -1 nogil
    cdef void enter(self, int32_t c, int n, int64_t total) noexcept nogil
    cdef int64_t total(self, int32_t c, int n, int32_t* figures, View* view) noexcept nogil
    cdef int64_t points(self, int term, const Detail* detail, int n, View* view) noexcept nogil
    cdef void stretch_again(self, int32_t c) noexcept nogil
    cdef int family_of(self, int num, int milli) noexcept nogil
    cdef void drop(self, int32_t c) noexcept nogil
    cpdef int verify(self) except -1
