# The online engine with a listener that hears of every decision on some pods.
from libc.stdint cimport int64_t, uint8_t
from fastsim_ext.online.loop cimport OnlineLoop

cdef class DecisionTrace(OnlineLoop):
    cdef const uint8_t[::1] watched      # by arrival number; pods beyond its end are not watched
    cdef object listener
    cdef bint sees(self, int64_t seq) noexcept nogil
