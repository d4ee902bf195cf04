# One choice, or none, for each thing of each class; the slow twin is HiGHS, see policies/solvers/multiple_choice.py.
cimport cython
from libc.stdint cimport int32_t, int64_t

cdef enum:
    MOST_KINDS = 15      # kinds of rooms

cdef struct Option:      # of the things of a class: a column, or none
    double extra         # what it costs beyond the bound
    int64_t column       # -1 = none
    int64_t kind
    int64_t size

cdef struct Mark:        # a state of the search that was seen
    int64_t stamp
    double extra


@cython.final
cdef class Knapsack:
    cdef readonly int columns, classes, kinds
    cdef readonly int64_t nodes                # states seen by the last search
    cdef readonly bint ended                   # whether the last search saw all there is
    cdef readonly object price                 # of each kind of room, from the bound
    cdef readonly object chosen                # how often each column is taken
    cdef const double[::1] cost__x
    cdef const int64_t[::1] size__x, kind__x, first__c, count__c, room__k
    cdef double[::1] price__k
    cdef int64_t[::1] chosen__x
    cdef Option* options
    cdef int64_t* start__c                     # first option of each class
    cdef int64_t* order__c                     # classes with more than one option, large things first
    cdef int64_t* class__d                     # class of each of their things
    cdef int64_t* picked__d                    # option of each of them: now, and in the best choice so far
    cdef int64_t* best__d
    cdef int64_t* most__dk                     # room that this and all later things can use
    cdef int64_t[MOST_KINDS + 1] free__k       # room left to them
    cdef Mark* marks
    cdef int32_t* keys
    cdef int64_t depths, stamp, filled, left, more
    cdef double best
    cdef bint has_best
    cdef double plan(self, const double* price, double* use) noexcept nogil
    cdef int improve_prices(self) noexcept nogil
    cdef void list_options(self, double reach) noexcept nogil
    cdef bint fix_single(self) noexcept nogil
    cdef void line_up(self) noexcept nogil
    cdef int64_t largest(self, int64_t c) noexcept nogil
    cdef void dive(self, int64_t depth, int64_t start, const int64_t* room, double extra) noexcept nogil
    cdef bint seen(self, int64_t depth, int64_t start, const int64_t* room, double extra) noexcept nogil
