# What every node is worth to one pod class, kept for many classes and corrected node by node.
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.scores.frag_grouped cimport View
from fastsim_ext.select.class_demands cimport TERMS, Needs
from fastsim_ext.select.max_tree cimport MaxForest, Tree
from fastsim_ext.select.state_memo cimport Key, Memo
from fastsim_ext.select.value_counts cimport ValueCounts
from fastsim_ext.state.node_table cimport NodeTable
from fastsim_ext.types cimport Pod
cdef struct Ends:
    int32_t least, most         # the smallest and the largest raw points of a term
cdef struct ScoreColumn:
    Pod pod              # what it is valued for
    int64_t most_cpu     # of a bound: no pod from pod.cpu to here is worth more; -1: exact
    bint used
    int32_t owner, family, lane, after  # whoever asked for it; ...; in the memo; the next of its family, or -1
    (int32_t*)[TERMS] points    # where totals are stretched: raw points by node, placed as its tree is
    ValueCounts* tallies              # how often each occurs, by term
    Ends[TERMS] ends            # those that totals were stretched with
cdef struct DeviceFamily:      # columns that ask for the same devices, and the first of them, or -1
    int32_t num, milli, first
cdef class ScoreColumns:
    cdef NodeTable nodes
    cdef Memo memo
    cdef const int32_t[::1] kernel, normalise, dim, norm, figure     # figure: of a term in the memo, or -1
    cdef const int64_t[::1] weight
    cdef int64_t generation, gaps        # of the memo's states; numbers without a column that are left alone
    cdef int32_t[::1] state_of   # by node: its state in the memo, or -1
    cdef MaxForest* groves           # by column // ROW: trees of totals, or of UNFIT plus a Reason
    cdef MaxForest* points           # the same and by term: raw points
    cdef Tree* trees             # of totals; tree() makes one right first
    cdef ScoreColumn* columns
    cdef DeviceFamily* families
    cdef Needs* needs
    cdef int32_t* place          # by term and column: where its figure is in a row of the memo
    cdef int32_t* verdict        # of one node, by column: see needs_judge, then totals
    cdef int32_t* total          # weighted sums of raw points
    cdef int32_t* raw            # raw points, also by term
    cdef int32_t unfit, worst    # unfit plus a Reason: the node cannot host the class; every total is above worst
    cdef readonly int n_columns, n_used, n_families, n_terms, limit, dear    # dear: a fragmentation term, or -1
    cdef readonly bint stretched, bounded    # totals depend on extremes over the nodes; have an upper bound over CPU
    cdef bint kept, straight, narrow     # the memo keeps a term, each column's at its own number; totals take a byte
    cdef int32_t state(self, int n) except -1 nogil
    cdef int32_t number(self, int n, const Key* key) except -1 nogil
    cdef void expect(self, int n) noexcept nogil
    cdef int changed(self, const int32_t* nodes, int count) except -1 nogil
    cdef int revalue(self, int n, int first, int last) except -1 nogil
    cdef int value(self, int term, int n, int first, int last, View* view) except -1 nogil
    cdef void fill(self, int term, int n, char* row, View* view) noexcept nogil
    cdef void add_up(self, int n, int first, int last) noexcept nogil
    cdef int32_t worked_out(self, int term, int c, int n, View* view) noexcept nogil
    cdef int32_t first(self, int32_t c, int32_t* top) noexcept nogil
    cdef const Tree* tree(self, int32_t c) noexcept nogil
    cdef int32_t most_points(self, const Pod* pod) noexcept nogil
    cdef int plant(self, int32_t c) except -1 nogil
    cdef int32_t build(self, const Pod* pod, int64_t most_cpu, int32_t owner) except -2 nogil
    cdef int family_of(self, int num, int milli) noexcept nogil
    cdef void drop(self, int32_t c) noexcept nogil
    cdef int pack(self) except -1 nogil
    cpdef int verify(self) except -1
