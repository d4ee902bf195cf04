# The usage of each tenant, its quota and its share.
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.state.node_table cimport Totals
from fastsim_ext.state.pod_membership cimport PodMembership
from fastsim_ext.state.pod_table cimport WorkTable
from fastsim_ext.types cimport Pod

cdef struct Tenant:
    int64_t cpu, mem, gpu                # milli-CPU, MiB and milli-GPU held
    int64_t cpu_most, mem_most, gpu_most         # quota
    double weight
    int64_t barred       # number of the last walk in which it was held back
    int32_t oldest       # its first entry in the line, in a walk by shares; -1 = none

cdef class TenantUsage:
    # not saved: quotas are set again, usage is summed over the running pods
    cdef Tenant* tenants
    cdef readonly int32_t count
    cdef int32_t room
    cdef void add(self, int32_t tenant, const Pod* pod, int sign) noexcept nogil
    cdef bint over_quota(self, int32_t tenant) noexcept nogil
    cdef bint exceeds_quota(self, int32_t tenant, int64_t cpu, int64_t mem, int64_t gpu) noexcept nogil
    cdef int32_t first_over(self, PodMembership membership, WorkTable work, int32_t slot) noexcept nogil
    cdef int32_t first_above(self, PodMembership membership, WorkTable work, int32_t slot) noexcept nogil
    cdef double dominant_share(self, int32_t tenant, const Totals* total) noexcept nogil
