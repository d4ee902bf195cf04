# Pareto fronts of points with two values, both to be minimised.
from libc.stdint cimport int32_t

cdef struct FrontRoom:       # for so many points
    int32_t* order__p        # points, front after front
    int32_t* end__f          # where each front ends in that order
    int32_t* rank__p         # number of its front
    int32_t* by_first__p     # points in the order of their values
    int32_t* rising__p       # those of each front in this order, front after front
    int32_t* falling__p
    int32_t* spare__p
    double* gap__p

cdef int fronts_reserve(FrontRoom* room, int points) except -1 nogil
cdef void fronts_free(FrontRoom* room) noexcept nogil
cdef int fronts_sorted(const double* first__p, const double* second__p, int points, int enough,
                       FrontRoom* room) noexcept nogil
cdef void fronts_crowding(const double* first__p, const double* second__p, int start, int count,
                          double* crowding__p, FrontRoom* room) noexcept nogil
cdef void fronts_ascending(const double* value, int32_t* index, int low, int high) noexcept nogil
