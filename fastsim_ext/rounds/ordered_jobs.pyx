"""Demand, allocation and service of jobs in ordered rounds, and the order in which they are served.

An order is a list of terms, each with a sign; jobs are sorted by the first one, ties by the next one, and what is
still equal stays as it was in the round before.
"""

cimport cython
from libc.stdint cimport int32_t
from libc.stdlib cimport free
from fastsim_ext.memory cimport memory_grown
from fastsim_ext.rounds.job_table cimport Job, JobTable
from fastsim_ext.sorting cimport COLUMN, MOST_TERMS, KeyInputs, OrderContext, key_term, merge_sorted


@cython.final
cdef class OrderedJobTable:
    """Rows of ordered jobs; ``terms`` are (term, sign) and ``level_s`` the steps of the term LEVEL, GPU seconds."""

    def __init__(self, terms, level_s):
        cdef int i
        if not 1 <= len(terms) <= MOST_TERMS:
            raise ValueError(f"{len(terms)} terms, expected 1 to {MOST_TERMS}")
        self.terms, self.level_s = len(terms), level_s
        for i in range(self.terms):
            self.term[i], self.sign[i] = terms[i]

    def __dealloc__(self):
        free(self.entries)
        free(self.order)
        free(self.spare)
        free(self.keys)

    cdef int reserve(self, int32_t n) except -1 nogil:
        """Room for so many rows."""
        if n <= self.room:
            return 0
        n = max(n, 2 * self.room + 64)
        self.entries = <OrderedJob*> memory_grown(self.entries, n, sizeof(OrderedJob))
        self.order = <int32_t*> memory_grown(self.order, n, sizeof(int32_t))
        self.spare = <int32_t*> memory_grown(self.spare, n, sizeof(int32_t))
        self.keys = <double*> memory_grown(self.keys, n * <long long> MOST_TERMS, sizeof(double))
        self.room = n
        return 0

    cdef int enter(self, const OrderedJob* new) except -1 nogil:
        """Append a job, also at the end of the order."""
        self.reserve(self.n + 1)
        self.entries[self.n] = new[0]
        self.order[self.n] = self.n
        self.n += 1
        return 0

    cdef void compact(self, JobTable table) noexcept nogil:
        """Remove the jobs that have ended; before the table of jobs does."""
        cdef int32_t i, row
        cdef int32_t left = 0
        for i in range(self.n):
            self.spare[i] = left
            if not table.jobs[i].ended:
                if left != i:
                    self.entries[left] = self.entries[i]
                left += 1
        left = 0
        for i in range(self.n):
            row = self.order[i]
            if not table.jobs[row].ended:
                self.order[left] = self.spare[row]
                left += 1
        self.n = left

    # ------------------------------------------------------------------ order

    cdef void arrange(self, JobTable table, const OrderContext* context) noexcept nogil:
        """Sort the rows; equal ones stay as they are."""
        cdef int32_t i
        cdef double* key = self.keys
        cdef int32_t* other
        for i in range(self.n):
            self.measure(&table.jobs[i], &self.entries[i], context, key)
            key += MOST_TERMS
        if merge_sorted(self.order, self.spare, self.n, self.keys, self.terms):
            other = self.order
            self.order, self.spare = self.spare, other

    cdef void measure(self, const Job* job, const OrderedJob* entry, const OrderContext* context,
                      double* key) noexcept nogil:
        """A job's sort key."""
        cdef KeyInputs inputs
        cdef int32_t k
        inputs.submit_s, inputs.last_s, inputs.attained_s = job.submit_s, entry.last_s, entry.attained_s
        inputs.left_s, inputs.total_s = (job.total - job.run) * entry.step_s, job.total * entry.step_s
        if not context.plain:
            inputs.left_s /= entry.speedup
        inputs.gpus, inputs.cpu_milli, inputs.memory_mib = job.num_gpu, entry.need[0], entry.need[1]
        inputs.weight, inputs.priority = job.weight, entry.priority
        for k in range(self.terms):
            if self.term[k] == COLUMN:
                key[k] = context.value[job.id * MOST_TERMS + k]
            else:
                key[k] = self.sign[k] * key_term(self.term[k], &inputs, context, self.level_s)

    def speedups(self):
        """Present speedup of each row over its fair share."""
        return [self.entries[i].speedup for i in range(self.n)]

    def ordered(self):
        """Rows in the order of the last round."""
        return [self.order[i] for i in range(self.n)]
