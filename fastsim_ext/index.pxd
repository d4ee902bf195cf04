# The fast spelling of a decision: scores kept for frequent pod classes and corrected node by node.
from libc.stdint cimport int32_t, int64_t, uint64_t
from fastsim_ext.grouped cimport View
from fastsim_ext.memo cimport Memo
from fastsim_ext.select cimport Choice, Selector
from fastsim_ext.tree cimport Tree
from fastsim_ext.types cimport Node, Pod

cdef enum:
    TERMS = 8            # most terms of a plan that is indexed
    UNFIT = -1073741824  # plus a Reason: a node that cannot host the class

cdef struct Column:      # one pod class and what every node is worth to it
    int32_t cls, lane    # class, and its lane in the memo
    int family           # position of its device request
    int64_t seen         # changes of nodes up to its last decision
    Tree total
    Tree[TERMS] high, low               # by term: points, and minus points of terms that are stretched
    int64_t[TERMS] most, least          # the bounds its totals were stretched with

cdef struct Family:      # classes that ask for the same devices
    int num, milli
    int32_t first        # its first column, or -1

cdef class Indexed(Selector):
    cdef Column* columns
    cdef int32_t* after                 # by column: the next one of its family, or -1
    cdef Family* families
    cdef int32_t* column_of             # by class: its column, or -1
    cdef int32_t* lane_of               # by class: its lane in the memo, -1 = not asked for, -2 = none
    cdef int64_t* seen                  # by class: changes up to its last decision, or -1
    cdef int n_columns, n_used, n_families, class_room, n_terms, limit
    cdef bint stretched                 # whether totals depend on the extremes over the nodes
    cdef Memo memo
    cdef const int32_t[::1] kind        # by node: equal nodes have equal numbers
    cdef int32_t[::1] state_of          # by node: its state in the memo, or -1
    cdef int64_t generation             # of the memo's states
    cdef readonly int64_t changes, built, scans
    cdef int settle(self) except -1 nogil
    cdef int revalue(self, int n) except -1 nogil
    cdef int stage(self, const Node* node, int n, const Pod* pod, bint fits) noexcept nogil
    cdef int32_t lane_for(self, int cls) except -2 nogil
    cdef int32_t state(self, int n) except -1 nogil
    cdef int64_t fresh_points(self, int term, int n, const Pod* pod) noexcept nogil
    cdef int64_t points(self, int term, const Node* node, const Pod* pod, View* view) noexcept nogil
    cdef void write(self, Column* column, int n, const Node* node, bint fits, int32_t* figures,
                    View* view) noexcept nogil
    cdef void note(self, Column* column, int term, int n, int64_t raw, bint fits) noexcept nogil
    cdef int64_t stretched_total(self, const Column* column, int n) noexcept nogil
    cdef void stretch_again(self, Column* column) noexcept nogil
    cdef int32_t column_for(self, int cls) except -2 nogil
    cdef int know(self, int classes) except -1 nogil
    cdef int32_t build(self, int cls) except -2 nogil
    cdef int value(self, Column* column, int n) except -1 nogil
    cdef void join_family(self, int32_t c) noexcept nogil
    cdef void fell(self, int32_t c) noexcept nogil
    cdef void drop_stale(self) noexcept nogil
