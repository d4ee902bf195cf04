"""The waiting line of pods in an order: an entry joins behind all entries with a key that is not larger.

Most keys hold as long as an entry waits, so the line is only sorted again when the nodes have changed, or where a key
counts the time.
"""

cimport cython
from libc.math cimport INFINITY, isnan
from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memcpy
from fastsim_ext.memory cimport memory_grown
from fastsim_ext.sorting cimport COLUMN, FINISH_RATIO, MOST_TERMS, KeyInputs, key_term, merge_after, merge_sorted
from fastsim_ext.state.node_table cimport NodeTable, Totals
from fastsim_ext.state.pod_membership cimport Member, PodMembership
from fastsim_ext.state.pod_table cimport WorkTable
from fastsim_ext.types cimport Pod


@cython.final
cdef class OrderedQueue:
    """Keeps the line of ``work`` sorted; ``terms`` are (term, sign), ``level_s`` the steps of the term LEVEL."""

    def __init__(self, NodeTable nodes, WorkTable work, PodMembership membership, terms, level_s):
        cdef int i
        if not 1 <= len(terms) <= MOST_TERMS:
            raise ValueError(f"{len(terms)} terms, expected 1 to {MOST_TERMS}")
        self.nodes, self.work, self.membership, self.terms, self.level_s = nodes, work, membership, len(terms), level_s
        for i in range(self.terms):
            self.term[i], self.sign[i] = terms[i]
            self.moving |= self.term[i] == FINISH_RATIO
            self.reads |= self.term[i] == COLUMN

    def __dealloc__(self):
        free(self.keys)
        free(self.value)
        free(self.rows)
        free(self.spare)

    cdef int reserve(self) except -1 nogil:
        """Room for every slot."""
        cdef int32_t n = 2 * self.work.n_slots + 64
        if self.work.n_slots <= self.room:
            return 0
        self.keys = <double*> memory_grown(self.keys, n * <long long> MOST_TERMS, sizeof(double))
        self.value = <double*> memory_grown(self.value, n * <long long> MOST_TERMS, sizeof(double))
        self.rows = <int32_t*> memory_grown(self.rows, n, sizeof(int32_t))
        self.spare = <int32_t*> memory_grown(self.spare, n, sizeof(int32_t))
        self.room = n
        return 0

    cdef int keep(self, int32_t slot, const double* value) except -1 nogil:
        """Store the values of a pod that has taken a slot."""
        self.reserve()
        memcpy(&self.value[slot * <Py_ssize_t> MOST_TERMS], value, MOST_TERMS * sizeof(double))
        return 0

    cdef bint current(self, double now) noexcept nogil:
        """Whether all keys are those of now."""
        cdef const Totals* total = &self.nodes.total
        return (self.known and (not self.moving or self.context.now_s == now) and self.cap[0] == total.cpu_cap
                and self.cap[1] == total.mem_cap and self.cap[2] == total.gpu_cap)

    cdef int renew(self, double now) except -1 nogil:
        """Sort the line by the keys of now; equal entries stay as they are."""
        cdef int32_t n = 0
        cdef int32_t at
        if self.current(now):
            return 0
        self.reserve()
        self.cap[0], self.cap[1] = self.nodes.total.cpu_cap, self.nodes.total.mem_cap
        self.cap[2] = self.nodes.total.gpu_cap
        self.context.now_s, self.context.gpus = now, self.cap[2] / 1000.0
        self.context.cpu_milli, self.context.memory_mib, self.known = self.cap[0], self.cap[1], True
        at = self.work.head
        while at >= 0:
            self.measure(at)
            self.rows[n] = at
            n += 1
            at = self.work.slots[at].after
        self.work.relink(self.spare if merge_sorted(self.rows, self.spare, n, self.keys, self.terms) else self.rows, n)
        return 0

    cdef int join(self, int32_t slot, double now) except -1 nogil:
        """Insert an entry at its place in the line."""
        cdef int32_t at
        self.renew(now)
        self.reserve()
        self.measure(slot)
        at = self.work.tail
        while at >= 0 and merge_after(&self.keys[at * <Py_ssize_t> MOST_TERMS],
                                      &self.keys[slot * <Py_ssize_t> MOST_TERMS], self.terms):
            at = self.work.slots[at].before
        self.work.queue_behind(slot, at)
        return 0

    cdef KeyInputs inputs(self, int32_t slot) noexcept nogil:
        """Quantities for the sort key of an entry: a gang sums its pods and takes the longest duration."""
        cdef KeyInputs inputs
        cdef const Member* m = &self.membership.members[slot]
        cdef const Pod* pod
        cdef int32_t at = self.membership.first(slot)
        inputs.submit_s, inputs.attained_s = self.work.slots[slot].submit, m.attained
        inputs.last_s, inputs.weight, inputs.priority = 0.0, 1.0, 0
        inputs.left_s = inputs.total_s = inputs.gpus = inputs.cpu_milli = inputs.memory_mib = 0.0
        while at >= 0:
            m = &self.membership.members[at]
            pod = &self.work.classes[self.work.slots[at].cls]
            inputs.left_s = max(inputs.left_s, self.membership.estimated_s(at))
            inputs.total_s = max(inputs.total_s, INFINITY if isnan(m.est) else m.est)
            inputs.gpus += pod.num_gpu * pod.milli + pod.mig
            inputs.cpu_milli += pod.cpu
            inputs.memory_mib += pod.mem
            at = self.membership.next(at)
        inputs.gpus /= 1000.0
        return inputs

    cdef double least(self, int32_t slot, int32_t k) noexcept nogil:
        """The value of an entry for term ``k``: a gang has that of its pod that comes first by it."""
        cdef int32_t at = self.membership.first(slot)
        cdef double value = INFINITY
        while at >= 0:
            value = min(value, self.value[at * <Py_ssize_t> MOST_TERMS + k])
            at = self.membership.next(at)
        return value

    cdef void measure(self, int32_t slot) noexcept nogil:
        """Make the key of an entry."""
        cdef KeyInputs inputs = self.inputs(slot)
        cdef double* key = &self.keys[slot * <Py_ssize_t> MOST_TERMS]
        cdef int32_t k
        for k in range(self.terms):
            if self.term[k] == COLUMN:
                key[k] = self.least(slot, k)
            else:
                key[k] = self.sign[k] * key_term(self.term[k], &inputs, &self.context, self.level_s)
