# Present readings of every GPU: sums over its pods, and temperature and energy, integrated between changes.
from libc.stdint cimport int32_t, int64_t

cdef struct Stay:        # one pod on one GPU
    int64_t seq          # arrival number
    double start         # seconds
    int32_t gpu, profile
    int32_t phase        # of the profile, now
    int32_t turn         # counts the uses of the record, so that a stale start is recognised
    int32_t next_stay    # the next stay on the GPU, or the next free record; -1 = none

cdef struct PhaseStart:  # a stay's next phase begins
    double t             # seconds
    int64_t seq          # order of scheduling
    int32_t stay, turn

cdef struct DeviceSums:  # sums over the pods of a GPU; integers, so they return to 0 exactly
    int64_t kib          # memory, in 1/1024 MiB
    int64_t spare        # logarithm of the unused share, in 1 / SPARE_UNIT
    int64_t mw           # additional power, mW
    int64_t computing, holding, pods     # pods that compute, that hold memory, all pods

cdef class GpuReadings:
    cdef Stay* stays
    cdef PhaseStart* starts
    cdef DeviceSums* sums
    cdef int32_t stay_room, free_stay
    cdef int64_t start_room, scheduled
    cdef readonly int64_t n_starts, present  # starts to come; present stays
    cdef readonly int gpus
    cdef const int32_t[::1] device__u, first__p
    cdef const double[::1] after_s, util_pct, memory_mib, power_w        # by phase
    cdef const double[:, ::1] device__dx, util__dk, power__dk
    cdef double[::1] util__u, power__u, temperature__u, energy__u, at__u
    cdef int32_t[::1] head__u
    cpdef int verify(self) except -1
    cdef int begin(self, double t, int64_t pod_id, int32_t gpu, int32_t profile) except -1 nogil
    cdef int end(self, double t, int64_t pod_id, int32_t gpu) except -1 nogil
    cdef int push(self, double t, int32_t stay) except -1 nogil
    cdef void pop(self) noexcept nogil
    cdef int advance(self, double t) except -1 nogil
    cdef void shift(self, int32_t gpu, double t, int32_t phase, int sign) noexcept nogil
    cdef void update_power(self, int32_t gpu) noexcept nogil
