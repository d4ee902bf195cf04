# Pod classes, the pods in the system, the waiting line and the outcomes; the only writer of pod state.
from libc.stdint cimport int32_t, int64_t, uint64_t
from fastsim_ext.state.gpu_prices cimport Tariff
from fastsim_ext.state.pod_outcomes cimport Outcome
from fastsim_ext.types cimport Pod

cdef struct Slot:        # one pod that waits or runs
    int64_t seq, pod_id  # arrival number; the user's name for it
    double submit, duration, start, first_start      # seconds; duration NaN = for ever; NaN = not started
    double began, lost   # when the present work began; seconds of work lost so far
    uint64_t gpus        # devices held, as bits
    int32_t cls, node    # class; node or -1
    int32_t priority, attempt, preemptions
    int32_t turn         # counts the uses of the slot, so that stale departures are recognised
    int32_t before, after                # neighbours in the waiting line, or the next free slot

cdef struct Account:     # usage of a pod so far; apart from its slot, which is read far more often
    double ideal, delay  # seconds without interruption, NaN = for ever; restart before the present work
    double left, paused  # when its last stay ended; seconds between its stays
    double held, delayed                 # milli-GPU seconds of its stays; seconds of restarts in them
    double cost          # $ of its stays
    int64_t tenant       # by number, or -1

cdef class WorkTable:
    cdef Pod* classes
    cdef Slot* slots
    cdef Account* accounts               # by slot
    cdef Outcome* outcomes
    cdef readonly int n_classes
    cdef int class_room
    cdef int32_t slot_room, free_slot, n_slots
    cdef readonly int64_t n_outcomes, waiting
    cdef int64_t outcome_room
    cdef int32_t head, tail              # the waiting line, or -1
    cdef Tariff tariff                   # or None
    cdef double cost                     # $ of the pods that are gone
    cdef double* tenant_held             # milli-GPU seconds of the pods that are gone, by tenant
    cdef int32_t n_tenants, tenant_room  # tenants with an arrival so far
    cdef int32_t enter(self, int64_t seq, int64_t pod_id, int32_t cls, double submit, double duration,
                       int32_t priority, int32_t tenant) except -1 nogil
    cdef int add_tenants(self, int32_t tenant) except -1 nogil
    cdef int check_class(self, int cls) except -1
    cdef int check_slot(self, int32_t slot) except -1
    cdef void leave(self, int32_t slot) noexcept nogil
    cdef void queue(self, int32_t slot, bint by_priority) noexcept nogil
    cdef void queue_behind(self, int32_t slot, int32_t at) noexcept nogil
    cdef void relink(self, const int32_t* slots, int32_t n) noexcept nogil
    cdef void unqueue(self, int32_t slot) noexcept nogil
    cdef void close_stay(self, int32_t slot, double now) noexcept nogil
    cdef int note(self, int32_t slot, int reason, double now, int closes) except -1 nogil
    cpdef int verify(self) except -1
