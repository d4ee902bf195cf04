# What the running pods of each tenant hold, against quotas and as dominant shares.
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.state.node_table cimport Totals
from fastsim_ext.types cimport Pod

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
