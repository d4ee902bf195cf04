# The rules of the waiting line: the order in which entries are tried, and which may overtake.
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.online.backfill cimport Backfill
from fastsim_ext.online.free_forecast cimport Reservation
from fastsim_ext.online.ordered_queue cimport OrderedQueue
from fastsim_ext.online.rules_loop cimport RulesLoop

cdef class QueueLoop(RulesLoop):
    # not saved: reservations are made again, and walks only have to differ
    cdef Backfill backfill
    cdef OrderedQueue ordered_queue                   # of orders; its keys are made again
    cdef bint ordered
    cdef int64_t walks                   # so far
    cdef bint skips(self) noexcept nogil
    cdef bint lasting(self) noexcept nogil
    cdef bint barred(self, int32_t slot) noexcept nogil
    cdef void bar(self, int32_t over) noexcept nogil
    cdef int hold_back(self, int32_t slot, int32_t over) except -1 nogil
    cdef bint by_reservation(self, int32_t slot) except -1 nogil
    cdef int32_t front(self, int32_t until) noexcept nogil
    cdef bint joined_later(self, int32_t slot, int64_t upto) noexcept nogil
    cdef bint in_order(self) except -1 nogil
    cdef int32_t following(self, int32_t slot, int64_t upto) noexcept nogil
    cdef int32_t oldest(self) noexcept nogil
    cdef bint by_share(self) except -1 nogil
    cdef bint easy(self) except -1 nogil
    cdef bint easy_fitting(self) except -1 nogil
    cdef int32_t following_beside(self, const Reservation* head) noexcept nogil
    cdef bint overtake(self, int32_t slot, Reservation* head) except -1 nogil
    cdef bint conservative(self, int32_t only) except -1 nogil
    cdef int settle_reserved(self, int32_t slot, Reservation* place) except -1 nogil
