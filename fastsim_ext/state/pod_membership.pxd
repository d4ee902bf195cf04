# What is known of a pod beyond its request: tenant, group, gang, what is believed of its end; and who runs where.
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.state.node_table cimport Totals
from fastsim_ext.types cimport Pod

cdef struct Member:      # one slot of the work table
    int32_t tenant, group                # numbers; -1 = none
    int32_t gang, mate                   # its gang and the next to arrive of it, or -1
    int32_t following, preceding         # neighbours among the pods of its node, or -1
    bint preemptible
    int64_t joined, place                # when it joined the waiting line, counted; where it stood in a walk
    double est, est_left, restart        # seconds; NaN = endless
    double attained                      # seconds on nodes before this wait

cdef struct Gang:        # pods that start and stop together
    int64_t job
    int32_t size, count, first, last     # members wanted and there; ends of the list of slots
    int32_t after                        # the next gang that forms, or the next free record

cdef class PodMembership:
    # saved
    cdef Member* members                 # by slot
    cdef Gang* gangs
    cdef int32_t room, n_gangs, free_gang, forming
    cdef int64_t joins                   # entries that joined the line so far
    # not saved: follow from who runs where, or tell only whether something changed
    cdef int32_t gang_room
    cdef int32_t[::1] first__n           # a pod of each node, or -1
    cdef int64_t[::1] moved__n           # pods that came to each node or went from it, so far
    cdef int64_t moves                   # pods and nodes that came or went, so far
    cdef int enter(self, int32_t slot, int32_t tenant, int32_t group, bint preemptible, double est) except -1 nogil
    cdef void link(self, int32_t slot, int n) noexcept nogil
    cdef void unlink(self, int32_t slot, int n) noexcept nogil
    cdef int32_t fresh(self) except -1 nogil
    cdef bint gathered(self, int32_t slot, int64_t job, int32_t size) except -1 nogil
    cdef void leave(self, int32_t slot) noexcept nogil
    cdef int32_t lead(self, int32_t slot) noexcept nogil
    cdef int32_t first(self, int32_t slot) noexcept nogil
    cdef int32_t next(self, int32_t slot) noexcept nogil

cdef struct Tenant:
    int64_t cpu, mem, gpu                # milli-CPU, MiB and milli-GPU held
    int64_t cpu_most, mem_most, gpu_most         # quota
    double weight
    int64_t barred       # number of the walk in which it is held back
    int32_t oldest       # its first entry in the line, during a walk by shares; -1 = none

cdef class TenantUsage:
    # not saved: told again, and added up from the running pods
    cdef Tenant* tenants
    cdef readonly int32_t count
    cdef int32_t room
    cdef void add(self, int32_t tenant, const Pod* pod, int sign) noexcept nogil
    cdef bint over(self, int32_t tenant) noexcept nogil
    cdef bint exceeded(self, int32_t tenant, int64_t cpu, int64_t mem, int64_t gpu) noexcept nogil
    cdef double share(self, int32_t tenant, const Totals* total) noexcept nogil
