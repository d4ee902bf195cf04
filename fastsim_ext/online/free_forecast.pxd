# Forecast of the free amounts of every node, state by state.
from libc.stdint cimport int32_t, int64_t, uint64_t
from fastsim_ext.online.node_constraints cimport ConstraintTable
from fastsim_ext.state.pod_membership cimport PodMembership
from fastsim_ext.state.pod_table cimport WorkTable

cdef enum:               # where a state's columns begin; MiB by device and further resources follow the devices
    CPU, MEM, PODS, GPU

cdef struct NodeForecast:      # the estimated states of one node; the first is the real one of now
    double* t            # when each begins, seconds
    int64_t* free        # by state and column: milli-CPU, MiB, pod slots, milli by device, ...
    int32_t count, room  # states

cdef struct Reservation:
    double start, end    # seconds
    int32_t slot
    int node             # or -1
    bint waits           # False if it could start at once
    uint64_t gpus

cdef class FreeForecast:
    # not saved: follows from the running pods
    cdef ConstraintTable constraints
    cdef WorkTable work
    cdef PodMembership membership
    cdef int nodes, width, columns       # columns of a state
    cdef NodeForecast* bare                    # by node, from the running pods alone
    cdef NodeForecast* booked                    # the same with all reservations
    cdef int64_t* version                # by node: changes of what is seen
    cdef int64_t* revisions                  # by node: how often it differed from its forecast
    cdef bint* changed                   # by node: whether that was so at the last look
    cdef NodeForecast fresh                    # scratch
    cdef int64_t* moves_then                  # by node: its changes in ``membership`` at the last look
    cdef bint* was_present                     # by node: whether it was present then
    cdef bint* touched                   # by node: whether what is seen is more than the running pods
    cdef Reservation* reservations               # reservations of this walk
    cdef int32_t n_reservations, reservation_room
    cdef double end_s(self, int32_t slot, double now) noexcept nogil
    cdef int rebuilt(self, int n, NodeForecast* of, double now) except -1 nogil
    cdef bint as_forecast(self, const NodeForecast* then, const NodeForecast* now) noexcept nogil
    cdef int renew(self, double now) except -1 nogil
    cdef bint overdue(self, double now) noexcept nogil
    cdef void shift(self, NodeForecast* of, int32_t first, int32_t end, int cls, uint64_t gpus, int sign) noexcept nogil
    cdef int32_t split(self, NodeForecast* of, double t) except -1 nogil
    cdef int occupy(self, int n, int32_t since, double end, int cls, uint64_t gpus) except -1 nogil
    cdef int reserve_place(self, const Reservation* reservation) except -1 nogil
    cdef int started(self, int32_t slot, int n, double now) except -1 nogil
    cdef bint fits(self, int n, int32_t k, int cls, double now, uint64_t* gpus) noexcept nogil
    cdef int earliest(self, int n, int cls, double lasts, double now, Reservation* out) except -1 nogil
    cdef bint lasting_devices(self, int n, double lasts, int cls, double now, uint64_t* gpus) noexcept nogil
    cdef uint64_t tightest(self, int n, int32_t k, double start, double lasts, int cls) noexcept nogil
    cdef int group_pods(self, int n, int32_t k, int32_t group, double now) noexcept nogil
