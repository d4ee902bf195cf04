"""What the running pods of each tenant hold, against quotas and as dominant shares."""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc
from fastsim_ext.state.node_table cimport Totals
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
        """A pod starts (1) or has ended (-1)."""
        cdef Tenant* t = &self.tenants[tenant]
        t.cpu += sign * pod.cpu
        t.mem += sign * pod.mem
        t.gpu += sign * (pod.num_gpu * pod.milli + pod.mig)

    cdef bint over(self, int32_t tenant) noexcept nogil:
        """Whether the tenant holds more than its quota."""
        cdef const Tenant* t = &self.tenants[tenant]
        return self.exceeded(tenant, t.cpu, t.mem, t.gpu)

    cdef bint exceeded(self, int32_t tenant, int64_t cpu, int64_t mem, int64_t gpu) noexcept nogil:
        """Whether so much is more than the tenant's quota."""
        cdef const Tenant* t = &self.tenants[tenant]
        return cpu > t.cpu_most or mem > t.mem_most or gpu > t.gpu_most

    cdef double share(self, int32_t tenant, const Totals* total) noexcept nogil:
        """The tenant's largest share of what there is, divided by its weight."""
        cdef const Tenant* t = &self.tenants[tenant]
        cdef double most = 0.0
        if total.cpu_cap > 0:
            most = <double> t.cpu / <double> total.cpu_cap
        if total.mem_cap > 0:
            most = max(most, <double> t.mem / <double> total.mem_cap)
        if total.gpu_cap > 0:
            most = max(most, <double> t.gpu / <double> total.gpu_cap)
        return most / t.weight
