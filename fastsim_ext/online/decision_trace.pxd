# The online engine with a listener for every decision on watched pods.
from libc.stdint cimport int32_t, int64_t, uint8_t
from fastsim_ext.online.loop cimport OnlineLoop
from fastsim_ext.online.queue_loop cimport QueueLoop

cdef class DecisionTrace(OnlineLoop):
    cdef const uint8_t[::1] watched      # by arrival number; pods beyond its end are not watched
    cdef object listener

cdef class RulesDecisionTrace(QueueLoop):
    cdef const uint8_t[::1] watched      # by arrival number; pods beyond its end are not watched
    cdef object listener
    cdef bint watches_any(self, int32_t slot) noexcept nogil
    cdef int notify_before(self, int32_t slot) except -1
    cdef int notify_after(self, int32_t slot, int reason, object how) except -1
    cdef int feasible(self, int cls) noexcept nogil
    cdef void mask(self, int cls, int count) noexcept nogil
    cdef void unmask(self, int cls, int count) noexcept nogil
