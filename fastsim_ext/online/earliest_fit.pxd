# Lower bounds of the earliest time at which each node can host a kind of pod.
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.online.free_forecast cimport FreeForecast, NodeForecast
from fastsim_ext.types cimport Pod

cdef enum:
    MAX_KINDS = 64       # of pods; those beyond have no bounds

cdef struct Bound:       # of one node, for one kind
    double first, last   # begin of the first time with room, and of the time whose end is not known, seconds
    double gap           # the longest of the other times with room, seconds
    int64_t version      # of the node's states when this was worked out

cdef struct Kind:        # pods with about the same request
    Pod least            # amounts that each of them requests at least
    Bound* bare          # by node, from the running pods alone
    Bound* booked          # by node, with reservations
    int64_t walk         # the last one in which ``seen`` was needed

cdef class EarliestFit:
    # not saved: follows from the forecast
    cdef FreeForecast forecast
    cdef Kind[MAX_KINDS] kinds
    cdef int n_kinds
    cdef int32_t* kind_of                # by class, plus 1; 0 = not known yet
    cdef int32_t class_room
    cdef int64_t walk                    # so far
    cdef int renew(self, double now) noexcept nogil
    cdef int bounds(self, int cls, Bound** out) except -1 nogil
    cdef int add_kind(self, const Pod* least) except -1 nogil
    cdef int kind(self, int cls) except -2 nogil
    cdef void update_bound(self, const Kind* kind, int n, const NodeForecast* of, bint later, Bound* out) noexcept nogil
    cdef void sharpen(self, int cls, Bound* bound, int n) noexcept nogil
