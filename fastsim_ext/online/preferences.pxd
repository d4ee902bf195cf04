# Scores of preferences: node affinity, taints, spread, affinity between pods, images.
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.online.topology_spread cimport SpreadTable
from fastsim_ext.state.node_table cimport NodeTable

cdef enum:  # parts, in the order of ``fastsim.engine.online.plan.PREFERENCE_KERNELS``
    NODE_AFFINITY, TAINT_TOLERATION, POD_SPREAD, POD_AFFINITY, IMAGE_LOCALITY, PARTS

cdef struct SetPreference:       # about the pods of a set in domains of nodes
    int32_t pods, weight         # number of the set; points for each of its pods, or the largest skew
    int64_t first                # where its row of ``rows`` begins
    int32_t domains              # number of domains; 0 = each node is one

cdef struct ClassPreferences:    # of one class: places of rows with a number a node, or -1; ranges of ``wanted``
    int64_t affinity, taints, images
    int32_t first_spread, spread, first_near, near

cdef class PreferenceTable:
    # not saved: preferences are passed again, and running pods are counted again
    cdef NodeTable nodes
    cdef SpreadTable sets                # pods by set and node
    cdef int64_t[PARTS] weight           # of each part in the plan
    cdef ClassPreferences* of_class
    cdef SetPreference* wanted
    cdef int32_t* rows                   # rows of one number a node: points, or domains as in ``PreferenceTable.add``
    cdef int64_t* count__d               # scratch: pods by domain, by feasible node
    cdef double* sum__f                  # scratch: sums by feasible node
    cdef int64_t n_rows, n_wanted
    cdef int32_t n_classes
    cdef int take(self, int32_t first, wanted) except -1
    cdef bint has(self, int cls) noexcept nogil
    cdef void hold(self, int n, int cls, int sign) noexcept nogil
    cdef void add_totals(self, int cls, int count, const int32_t* feasible__f, int64_t* raw__f,
                         int64_t* total__f) noexcept nogil
    cdef void score(self, int part, int cls, int count, const int32_t* feasible__f, int64_t* raw__f) noexcept nogil
    cdef void score_spread(self, const ClassPreferences* of, int count, const int32_t* feasible__f,
                           int64_t* raw__f) noexcept nogil
    cdef void score_near(self, const ClassPreferences* of, int count, const int32_t* feasible__f,
                         int64_t* raw__f) noexcept nogil
    cdef void tally(self, const SetPreference* wanted) noexcept nogil
    cdef int32_t seen_domains(self, const SetPreference* wanted, int count, const int32_t* feasible__f) noexcept nogil
