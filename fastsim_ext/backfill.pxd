# Reservations for waiting pods, from the durations the scheduler is told.
from libc.stdint cimport int32_t, int64_t, uint64_t
from fastsim_ext.demand cimport DemandTable, Look
from fastsim_ext.roster cimport Roster
from fastsim_ext.select cimport Choice
from fastsim_ext.work cimport WorkTable

cdef struct Change:      # a pod comes to a node (-1) or goes from it (1), as is believed
    double t             # seconds
    int64_t seq          # arrival number
    uint64_t gpus
    int32_t cls, group
    int sign

cdef struct Changes:     # of one node, by time
    Change* items
    int32_t count, room

cdef struct Reservation:
    double start, end    # seconds
    int32_t slot
    int node             # or -1
    bint waits           # False if it could start at once
    uint64_t gpus

cdef class Backfill:
    cdef DemandTable demand
    cdef WorkTable work
    cdef Roster roster
    cdef Changes* lists                  # by node
    cdef Reservation* made               # in this walk
    cdef int32_t n_made, made_room
    cdef int64_t known_moves             # of the roster, when the lists were right
    cdef double told(self, int32_t slot) noexcept nogil
    cdef int ends(self, int n, double now) except -1 nogil
    cdef int note(self, int n, double t, int64_t seq, int cls, uint64_t gpus, int32_t group, int sign) except -1 nogil
    cdef int head(self, int32_t slot, double now, Reservation* out) except -1 nogil
    cdef bint undisturbed(self, const Reservation* head, int32_t slot, const Choice* choice, double now,
                          double end) except -1 nogil
    cdef bint same(self, double now) noexcept nogil
    cdef int renew(self, double now) except -1 nogil
    cdef int started(self, int n, double now) except -1 nogil
    cdef int expect(self, const Reservation* r) except -1 nogil
    cdef int apply(self, Look* look, int at, int cls) noexcept nogil
    cdef bint floor(self, const Look* state, int at, double start, double lasts, int cls, Look* low) noexcept nogil
    cdef int earliest(self, int32_t slot, double now, Reservation* out) except -1 nogil
    cdef bint allowed(self, int32_t slot, const Choice* choice, double now) except -1 nogil
    cdef int promise(self, const Reservation* given) except -1 nogil
