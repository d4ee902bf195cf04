# Rules about pods in topology domains: how unevenly those of a set are spread, whether a pod is apart or beside them.
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.state.node_table cimport NodeTable
from fastsim_ext.state.pod_membership cimport PodMembership

cdef enum:
    MAX_SPREAD = 16      # rules of one class

cdef enum:  # kinds of rules, in the order of ``hardware.node_constraints.NEAR_RULES`` after the first
    EVEN, BESIDE, APART, KEPT_AWAY, PORTS  # the last three mean the same: the pod's own rule, that of others, ports

cdef struct SpreadRule:
    int32_t kind
    int32_t pods, own    # number of the set of pods that are counted; 1 if a pod of the class is one of them
    int32_t max_skew, min_domains, domains           # the last: number of domains
    int64_t first        # where its row of ``domain`` begins

cdef struct Skew:         # of a broken rule: pods more than in the domain with the fewest, and the most allowed
    int32_t found, most  # or the kind of the rule, and 0

cdef struct ClassSpread:     # rules and sets of one class: ranges of the lists
    int32_t first_rule, rules, first_set, sets

cdef class SpreadTable:
    # not saved: rules are passed again, and running pods are counted again
    cdef NodeTable nodes
    cdef PodMembership membership
    cdef ClassSpread* of_class
    cdef SpreadRule* rules
    cdef int32_t* sets                   # numbers of sets
    cdef int32_t* domain                 # rows of one domain a node; -1 = the node is not counted
    cdef int32_t* pods__sn               # pods by set and node
    cdef int32_t* count__kd              # scratch: pods by rule and domain of the class ``tallied``, -1 = no node
    cdef int32_t least[MAX_SPREAD]       # scratch: the fewest pods of a domain, by rule; of BESIDE all in domains
    cdef int32_t n_classes, n_rules, n_sets, counted_sets, tallied
    cdef int64_t n_domain, tallied_moves
    cdef int count_set(self, int32_t which) except -1
    cdef bint counts(self, int cls) noexcept nogil
    cdef void hold(self, int n, int cls, int sign) noexcept nogil
    cdef void shift(self, int32_t* moved, int cls, int viewer, int sign) noexcept nogil
    cdef int refuses(self, int n, int cls, const int32_t* moved, Skew* skew) noexcept nogil
    cdef bint is_first(self, int n, int cls, const int32_t* moved) noexcept nogil
    cdef bint restricts(self, int cls) noexcept nogil
    cdef bint outside(self, int n, int cls) noexcept nogil
    cdef void tally(self, int cls) noexcept nogil
    cdef bint has(self, int cls, int32_t which) noexcept nogil
