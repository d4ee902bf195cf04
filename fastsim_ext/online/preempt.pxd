# Preemption: the pods of lower priority to stop.
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.online.node_constraints cimport ConstraintTable, NodeView
from fastsim_ext.state.pod_membership cimport PodMembership
from fastsim_ext.state.pod_table cimport WorkTable

cdef struct Cost:        # of making room on one node; compared in this order, less is better
    int64_t broken       # victims that break a budget
    int64_t highest, total               # highest priority of the victims; sum of priorities, each raised above 0
    double first         # when the first victim of that priority started; more is better

cdef struct Failure:     # the last time that nothing helped a class
    int64_t moves        # of the roster at that time
    int32_t priority     # of the pod; a less important one fails as well

cdef struct Budget:      # a disruption budget
    int32_t running, least, left         # pods that run and that are to run; scratch: pods that may still stop

cdef struct ClassBudgets:    # of one class: a range of ``listed``
    int32_t first, count

cdef class PreemptionPlan:
    # not saved: budgets are passed again, running pods are counted again, what is found is found again
    cdef ConstraintTable constraints
    cdef WorkTable work
    cdef PodMembership membership
    cdef int32_t* lower  # scratch: pods of less priority on one node
    cdef int32_t* spare  # scratch
    cdef int32_t* victims                # of the best node so far, in the order in which they would have come back
    cdef Failure* failures               # by class
    cdef ClassBudgets* budgets_of        # by class
    cdef Budget* budgets
    cdef int32_t* listed                 # numbers of budgets
    cdef int32_t n_lower, n_victims, room, class_room, budget_classes, n_budgets, n_listed
    cdef int node        # the best one, or -1
    cdef int find(self, int32_t slot) except -1 nogil
    cdef int record_failure(self, int cls, int32_t priority) except -1 nogil
    cdef int list_lower(self, int n, int32_t priority) except -1 nogil
    cdef int widen(self) except -1 nogil
    cdef void shift(self, NodeView* view, int32_t slot, int cls, int sign) noexcept nogil
    cdef void count(self, int cls, int sign) noexcept nogil
    cdef int32_t broken_first(self) noexcept nogil
    cdef int32_t let_return(self, NodeView* view, int cls, int32_t first) noexcept nogil
    cdef int total_cost(self, Cost* cost) noexcept nogil
    cdef bint returns_before(self, int32_t a, int32_t b) noexcept nogil
