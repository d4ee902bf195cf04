"""Tenant, group, gang and run time estimate of each pod, and the pods of each node.

A gang is a list of slots in the order of arrival; its entry in the waiting line is the last of them.
"""

from libc.math cimport INFINITY, floor, isnan
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset
from cpython.bytes cimport PyBytes_FromStringAndSize
from fastsim_ext.state.pod_table cimport Slot


cdef double saved_work(double worked, double interval) noexcept nogil:
    """Seconds of work that a pod keeps when it stops: those before its last checkpoint. NaN: it keeps none."""
    if interval == 0.0:
        return worked
    if isnan(interval):
        return 0.0
    return min(worked, floor(worked / interval) * interval)  # the product may be rounded up


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
        self.held = sum([self.members[slot].held for slot in range(room)])

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
        m.joined = m.place = m.job = 0
        m.held = False
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
            gang.stage = NOT_BEGUN
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

    cdef int wait_for_gang(self, int32_t slot, int64_t job) noexcept nogil:
        """The Stage of the gangs of a job, BEGUN if it has none; a pod that is alone waits for one that has not begun.

        One gang that has begun is enough; those that were given up count if there are no others.
        """
        cdef int32_t at
        cdef bint waits = False, given_up = False
        for at in range(self.n_gangs):
            if self.gangs[at].job == job and self.gangs[at].count > 0 and self.gangs[at].stage == BEGUN:
                return BEGUN
            waits = waits or (self.gangs[at].job == job and self.gangs[at].count > 0)
            given_up = given_up or (self.gangs[at].job == job and self.gangs[at].stage == GIVEN_UP)
        if waits:
            self.members[slot].held, self.members[slot].job = True, job
            self.held += 1
        return NOT_BEGUN if waits else GIVEN_UP if given_up else BEGUN

    cdef bint has_others(self, int32_t slot) noexcept nogil:
        """Whether another gang of the job of a gang's pod is there."""
        cdef int32_t own = self.members[slot].gang
        cdef int32_t at
        for at in range(self.n_gangs):
            if at != own and self.gangs[at].count > 0 and self.gangs[at].job == self.gangs[own].job:
                return True
        return False

    cdef int32_t next_held(self, int64_t job, const Slot* slots) noexcept nogil:
        """The first pod by arrival that waits for a gang of this job, which it does no longer; -1 if there is none."""
        cdef int32_t s, first = -1
        for s in range(self.room if self.held else 0):
            if self.members[s].held and self.members[s].job == job and (first < 0 or slots[s].seq < slots[first].seq):
                first = s
        if first >= 0:
            self.members[first].held = False
            self.held -= 1
        return first

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
        if gang.count == 0 and not (self.follows and gang.stage == GIVEN_UP):
            gang.stage, gang.job = NOT_BEGUN, 0
            gang.next_gang, self.free_gang = self.free_gang, which
        self.members[slot].gang = self.members[slot].next_in_gang = -1

    cdef int32_t entry_slot(self, int32_t slot) noexcept nogil:
        """The slot of the pod's entry in the waiting line: its own, or the last of its gang."""
        return self.gangs[self.members[slot].gang].last if self.members[slot].gang >= 0 else slot

    cdef int32_t first(self, int32_t slot) noexcept nogil:
        """The first slot of the pod's entry."""
        return self.gangs[self.members[slot].gang].first if self.members[slot].gang >= 0 else slot

    cdef int64_t size(self, int32_t slot) noexcept nogil:
        """Pods of an entry."""
        return self.gangs[self.members[slot].gang].count if self.members[slot].gang >= 0 else 1

    cdef int32_t earliest_on(self, int n, const Slot* slots) noexcept nogil:
        """The pod of a node that arrived first, or -1."""
        cdef int32_t at = self.first__n[n]
        cdef int32_t first = at
        while at >= 0:
            if slots[at].seq < slots[first].seq:
                first = at
            at = self.members[at].next_on_node
        return first

    cdef int32_t next(self, int32_t slot) noexcept nogil:
        """The next slot of the same entry, or -1."""
        return self.members[slot].next_in_gang

    cdef double estimated_s(self, int32_t slot) noexcept nogil:
        """Estimated seconds that a waiting pod will run."""
        cdef const Member* m = &self.members[slot]
        return INFINITY if isnan(m.est_left) else max(0.0, m.est_left + m.restart)
