"""Tenant, group, gang and run time estimate of each pod, the pods of each node, and the usage of each tenant.

A gang is a list of slots in the order of arrival; its entry in the waiting line is the last of them.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset
from cpython.bytes cimport PyBytes_FromStringAndSize
from fastsim_ext.state.node_table cimport Totals
from fastsim_ext.state.pod_table cimport WorkTable
from fastsim_ext.types cimport Pod


cdef class PodMembership:
    """One record for every slot of the work table, a list of pods for every node, and the gangs."""

    def __init__(self, first, moved):
        self.first__n, self.moved__n = first, moved
        self.free_gang = self.forming = -1

    def __dealloc__(self):
        free(self.members)
        free(self.gangs)

    def snapshot(self):
        """(members as bytes, gangs as bytes, ends of the lists): all that restore() needs."""
        ends = {"free_gang": self.free_gang, "forming": self.forming, "joins": self.joins}
        return (PyBytes_FromStringAndSize(<char*> self.members, self.room * sizeof(Member)),
                PyBytes_FromStringAndSize(<char*> self.gangs, self.n_gangs * sizeof(Gang)), ends)

    def restore(self, const unsigned char[::1] members, const unsigned char[::1] gangs, ends):
        """Restore a snapshot(); the running pods are then added by link()."""
        cdef int64_t room = members.shape[0] // <int64_t> sizeof(Member)
        cdef int64_t count = gangs.shape[0] // <int64_t> sizeof(Gang)
        if members.shape[0] % <int64_t> sizeof(Member) or gangs.shape[0] % <int64_t> sizeof(Gang) or self.room:
            raise ValueError(f"{members.shape[0]} and {gangs.shape[0]} bytes are no snapshot, or pods are present")
        if room:
            self.members = <Member*> realloc(self.members, room * sizeof(Member))
            if self.members == NULL:
                raise MemoryError()
            memcpy(self.members, &members[0], members.shape[0])
        if count:
            self.gangs = <Gang*> realloc(self.gangs, count * sizeof(Gang))
            if self.gangs == NULL:
                raise MemoryError()
            memcpy(self.gangs, &gangs[0], gangs.shape[0])
        self.room, self.n_gangs, self.gang_room = room, count, count
        self.free_gang, self.forming, self.joins = ends["free_gang"], ends["forming"], ends["joins"]

    cdef int enter(self, int32_t slot, int32_t tenant, int32_t group, bint preemptible, bint preempts,
                   double est) except -1 nogil:
        """Fill the record of a pod that has taken a slot."""
        cdef int32_t room = self.room
        cdef Member* grown
        cdef Member* m
        if slot >= room:
            room = 2 * slot + 64
            grown = <Member*> realloc(self.members, room * sizeof(Member))
            if grown == NULL:
                with gil:
                    raise MemoryError()
            memset(&grown[self.room], 0, (room - self.room) * sizeof(Member))
            self.members, self.room = grown, room
        m = &self.members[slot]
        m.tenant, m.group, m.preemptible, m.preempts, m.est, m.est_left = tenant, group, preemptible, preempts, est, est
        m.gang = m.next_in_gang = m.next_on_node = m.previous_on_node = -1
        m.joined = m.place = 0
        m.restart = m.attained = 0.0
        return 0

    cdef void link(self, int32_t slot, int n) noexcept nogil:
        """Add the pod to those of node ``n``."""
        cdef Member* m = &self.members[slot]
        self.moves += 1
        self.moved__n[n] += 1
        m.previous_on_node, m.next_on_node = -1, self.first__n[n]
        if m.next_on_node >= 0:
            self.members[m.next_on_node].previous_on_node = slot
        self.first__n[n] = slot

    cdef void unlink(self, int32_t slot, int n) noexcept nogil:
        """Remove the pod from those of node ``n``."""
        cdef Member* m = &self.members[slot]
        self.moves += 1
        self.moved__n[n] += 1
        if m.previous_on_node >= 0:
            self.members[m.previous_on_node].next_on_node = m.next_on_node
        else:
            self.first__n[n] = m.next_on_node
        if m.next_on_node >= 0:
            self.members[m.next_on_node].previous_on_node = m.previous_on_node
        m.next_on_node = m.previous_on_node = -1

    cdef bint join_gang(self, int32_t slot, int64_t job, int32_t size) except -1 nogil:
        """Add the pod to the forming gang of its job; whether the gang is complete now."""
        cdef int32_t before = -1
        cdef int32_t at = self.forming
        cdef Gang* gang
        while at >= 0 and (self.gangs[at].job != job or self.gangs[at].size != size):
            before, at = at, self.gangs[at].next_gang
        if at < 0:
            at, before = self.new_gang(), -1
            gang = &self.gangs[at]
            gang.job, gang.size, gang.count, gang.first, gang.next_gang = job, size, 0, slot, self.forming
            self.forming = at
        gang = &self.gangs[at]
        if gang.count > 0:
            self.members[gang.last].next_in_gang = slot
        gang.last = slot
        gang.count += 1
        self.members[slot].gang = at
        if gang.count < size:
            return False
        if before >= 0:
            self.gangs[before].next_gang = gang.next_gang
        else:
            self.forming = gang.next_gang
        return True

    cdef int32_t new_gang(self) except -1 nogil:
        """An unused gang record."""
        cdef int32_t at = self.free_gang
        cdef Gang* grown
        if at >= 0:
            self.free_gang = self.gangs[at].next_gang
            return at
        if self.n_gangs == self.gang_room:
            grown = <Gang*> realloc(self.gangs, (2 * self.gang_room + 16) * sizeof(Gang))
            if grown == NULL:
                with gil:
                    raise MemoryError()
            self.gangs, self.gang_room = grown, 2 * self.gang_room + 16
        self.n_gangs += 1
        return self.n_gangs - 1

    cdef void leave(self, int32_t slot) noexcept nogil:
        """Remove a pod that leaves the system from its gang."""
        cdef int32_t which = self.members[slot].gang
        cdef int32_t before = -1
        cdef int32_t at
        cdef Gang* gang
        if which < 0:
            return
        gang = &self.gangs[which]
        at = gang.first
        while at != slot:
            before, at = at, self.members[at].next_in_gang
        if before >= 0:
            self.members[before].next_in_gang = self.members[slot].next_in_gang
        else:
            gang.first = self.members[slot].next_in_gang
        if gang.last == slot:
            gang.last = before
        gang.count -= 1
        if gang.count == 0:
            gang.next_gang, self.free_gang = self.free_gang, which
        self.members[slot].gang = self.members[slot].next_in_gang = -1

    cdef int32_t entry_slot(self, int32_t slot) noexcept nogil:
        """The slot of the pod's entry in the waiting line: its own, or the last of its gang."""
        return self.gangs[self.members[slot].gang].last if self.members[slot].gang >= 0 else slot

    cdef int32_t first(self, int32_t slot) noexcept nogil:
        """The first slot of the pod's entry."""
        return self.gangs[self.members[slot].gang].first if self.members[slot].gang >= 0 else slot

    cdef int32_t next(self, int32_t slot) noexcept nogil:
        """The next slot of the same entry, or -1."""
        return self.members[slot].next_in_gang


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
