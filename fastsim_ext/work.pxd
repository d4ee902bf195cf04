# Pod classes, the pods in the system, the waiting line and the outcomes; the only writer of pod state.
from libc.stdint cimport int32_t, int64_t, uint64_t
from fastsim_ext.types cimport Pod

cdef enum:  # Reason: how an interval of a pod ended; order of fastsim.result.REASONS
    FINISHED, RUNNING, NODE_LOST, EVICTED, PREEMPTED, PENDING, TOO_LARGE, GANG, OVER_QUOTA
    NO_NODE, NO_MATCH, NO_GPU_MODEL, NO_GPU, NO_CPU, NO_MEMORY, NO_EXTRA, NO_POD_SLOT, POD_LIMIT

cdef enum:  # Closes: what an outcome row ends, as bits
    INTERVAL = 1         # a stay on a node, or the one that never began
    POD = 2              # the pod's time in the system

cdef struct Slot:        # one pod that waits or runs
    int64_t seq, pod_id  # arrival number; the user's name for it
    double submit, duration, start, first_start      # seconds; duration NaN = for ever; NaN = not started
    double began, lost   # when the work of now began; seconds of work lost so far
    uint64_t gpus        # devices held, as bits
    int32_t cls, node    # class; node or -1
    int32_t priority, attempt, preemptions
    int32_t turn         # counts the uses of the slot, so that stale departures are recognised
    int32_t before, after                # neighbours in the waiting line, or the next free slot

cdef struct Outcome:     # one row for the result; 8-byte fields only, so numpy reads it as it is
    int64_t seq, pod_id, node, attempt, reason, closes
    uint64_t gpus
    double submit, first_start, start, end           # seconds; NaN = not
    int64_t preemptions
    double lost          # seconds of work lost so far

cdef class WorkTable:
    cdef Pod* classes
    cdef Slot* slots
    cdef Outcome* outcomes
    cdef readonly int n_classes
    cdef int class_room
    cdef int32_t slot_room, free_slot, n_slots
    cdef readonly int64_t n_outcomes, waiting
    cdef int64_t outcome_room
    cdef int32_t head, tail              # the waiting line, or -1
    cdef int32_t enter(self, int64_t seq, int64_t pod_id, int32_t cls, double submit, double duration,
                       int32_t priority) except -1 nogil
    cdef int known_class(self, int cls) except -1
    cdef int known_slot(self, int32_t slot) except -1
    cdef void leave(self, int32_t slot) noexcept nogil
    cdef void queue(self, int32_t slot, bint by_priority) noexcept nogil
    cdef void queue_behind(self, int32_t slot, int32_t at) noexcept nogil
    cdef void relink(self, const int32_t* slots, int32_t n) noexcept nogil
    cdef void unqueue(self, int32_t slot) noexcept nogil
    cdef int note(self, int32_t slot, int reason, double end, int closes) except -1 nogil
    cpdef int verify(self) except -1
