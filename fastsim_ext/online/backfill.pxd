# Reservations for waiting pods, from estimated durations.
from libc.stdint cimport int32_t, int64_t, uint64_t
from fastsim_ext.online.earliest_fit cimport Bound, EarliestFit
from fastsim_ext.online.free_forecast cimport FreeForecast, Reservation
from fastsim_ext.online.node_constraints cimport ConstraintTable, NodeView
from fastsim_ext.select.scan cimport Choice
from fastsim_ext.select.waiting_line cimport FreeRoom
from fastsim_ext.state.pod_membership cimport PodMembership
from fastsim_ext.state.pod_table cimport WorkTable

cdef struct Change:      # a pod leaves a node, as estimated
    double t             # seconds
    int64_t seq          # arrival number
    uint64_t gpus
    int32_t cls, group

cdef struct Changes:     # of one node, by time
    Change* items
    int32_t count, room

cdef class Backfill:
    # not saved: reservations are made again
    cdef ConstraintTable constraints
    cdef WorkTable work
    cdef PodMembership membership
    cdef FreeForecast forecast
    cdef EarliestFit earliest_fit
    cdef Changes running                 # scratch: the pods of one node
    cdef int64_t valid_moves             # of ``membership``, when all reservations were right
    cdef Reservation* latest             # by slot: the pod's last reservation, if anything
    cdef int64_t* walk_of                # by slot: in which walk that was
    cdef int64_t walk                    # so far
    cdef int32_t room
    cdef bint* stale                     # by node: whether it is seen otherwise than at this place of the last walk
    cdef int32_t* stale_nodes
    cdef int32_t n_stale
    cdef int32_t head_slot               # the pod that ``first_ends`` are of, or -1
    cdef int64_t head_joined             # number of its entry into the line
    cdef double* first_ends              # by cell: cell c has the children 2c and 2c + 1, nodes begin at ``leaves``
    cdef int32_t leaves                  # a power of two
    cdef FreeRoom beside                 # of the head's node, see room_beside()
    cdef double beside_s                 # begin of the reservation then
    cdef int64_t beside_moves            # of the node in ``membership`` then; -1: another head
    cdef bint* moved                     # by node: whether pods came or left since its first end was worked out
    cdef int32_t* moved_nodes
    cdef int32_t n_moved
    cdef int list_ends(self, int n, double now) except -1 nogil
    cdef int insert_end(self, double t, int64_t seq, int cls, uint64_t gpus, int32_t group) except -1 nogil
    cdef void note_change(self, int n) noexcept nogil
    cdef int first_end(self, int n, int cls, double now, double* out) except -1 nogil
    cdef int renew_end(self, int n, int cls, double now) except -1 nogil
    cdef int head(self, int32_t slot, double now, Reservation* out) except -1 nogil
    cdef void view_at_start(self, const Reservation* head, double now, NodeView* view) noexcept nogil
    cdef const FreeRoom* room_beside(self, const Reservation* head, double now) noexcept nogil
    cdef int verify(self) except -1
    cdef bint undisturbed(self, const Reservation* head, int32_t slot, const Choice* choice, double now,
                          double end) except -1 nogil
    cdef bint holds_unchanged(self, double now) noexcept nogil
    cdef int renew(self, double now) except -1 nogil
    cdef int started(self, int32_t slot, int n, double now) except -1 nogil
    cdef const Reservation* last_place(self, int32_t slot) noexcept nogil
    cdef void mark_stale(self, int n) noexcept nogil
    cdef int record_place(self, int32_t slot, const Reservation* place) except -1 nogil
    cdef int earliest(self, int32_t slot, double now, Reservation* out) except -1 nogil
    cdef int earliest_anywhere(self, int cls, double lasts, double now, Reservation* out) except -1 nogil
    cdef int consider(self, int n, int cls, double lasts, double now, Bound* bounds,
                      Reservation* out) except -1 nogil
    cdef bint allowed(self, int32_t slot, const Choice* choice, double now) except -1 nogil
    cdef int reserve_place(self, const Reservation* reservation) except -1 nogil
