"""The active jobs of a run in rounds, in order of their ids, and the pairs of them that have a history of their own.

Most pairs never have a share and never run. Their state follows from their members, so only the other pairs have a row.
"""

cimport cython
from libc.math cimport NAN, isnan
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memmove, memset
from cpython.bytes cimport PyBytes_FromStringAndSize
from fastsim_ext.memory cimport memory_grown


cdef void job_begin(Job* job, int64_t id, int32_t kind, int32_t num_gpu, int32_t tenant, double submit_s,
                    double total, double weight, double deadline_s) noexcept nogil:
    """A job without progress; its estimated kind is its own."""
    memset(job, 0, sizeof(Job))  # bytes between fields are stored, too
    job.id, job.kind, job.estimated_kind, job.num_gpu, job.tenant = id, kind, kind, num_gpu, tenant
    job.submit_s, job.total, job.weight, job.deadline_s = submit_s, total, weight, deadline_s
    job.run, job.cost, job.first_s, job.finish_s = 0.0, 0.0, NAN, NAN
    job.rounds, job.failures, job.place, job.task = 0, 0, 0, -1
    job.gpu_s, job.paused_s, job.left_s, job.restarts, job.preemptions = 0.0, 0.0, 0.0, 0, 0
    job.delayed_s = 0.0
    job.known = job.settled = job.taken = job.holds = job.ended = False


cdef double job_runs(Job* job, double now_s, bint kept, double restart_s) noexcept nogil:
    """It has GPUs in the round that begins now; the seconds that it loses to a restart: its first start costs nothing.

    ``kept``: they are those of the last round, with the same mate.
    """
    cdef bint first = isnan(job.first_s)
    if not job.holds and not first:
        job.paused_s += now_s - job.left_s
        job.preemptions -= job.left_s == now_s  # other GPUs at once
        job.restarts += 1
    elif job.holds and not kept:
        job.restarts += 1
    job.holds = True
    job.rounds += 1
    if first:
        job.first_s = now_s
    return 0.0 if kept or first else restart_s


cdef void job_waits(Job* job, double now_s) noexcept nogil:
    """It had GPUs and has none in the round that begins now."""
    job.holds, job.left_s = False, now_s
    job.preemptions += 1


