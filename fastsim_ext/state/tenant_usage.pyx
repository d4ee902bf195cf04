"""The usage of each tenant, its quota and its share."""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc
from fastsim_ext.state.node_table cimport Totals
from fastsim_ext.state.pod_membership cimport PodMembership
from fastsim_ext.state.pod_table cimport WorkTable
from fastsim_ext.types cimport Pod


cdef class TenantUsage:
    """Tenants by number; pods without one have a tenant of their own."""

    def __dealloc__(self):
        free(self.tenants)

    def add_tenant(self, int64_t cpu_most, int64_t mem_most, int64_t gpu_most, double weight):
        """A new tenant, its quota in milli-CPU, MiB and milli-GPU, and its weight."""
        cdef Tenant* t
        if self.count == self.room:
            t = <Tenant*> realloc(self.tenants, (2 * self.room + 16) * sizeof(Tenant))
            if t == NULL:
                raise MemoryError()
            self.tenants, self.room = t, 2 * self.room + 16
        t = &self.tenants[self.count]
        t.cpu = t.mem = t.gpu = 0
        t.cpu_most, t.mem_most, t.gpu_most, t.weight, t.barred, t.oldest = cpu_most, mem_most, gpu_most, weight, 0, -1
        self.count += 1
        return self.count - 1

    def used(self, int32_t tenant):
        """(milli-CPU, MiB, milli-GPU) that the tenant's running pods hold."""
        if not 0 <= tenant < self.count:
            raise IndexError(f"no tenant {tenant}")
        return self.tenants[tenant].cpu, self.tenants[tenant].mem, self.tenants[tenant].gpu

    cdef void add(self, int32_t tenant, const Pod* pod, int sign) noexcept nogil:
        """Add a pod that starts (``sign`` 1) or subtract one that has ended (-1)."""
        cdef Tenant* t = &self.tenants[tenant]
        t.cpu += sign * pod.cpu
        t.mem += sign * pod.mem
        t.gpu += sign * (pod.num_gpu * pod.milli + pod.mig)

    cdef bint over_quota(self, int32_t tenant) noexcept nogil:
        """Whether the tenant holds more than its quota."""
        cdef const Tenant* t = &self.tenants[tenant]
        return self.exceeds_quota(tenant, t.cpu, t.mem, t.gpu)

    cdef bint exceeds_quota(self, int32_t tenant, int64_t cpu, int64_t mem, int64_t gpu) noexcept nogil:
        """Whether such usage exceeds the tenant's quota."""
        cdef const Tenant* t = &self.tenants[tenant]
        return cpu > t.cpu_most or mem > t.mem_most or gpu > t.gpu_most

    cdef int32_t first_over(self, PodMembership membership, WorkTable work, int32_t slot) noexcept nogil:
        """The first pod of an entry with which its tenant would be over its quota, or -1."""
        cdef int32_t at = membership.first(slot)
        cdef int32_t over = -1
        cdef int32_t last = at
        while at >= 0 and over < 0:
            self.add(membership.members[at].tenant, &work.classes[work.slots[at].cls], 1)
            if self.over_quota(membership.members[at].tenant):
                over = at
            last, at = at, membership.next(at)
        at = membership.first(slot)
        while True:
            self.add(membership.members[at].tenant, &work.classes[work.slots[at].cls], -1)
            if at == last:
                return over
            at = membership.next(at)

    cdef int32_t first_above(self, PodMembership membership, WorkTable work, int32_t slot) noexcept nogil:
        """The first pod of an entry with which it is more than its tenant's whole quota, or -1."""
        cdef int32_t first = membership.first(slot)
        cdef int32_t at, tenant
        cdef int64_t cpu, mem, gpu
        cdef const Pod* pod
        while first >= 0:
            tenant, at, cpu, mem, gpu = membership.members[first].tenant, membership.first(slot), 0, 0, 0
            while True:
                if membership.members[at].tenant == tenant:
                    pod = &work.classes[work.slots[at].cls]
                    cpu, mem, gpu = cpu + pod.cpu, mem + pod.mem, gpu + pod.num_gpu * pod.milli + pod.mig
                if at == first:
                    break
                at = membership.next(at)
            if self.exceeds_quota(tenant, cpu, mem, gpu):
                return first
            first = membership.next(first)
        return -1

    cdef double dominant_share(self, int32_t tenant, const Totals* total) noexcept nogil:
        """The tenant's dominant share: the largest of its shares of the resources, divided by its weight."""
        cdef const Tenant* t = &self.tenants[tenant]
        cdef double most = 0.0
        if total.cpu_cap > 0:
            most = <double> t.cpu / <double> total.cpu_cap
        if total.mem_cap > 0:
            most = max(most, <double> t.mem / <double> total.mem_cap)
        if total.gpu_cap > 0:
            most = max(most, <double> t.gpu / <double> total.gpu_cap)
        return most / t.weight
