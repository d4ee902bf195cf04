# What every node is worth to one pod class, kept for many classes and corrected node by node.
from libc.stdint cimport int32_t, int64_t, uint64_t
from fastsim_ext.grouped cimport View
from fastsim_ext.memo cimport Memo
from fastsim_ext.nodes cimport NodeTable
from fastsim_ext.tree cimport Tree
from fastsim_ext.types cimport Node, Pod

cdef enum:
    TERMS = 8            # most terms of a plan
    UNFIT = -1073741824  # plus a Reason: the node cannot host the class
    WORST = -536870912   # every total is above this, every UNFIT below

cdef struct Column:
    Pod pod              # what it is valued for
    int64_t most_cpu     # of a bound: no pod from pod.cpu to here is worth more; -1: exact
    int32_t lane         # in the memo; -1 of a bound
    int32_t after        # the next column of its family, or -1
    int32_t owner        # whoever asked for it
    int family
    Tree total
    Tree[TERMS] high, low               # by term: points, and minus points, where totals are stretched
    int64_t[TERMS] most, least          # the extremes that totals were stretched with

cdef struct Family:      # columns that ask for the same devices
    int num, milli
    int32_t first        # its first column, or -1

cdef class ColumnTable:
    cdef NodeTable nodes
    cdef Memo memo
    cdef const int32_t[::1] kernel, normalise, dim, norm, kind
    cdef const int64_t[::1] weight
    cdef int32_t[::1] state_of          # by node: its state in the memo, or -1
    cdef int64_t generation             # of the memo's states
    cdef Column* columns
    cdef Family* families
    cdef readonly int n_columns, n_used, n_families, n_terms, limit
    cdef readonly bint stretched        # whether totals depend on the extremes over the nodes
    cdef readonly bint bounded          # whether totals have an upper bound over pods of more CPU
    cdef int32_t state(self, int n) except -1 nogil
    cdef int revalue(self, int n) except -1 nogil
    cdef int32_t build(self, const Pod* pod, int64_t most_cpu, int32_t owner) except -2 nogil
    cdef int value(self, Column* column, int n) except -1 nogil
    cdef int stage(self, const Node* node, int n, const Pod* pod, bint fits) noexcept nogil
    cdef void write(self, Column* column, int n, int stage, int32_t* figures, View* view) noexcept nogil
    cdef int64_t points(self, int term, const Column* column, View* view) noexcept nogil
    cdef void note(self, Column* column, int term, int n, int64_t raw, bint fits) noexcept nogil
    cdef int64_t stretched_total(self, const Column* column, int n) noexcept nogil
    cdef void stretch_again(self, Column* column) noexcept nogil
    cdef int family_of(self, int num, int milli) noexcept nogil
    cdef void drop(self, int32_t c) noexcept nogil
    cpdef int verify(self) except -1