@cython.final
cdef class JobTable:
    """Rows of jobs and pairs; ``width`` GPU models, rounds of twice ``half`` seconds, ``owed`` to new pairs."""

    def __cinit__(self, int32_t width, double half, double owed=0.0):
        self.width, self.half, self.owed = width, half, owed
        self.type_time = <double*> calloc(max(width, 1), sizeof(double))
        if self.type_time == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.jobs)
        free(self.accounts)
        free(self.pairs)
        free(self.shared)
        free(self.type_time)

    cdef int enter(self, const Job* new) except -1 nogil:
        """Append a job; its id is above all others."""
        cdef int g
        if self.n == self.room:
            self.jobs = <Job*> memory_grown(self.jobs, 2 * self.room + 64, sizeof(Job))
            self.accounts = <ShareAccount*> memory_grown(self.accounts, (2 * self.room + 64) * <int64_t> self.width,
                                                         sizeof(ShareAccount))
            self.room = 2 * self.room + 64
        self.jobs[self.n] = new[0]
        for g in range(self.width):
            self.accounts[self.n * self.width + g] = ShareAccount(self.half, 0.0, 0.0, NEVER)
        self.n += 1
        self.added += 1
        return 0

    cdef int32_t find(self, int32_t row, int32_t mate) noexcept nogil:
        """Index of the pair, or -1 - the index at which to insert it."""
        cdef int32_t low = 0
        cdef int32_t high = self.n_pairs
        cdef int32_t middle
        cdef const Pair* c
        while low < high:
            middle = (low + high) // 2
            c = &self.pairs[middle]
            if c.mate < mate or (c.mate == mate and c.row < row):
                low = middle + 1
            else:
                high = middle
        if low < self.n_pairs and self.pairs[low].mate == mate and self.pairs[low].row == row:
            return low
        return -1 - low

    cdef int32_t pair(self, int32_t row, int32_t mate) except -1 nogil:
        """Index of the pair of these rows; a new pair gets the accounts it would have had from the start."""
        cdef int32_t at = self.find(row, mate)
        cdef int32_t w = self.width
        cdef int32_t g
        cdef double past
        if at >= 0:
            return at
        at = -1 - at
        if self.n_pairs == self.pair_room:
            self.pairs = <Pair*> memory_grown(self.pairs, 2 * self.pair_room + 64, sizeof(Pair))
            self.shared = <ShareAccount*> memory_grown(self.shared, (2 * self.pair_room + 64) * <int64_t> w,
                                                       sizeof(ShareAccount))
            self.pair_room = 2 * self.pair_room + 64
        memmove(&self.pairs[at + 1], &self.pairs[at], (self.n_pairs - at) * sizeof(Pair))
        memmove(&self.shared[(at + 1) * w], &self.shared[at * w], (self.n_pairs - at) * w * sizeof(ShareAccount))
        self.pairs[at] = Pair(row, mate, self.jobs[row].num_gpu)
        # A pair begins with less received than a job by what the first settlement counts as owed.
        past = self.owed if self.jobs[row].settled and self.jobs[mate].settled else 0.0
        for g in range(w):
            self.shared[at * w + g] = ShareAccount(self.half - self.owed + past, past, 0.0, NEVER)
        self.n_pairs += 1
        return at

    cdef void settle(self, double elapsed, bint with_pairs) noexcept nogil:
        """Turn shares that were not received into deficits; everything starts again from half a round."""
        cdef int64_t i
        cdef int64_t singles = <int64_t> self.n * self.width
        cdef int64_t candidates = self.n
        for i in range(singles):
            settle_account(&self.accounts[i], elapsed, self.half)
        for i in range(<int64_t> self.n_pairs * self.width):
            settle_account(&self.shared[i], elapsed, self.half)
        for i in range(self.n):
            self.jobs[i].settled = True
        if with_pairs:
            candidates += self.possible_pairs()
        for i in range(self.width):
            self.type_time[i] = self.half * candidates

    cdef int64_t possible_pairs(self) noexcept nogil:
        """Pairs of jobs with as many GPUs."""
        cdef int64_t total = 0
        cdef int64_t alike
        cdef int32_t i, j, size
        cdef int32_t last = 0
        while True:  # sizes from the smallest on; there are few
            size = 0
            alike = 0
            for i in range(self.n):
                j = self.jobs[i].num_gpu
                if j > last and (size == 0 or j < size):
                    size, alike = j, 0
                alike += j == size
            if size == 0:
                return total
            total += alike * (alike - 1) // 2
            last = size

    cdef void forget_shares(self) noexcept nogil:
        """Drop the shares of the last allocation, and pairs without any history."""
        cdef int64_t i
        cdef int32_t left = 0
        cdef int32_t w = self.width
        for i in range(<int64_t> self.n * w):
            self.accounts[i].share = 0
        for i in range(self.n):
            self.jobs[i].known = False
        for i in range(self.n_pairs):
            if self.drop_shares(i):
                self.move_pair(i, left)
                left += 1
        self.n_pairs = left

    cdef bint drop_shares(self, int64_t pair) noexcept nogil:
        """Clear the shares of a pair; whether it differs from a pair that never ran."""
        cdef ShareAccount* c = &self.shared[pair * self.width]
        cdef bint differs = False
        cdef int g
        for g in range(self.width):
            c[g].share = 0
            differs |= c[g].received != self.half or c[g].deficit != self.owed or c[g].ran != NEVER
        return differs

    cdef void move_pair(self, int64_t source, int64_t target) noexcept nogil:
        cdef int32_t w = self.width
        if source != target:
            self.pairs[target] = self.pairs[source]
            memmove(&self.shared[target * w], &self.shared[source * w], w * sizeof(ShareAccount))

    cdef void compact(self) noexcept nogil:
        """Remove the jobs that have ended and every couple with one of them."""
        cdef int32_t i
        cdef int32_t left = 0
        cdef int32_t w = self.width
        cdef Pair* c
        for i in range(self.n):
            self.jobs[i].place = left
            left += not self.jobs[i].ended
        left = 0
        for i in range(self.n_pairs):
            c = &self.pairs[i]
            if not self.jobs[c.row].ended and not self.jobs[c.mate].ended:
                c.row, c.mate = self.jobs[c.row].place, self.jobs[c.mate].place
                self.move_pair(i, left)
                left += 1
        self.n_pairs = left
        left = 0
        for i in range(self.n):
            if self.jobs[i].ended:
                continue
            if left != i:
                self.jobs[left] = self.jobs[i]
                memmove(&self.accounts[left * w], &self.accounts[i * w], w * sizeof(ShareAccount))
            left += 1
        self.n = left

    cdef int32_t row_of(self, int64_t id) noexcept nogil:
        """Row of a job, or -1."""
        cdef int32_t low = 0
        cdef int32_t high = self.n
        cdef int32_t middle
        while low < high:
            middle = (low + high) // 2
            if self.jobs[middle].id < id:
                low = middle + 1
            else:
                high = middle
        return low if low < self.n and self.jobs[low].id == id else -1

    def rows(self):
        """The active jobs as the bytes of their records."""
        return PyBytes_FromStringAndSize(<char*> self.jobs, self.n * sizeof(Job))

    def observed(self):
        """(job, job, model) for each pair that first ran on a model since the last call."""
        cdef int64_t i
        cdef int64_t w = self.width
        cdef const Pair* c
        pairs = []
        for i in range(self.n_pairs * w):
            if self.shared[i].ran == UNREPORTED:
                self.shared[i].ran = REPORTED
                c = &self.pairs[i // w]
                pairs.append((self.jobs[c.row].id, self.jobs[c.mate].id, i % w))
        return pairs

    cpdef int verify(self) except -1:
        """Jobs rise by id, pairs by their members."""
        cdef int32_t i
        for i in range(1, self.n):
            assert self.jobs[i - 1].id < self.jobs[i].id, f"jobs out of order at row {i}"
        for i in range(self.n_pairs):
            c = self.pairs[i]
            assert 0 <= c.row < c.mate < self.n, f"couple {i} of rows {c.row} and {c.mate}"
            assert self.find(c.row, c.mate) == i, f"couple {i} stands in the wrong place"
            assert self.jobs[c.row].num_gpu == self.jobs[c.mate].num_gpu == c.num_gpu, f"couple {i}: sizes differ"
        return 0


cdef inline void settle_account(ShareAccount* account, double elapsed, double half) noexcept nogil:
    account.deficit += account.share * elapsed - (account.received - half)
    account.received = half
