# Totals of all nodes for one pod class, stored as columns for many classes and updated node by node.
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.scores.frag_grouped cimport View
from fastsim_ext.select.class_demands cimport TERMS, ClassDemands
from fastsim_ext.select.max_tree cimport MaxForest, Tree
from fastsim_ext.select.state_memo cimport Key, Memo
from fastsim_ext.select.value_counts cimport ValueCounts
from fastsim_ext.state.node_table cimport NodeTable
from fastsim_ext.types cimport Pod
cdef struct Extremes:
    int32_t least, most         # the smallest and the largest raw points of a term
cdef struct ScoreColumn:
    Pod pod              # the request
    int64_t most_cpu     # of a bound: it holds for CPU from pod.cpu to here; -1: exact
    bint used
    int32_t owner, family, lane, next_in_family  # pod class or bound; ...; in the memo; or -1
    (int32_t*)[TERMS] points    # if normalised: raw points by node, with the stride of the tree
    ValueCounts* counts               # how often each occurs, by term
    Extremes[TERMS] extremes    # those that totals were normalised with
cdef struct DeviceFamily:      # columns that request the same devices; the first one, or -1
    int32_t num, milli, first
cdef class ScoreColumns:
    cdef NodeTable nodes
    cdef Memo memo
    cdef const int32_t[::1] kernel, normalise, dim, norm, figure     # figure: of a term in the memo, or -1
    cdef const int64_t[::1] weight
    cdef int64_t generation, most_gaps   # of the memo's states; unused columns that pack() tolerates
    cdef int32_t[::1] state_of   # by node: its state in the memo, or -1
    cdef MaxForest* forests          # by column // ROW: trees of totals, or of UNFIT plus a Reason
    cdef MaxForest* points           # the same and by term: raw points
    cdef Tree* trees             # of totals; tree() updates the maxima first
    cdef ScoreColumn* columns
    cdef DeviceFamily* families
    cdef ClassDemands* demands
    cdef int32_t* memo_at        # by term and column: place of its figure in a row of the memo
    cdef int32_t* verdict        # of one node, by column: see demands_check; then totals
    cdef int32_t* total          # weighted sums of raw points
    cdef int32_t* raw            # raw points, also by term
    cdef int32_t unfit, worst    # unfit plus a Reason: the node cannot host the class; every total is above worst
    cdef readonly int n_columns, n_used, n_families, n_terms, limit, frag_term  # frag_term: or -1
    cdef readonly bint normalised, bounded   # totals depend on extremes over the nodes; have an upper bound over CPU
    cdef bint memoised, aligned, narrow  # the memo stores a term; lanes equal columns; totals are bytes
    cdef int32_t state(self, int n) except -1 nogil
    cdef int32_t number(self, int n, const Key* key) except -1 nogil
    cdef void prefetch(self, int n) noexcept nogil
    cdef int changed(self, const int32_t* nodes, int count) except -1 nogil
    cdef int revalue(self, int n, int first, int last) except -1 nogil
    cdef int value(self, int term, int n, int first, int last, View* view) except -1 nogil
    cdef void fill_missing(self, int term, int n, char* row, View* view) noexcept nogil
    cdef void add_up(self, int n, int first, int last) noexcept nogil
    cdef int32_t raw_points(self, int term, int c, int n, View* view) noexcept nogil
    cdef int32_t first(self, int32_t c, int32_t* top) noexcept nogil
    cdef const Tree* tree(self, int32_t c) noexcept nogil
    cdef int32_t bound_column(self, const Pod* pod) noexcept nogil
    cdef int allocate(self, int32_t c) except -1 nogil
    cdef int32_t build(self, const Pod* pod, int64_t most_cpu, int32_t owner) except -2 nogil
    cdef int family_of(self, int num, int milli) noexcept nogil
    cdef void drop(self, int32_t c) noexcept nogil
    cdef int pack(self) except -1 nogil
    cpdef int verify(self) except -1
