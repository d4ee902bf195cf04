# The online engine with a listener for every decision on watched pods.
from libc.stdint cimport int32_t, int64_t, uint8_t
from fastsim_ext.online.loop cimport OnlineLoop
from fastsim_ext.online.node_constraints cimport NodeView
from fastsim_ext.online.queue_loop cimport QueueLoop
from fastsim_ext.types cimport Pod

cdef struct Left:            # what a node has left for a pod
    int model, gpus, slots               # model id; devices with room for the pod's share of one; pod slots
    int64_t cpu, mem                     # milli-CPU, MiB

cdef class Watch:
    cdef const uint8_t[::1] watched      # by arrival number; pods beyond its end are not watched
    cdef object listener
    cdef bint marks(self, OnlineLoop run, int32_t slot) noexcept nogil
    cdef int before(self, OnlineLoop run, int32_t slot) except -1 nogil
    cdef int after(self, OnlineLoop run, int32_t slot, int how) except -1 nogil
    cdef int never(self, OnlineLoop run, int32_t slot, int reason) except -1 nogil
    cdef object moved(self, OnlineLoop run, int32_t slot)

cdef class DecisionTrace(OnlineLoop):
    cdef Watch watch

cdef class RulesDecisionTrace(QueueLoop):
    cdef Watch watch
    cdef bint watches_any(self, int32_t slot) noexcept nogil
    cdef int notify_before(self, int32_t slot) except -1 nogil
    cdef int notify_after(self, int32_t slot, int reason, int how) except -1 nogil
    cdef int write_failed(self, const NodeView* view, int cls, const Pod* pod, int64_t* found, int64_t* needed)
    cdef Left left_in(self, const NodeView* view, const Pod* pod) noexcept nogil
    cdef int feasible(self, int cls) noexcept nogil
    cdef void mask(self, int cls, int count, bint masked) noexcept nogil
