# What every GPU reports now: sums over the pods on it, and temperature and energy, integrated between changes.
from libc.stdint cimport int32_t, int64_t

cdef struct Stay:        # one pod on one GPU
    int64_t who          # arrival number
    double start         # seconds
    int32_t gpu, profile
    int32_t phase        # of the profile, now
    int32_t turn         # counts the uses of the place, so that a stale edge is recognised
    int32_t following    # the next stay on the GPU, or the next free place; -1 = none

cdef struct Edge:        # a stay's next phase begins
    double t             # seconds
    int64_t seq          # order of scheduling
    int32_t stay, turn

cdef struct Level:       # sums over the pods of a GPU, whole numbers, so that nothing is left when they are gone
    int64_t kib          # memory, in 1/1024 MiB
    int64_t spare        # logarithm of what is left over, in 1 / SPARE_UNIT
    int64_t mw           # power on top, mW
    int64_t computing, holding, pods     # who computes, who holds memory, who is there at all

cdef class GpuReadings:
    cdef Stay* stays
    cdef Edge* edges
    cdef Level* levels
    cdef int32_t stay_room, free_stay
    cdef int64_t edge_room, scheduled
    cdef readonly int64_t n_edges, present   # edges to come; stays of now
    cdef readonly int gpus
    cdef const int32_t[::1] device__u, first__p
    cdef const double[::1] after_s, util_pct, memory_mib, power_w        # by phase
    cdef const double[:, ::1] device__dx, util__dk, power__dk
    cdef double[::1] util__u, power__u, temperature__u, energy__u, at__u
    cdef int32_t[::1] head__u
    cpdef int verify(self) except -1
    cdef int begin(self, double t, int64_t who, int32_t gpu, int32_t profile) except -1 nogil
    cdef int end(self, double t, int64_t who, int32_t gpu) except -1 nogil
    cdef int push(self, double t, int32_t stay) except -1 nogil
    cdef void pop(self) noexcept nogil
    cdef int advance(self, double t) except -1 nogil
    cdef void shift(self, int32_t gpu, double t, int32_t phase, int sign) noexcept nogil
    cdef void settle(self, int32_t gpu) noexcept nogil
