"""What a job of an ordered run asks for, holds and remembers, and the order in which jobs are served.

An order is a list of terms, each with a sign; jobs are sorted by the first one, ties by the next one, and what is
still equal stays as it was in the round before.
"""

cimport cython
from libc.stdint cimport int32_t
from libc.stdlib cimport free
from fastsim_ext.memory cimport memory_grown
from fastsim_ext.rounds.job_table cimport Job, JobTable
from fastsim_ext.sorting cimport MOST_TERMS, Claim, OrderContext, claim_term, merge_sorted


@cython.final
cdef class OrderedJobTable:
    """Rows of stakes; ``terms`` are (term, sign) and ``level_s`` the steps of the term LEVEL, GPU seconds."""

    def __init__(self, terms, level_s):
        cdef int i
        if not 1 <= len(terms) <= MOST_TERMS:
            raise ValueError(f"{len(terms)} terms, expected 1 to {MOST_TERMS}")
        self.terms, self.level_s = len(terms), level_s
        for i in range(self.terms):
            self.term[i], self.sign[i] = terms[i]

    def __dealloc__(self):
        free(self.stakes)
        free(self.order)
        free(self.spare)
        free(self.keys)

    cdef int reserve(self, int32_t n) except -1 nogil:
        """Room for so many rows."""
        if n <= self.room:
            return 0
        n = max(n, 2 * self.room + 64)
        self.stakes = <OrderedJob*> memory_grown(self.stakes, n, sizeof(OrderedJob))
        self.order = <int32_t*> memory_grown(self.order, n, sizeof(int32_t))
        self.spare = <int32_t*> memory_grown(self.spare, n, sizeof(int32_t))
        self.keys = <double*> memory_grown(self.keys, n * <long long> MOST_TERMS, sizeof(double))
        self.room = n
        return 0

    cdef int enter(self, const OrderedJob* new) except -1 nogil:
        """Append a job, also at the end of the order."""
        self.reserve(self.n + 1)
        self.stakes[self.n] = new[0]
        self.order[self.n] = self.n
        self.n += 1
        return 0

    cdef void compact(self, JobTable table) noexcept nogil:
        """Remove the jobs that have ended; before the table of gangs does."""
        cdef int32_t i, row
        cdef int32_t kept = 0
        for i in range(self.n):
            self.spare[i] = kept
            if not table.gangs[i].ended:
                if kept != i:
                    self.stakes[kept] = self.stakes[i]
                kept += 1
        kept = 0
        for i in range(self.n):
            row = self.order[i]
            if not table.gangs[row].ended:
                self.order[kept] = self.spare[row]
                kept += 1
        self.n = kept

    # ------------------------------------------------------------------ order

    cdef void arrange(self, JobTable table, const OrderContext* yard) noexcept nogil:
        """Sort the rows; equal ones stay as they are."""
        cdef int32_t i
        cdef double* key = self.keys
        cdef int32_t* other
        for i in range(self.n):
            self.measure(&table.gangs[i], &self.stakes[i], yard, key)
            key += MOST_TERMS
        if merge_sorted(self.order, self.spare, self.n, self.keys, self.terms):
            other = self.order
            self.order, self.spare = self.spare, other

    cdef void measure(self, const Job* gang, const OrderedJob* stake, const OrderContext* yard,
                      double* key) noexcept nogil:
        """A job's sort key."""
        cdef Claim claim
        cdef int32_t k
        claim.submit_s, claim.last_s, claim.attained_s = gang.submit_s, stake.last_s, stake.attained_s
        claim.left_s, claim.total_s = (gang.total - gang.run) * stake.step_s, gang.total * stake.step_s
        if not yard.plain:
            claim.left_s /= stake.speedup
        claim.gpus, claim.cpu_milli, claim.memory_mib = gang.num_gpu, stake.need[0], stake.need[1]
        claim.weight, claim.priority = gang.weight, stake.priority
        for k in range(self.terms):
            key[k] = self.sign[k] * claim_term(self.term[k], &claim, yard, self.level_s)

    def speedups(self):
        """What each row gains at present over its fair share."""
        return [self.stakes[i].speedup for i in range(self.n)]

    def ordered(self):
        """Rows in the order of the last round."""
        return [self.order[i] for i in range(self.n)]
