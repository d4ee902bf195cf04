# Which running pods a more important one may stop.
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.online.node_constraints cimport ConstraintTable, NodeView
from fastsim_ext.state.pod_membership cimport PodMembership
from fastsim_ext.state.pod_table cimport WorkTable

cdef struct Cost:        # of making room on one node; compared in this order, less is better
    int64_t highest, total, count        # highest and summed priority of the victims, their number
    double first         # when the first victim of that priority started; more is better

cdef struct Failure:     # the last time that nothing helped a class
    int64_t moves        # of the roster at that time
    int32_t priority     # of the pod; a less important one fails as well

cdef class PreemptionPlan:
    # not saved: what is found is found again
    cdef ConstraintTable demand
    cdef WorkTable work
    cdef PodMembership roster
    cdef int32_t* lower  # scratch: pods of less priority on one node
    cdef int32_t* victims                # of the best node so far, in the order in which they would have come back
    cdef Failure* failures               # by class
    cdef int32_t n_lower, n_victims, room, class_room
    cdef int node        # the best one, or -1
    cdef int look(self, int32_t slot) except -1 nogil
    cdef int remember(self, int cls, int32_t priority) except -1 nogil
    cdef int gather(self, int n, int32_t priority) except -1 nogil
    cdef int widen(self) except -1 nogil
    cdef void move(self, NodeView* look, int32_t slot, int cls, int sign) noexcept nogil
    cdef void spare(self, NodeView* look, int cls) noexcept nogil
    cdef int keep(self, Cost* cost) noexcept nogil
    cdef bint sooner(self, int32_t a, int32_t b) noexcept nogil
