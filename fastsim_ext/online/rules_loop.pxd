# The online engine with gangs, quotas, preemption and nodes that fail.
from libc.stdint cimport int32_t, int64_t, uint8_t
from fastsim_ext.online.loop cimport OnlineLoop
from fastsim_ext.online.node_constraints cimport ConstraintTable
from fastsim_ext.online.preempt cimport PreemptionPlan
from fastsim_ext.select.scan cimport Choice
from fastsim_ext.state.pod_membership cimport PodMembership
from fastsim_ext.state.tenant_usage cimport TenantUsage

cdef class RulesLoop(OnlineLoop):
    # saved
    cdef bint endless    # node changes go on and are fed in batches
    cdef int64_t passed  # node changes before those at hand
    cdef int64_t planned, failed         # planned changes to come; nodes that have failed
    # not saved: tables of their own, options, columns that belong to the caller, what is at hand
    cdef readonly ConstraintTable constraints
    cdef readonly TenantUsage tenants
    cdef readonly PodMembership membership
    cdef readonly PreemptionPlan preemption
    cdef bint preempts, requeues, limited        # limited: there are quotas
    cdef double checkpoint, restart              # seconds; checkpoint NaN = none, 0 = always
    cdef int32_t failing                         # the pod because of which an entry did not start
    cdef int32_t[::1] away__n                    # reasons why each node is away
    cdef uint8_t[::1] spared__n                  # nodes whose present failure is left out
    cdef const uint8_t[::1] change_random
    cdef const int32_t[::1] a_tenant, a_group, a_gang
    cdef const uint8_t[::1] a_preemptible, a_preempts, a_after_gang
    cdef const int64_t[::1] a_job
    cdef const double[::1] a_est
    cdef const double[::1] a_value               # of columns for the queue, MOST_TERMS each
    cdef int enter(self, int32_t slot, int64_t i) except -1 nogil
    cdef int keep(self, int32_t slot, int64_t i) except -1 nogil
    cdef void hold(self, int32_t slot) noexcept nogil
    cdef void let_go(self, int32_t slot) noexcept nogil
    cdef int take_in(self, int32_t slot, bint tries) except -1 nogil
    cdef int settle_followers(self, int32_t slot, int stage) except -1 nogil
    cdef int drop_entry(self, int32_t slot, int reason, int32_t because) except -1 nogil
    cdef int never_starts(self, int32_t slot) except -1 nogil
    cdef int drop_impossible(self, int32_t slot, int reason) except -1 nogil
    cdef int enqueue(self, int32_t slot) except -1 nogil
    cdef int insert(self, int32_t slot) except -1 nogil
    cdef int dequeue(self, int32_t slot) except -1 nogil
    cdef int32_t over_quota(self, int32_t slot) noexcept nogil
    cdef int try_start(self, int32_t slot) except -1 nogil
    cdef int try_start_gang(self, int32_t slot) except -1 nogil
    cdef int make_room(self, int32_t slot, Choice* choice) except -1 nogil
    cdef int begin_work(self, int32_t slot, const Choice* choice) except -1 nogil
    cdef int interrupt(self, int32_t slot, int reason) except -1 nogil
    cdef int lose(self, int32_t slot, int reason) except -1 nogil
    cdef void take_off(self, int32_t slot, int reason) noexcept nogil
    cdef int fail_node(self, int n) except -1 nogil
    cdef int queued(self, int32_t slot) except -1 nogil
    cdef int schedule_end(self, int32_t slot) except -1 nogil
    cdef void deallocate(self, int32_t slot) noexcept nogil
