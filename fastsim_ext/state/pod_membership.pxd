# Tenant, group, gang and run time estimate of each pod, and the pods of each node.
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.state.pod_table cimport Slot

cdef struct Member:      # one slot of the work table
    int32_t tenant, group                # numbers; -1 = none
    int32_t gang, next_in_gang           # its gang and the next pod of it by arrival, or -1
    int32_t next_on_node, previous_on_node  # neighbours among the pods of its node, or -1
    bint preemptible, preempts           # it may be stopped for others; it may stop others
    bint held            # it waits for a gang of its job to start, and stands in no line
    int64_t job          # of a pod that is held
    int64_t joined, place                # number of its entry into the waiting line; its place in a walk of it
    double est, est_left, restart        # estimates in seconds; NaN = endless
    double attained                      # seconds on nodes before this wait

cdef struct Gang:        # pods that start and stop together
    int64_t job
    int32_t size, count, first, last     # members required and present; ends of the list of slots
    int32_t next_gang                    # the next gang that forms, or the next free record
    int32_t stage        # a Stage

cdef enum:  # Stage of a gang
    NOT_BEGUN, BEGUN, GIVEN_UP           # GIVEN_UP: it has left without having started, others of its job do so, too

cdef double saved_work(double worked, double interval) noexcept nogil

cdef class PodMembership:
    # saved
    cdef Member* members                 # by slot
    cdef Gang* gangs
    cdef int32_t room, n_gangs, free_gang, forming
    cdef int64_t joins                   # entries into the waiting line so far
    # not saved: follow from the running pods, or only count changes
    cdef bint follows    # pods may wait for gangs of their jobs
    cdef int64_t held    # pods that do
    cdef int32_t gang_room
    cdef int32_t[::1] first__n           # a pod of each node, or -1
    cdef int64_t[::1] moved__n           # pods that started or ended on each node so far
    cdef int64_t moves                   # starts and ends of pods and changes of nodes so far
    cdef int enter(self, int32_t slot, int32_t tenant, int32_t group, bint preemptible, bint preempts,
                   double est) except -1 nogil
    cdef void link(self, int32_t slot, int n) noexcept nogil
    cdef void unlink(self, int32_t slot, int n) noexcept nogil
    cdef int wait_for_gang(self, int32_t slot, int64_t job) noexcept nogil
    cdef bint has_others(self, int32_t slot) noexcept nogil
    cdef int32_t next_held(self, int64_t job, const Slot* slots) noexcept nogil
    cdef int32_t new_gang(self) except -1 nogil
    cdef bint join_gang(self, int32_t slot, int64_t job, int32_t size) except -1 nogil
    cdef void leave(self, int32_t slot) noexcept nogil
    cdef int32_t entry_slot(self, int32_t slot) noexcept nogil
    cdef int32_t first(self, int32_t slot) noexcept nogil
    cdef int64_t size(self, int32_t slot) noexcept nogil
    cdef int32_t earliest_on(self, int n, const Slot* slots) noexcept nogil
    cdef int32_t next(self, int32_t slot) noexcept nogil
    cdef double estimated_s(self, int32_t slot) noexcept nogil
