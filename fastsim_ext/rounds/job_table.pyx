"""The active jobs of a run in rounds, in order of their ids, and the pairs of them that have a history of their own.

Most pairs never have a share and never run. All they could remember follows from their members, so only the others,
here called couples, have a row.
"""

cimport cython
from libc.math cimport NAN, isnan
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memmove
from cpython.bytes cimport PyBytes_FromStringAndSize
from fastsim_ext.memory cimport memory_grown


cdef void job_begin(Job* gang, int64_t id, int32_t kind, int32_t num_gpu, int32_t tenant, double submit_s,
                    double total, double weight, double deadline_s) noexcept nogil:
    """A job that has done nothing yet, and is believed to be what it is."""
    gang.id, gang.kind, gang.guise, gang.num_gpu, gang.tenant = id, kind, kind, num_gpu, tenant
    gang.submit_s, gang.total, gang.weight, gang.deadline_s = submit_s, total, weight, deadline_s
    gang.run, gang.cost, gang.first_s, gang.finish_s = 0.0, 0.0, NAN, NAN
    gang.rounds, gang.failures, gang.place, gang.task = 0, 0, 0, -1
    gang.gpu_s, gang.paused_s, gang.left_s, gang.restarts, gang.preemptions = 0.0, 0.0, 0.0, 0, 0
    gang.known = gang.settled = gang.taken = gang.holds = gang.ended = False


cdef void gang_stays(Job* gang, double now_s, bint kept) noexcept nogil:
    """It has GPUs in the round that begins now; ``kept``: those of the last round, with the same mate."""
    if not gang.holds and not isnan(gang.first_s):
        gang.paused_s += now_s - gang.left_s
        gang.preemptions -= gang.left_s == now_s  # other GPUs at once
        gang.restarts += 1
    elif gang.holds and not kept:
        gang.restarts += 1
    gang.holds = True


cdef void gang_waits(Job* gang, double now_s) noexcept nogil:
    """It had GPUs and has none in the round that begins now."""
    gang.holds, gang.left_s = False, now_s
    gang.preemptions += 1


@cython.final
cdef class JobTable:
    """Rows of gangs and couples; ``width`` GPU models, rounds of twice ``half`` seconds."""

    def __cinit__(self, int32_t width, double half):
        self.width, self.half = width, half
        self.type_time = <double*> calloc(max(width, 1), sizeof(double))
        if self.type_time == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.gangs)
        free(self.claims)
        free(self.couples)
        free(self.shared)
        free(self.type_time)

    cdef int enter(self, const Job* new) except -1 nogil:
        """Append a job; its id is above all others."""
        cdef int g
        if self.n == self.room:
            self.gangs = <Job*> memory_grown(self.gangs, 2 * self.room + 64, sizeof(Job))
            self.claims = <ShareAccount*> memory_grown(self.claims, (2 * self.room + 64) * <int64_t> self.width,
                                                       sizeof(ShareAccount))
            self.room = 2 * self.room + 64
        self.gangs[self.n] = new[0]
        for g in range(self.width):
            self.claims[self.n * self.width + g] = ShareAccount(self.half, 0.0, 0.0, NEVER)
        self.n += 1
        self.added += 1
        return 0

    cdef int32_t found(self, int32_t row, int32_t mate) noexcept nogil:
        """Where the couple stands, or should be put: -1 - place."""
        cdef int32_t low = 0
        cdef int32_t high = self.n_couples
        cdef int32_t middle
        cdef const Pair* c
        while low < high:
            middle = (low + high) // 2
            c = &self.couples[middle]
            if c.mate < mate or (c.mate == mate and c.row < row):
                low = middle + 1
            else:
                high = middle
        if low < self.n_couples and self.couples[low].mate == mate and self.couples[low].row == row:
            return low
        return -1 - low

    cdef int32_t couple(self, int32_t row, int32_t mate) except -1 nogil:
        """The couple of these rows, with all that it would remember had it been there from the start."""
        cdef int32_t at = self.found(row, mate)
        cdef int32_t w = self.width
        cdef int32_t g
        cdef double past
        if at >= 0:
            return at
        at = -1 - at
        if self.n_couples == self.couple_room:
            self.couples = <Pair*> memory_grown(self.couples, 2 * self.couple_room + 64, sizeof(Pair))
            self.shared = <ShareAccount*> memory_grown(self.shared, (2 * self.couple_room + 64) * <int64_t> w,
                                                       sizeof(ShareAccount))
            self.couple_room = 2 * self.couple_room + 64
        memmove(&self.couples[at + 1], &self.couples[at], (self.n_couples - at) * sizeof(Pair))
        memmove(&self.shared[(at + 1) * w], &self.shared[at * w], (self.n_couples - at) * w * sizeof(ShareAccount))
        self.couples[at] = Pair(row, mate, self.gangs[row].num_gpu)
        # A pair begins with nothing received; the first settlement counts that as half a round owed.
        past = self.half if self.gangs[row].settled and self.gangs[mate].settled else 0.0
        for g in range(w):
            self.shared[at * w + g] = ShareAccount(past, past, 0.0, NEVER)
        self.n_couples += 1
        return at

    cdef void settle(self, double elapsed, bint pairs) noexcept nogil:
        """Turn what was promised and not received into deficits; everything starts again from half a round."""
        cdef int64_t i
        cdef int64_t singles = <int64_t> self.n * self.width
        cdef int64_t candidates = self.n
        for i in range(singles):
            owed(&self.claims[i], elapsed, self.half)
        for i in range(<int64_t> self.n_couples * self.width):
            owed(&self.shared[i], elapsed, self.half)
        for i in range(self.n):
            self.gangs[i].settled = True
        if pairs:
            candidates += self.possible_couples()
        for i in range(self.width):
            self.type_time[i] = self.half * candidates

    cdef int64_t possible_couples(self) noexcept nogil:
        """Pairs of jobs with as many GPUs."""
        cdef int64_t total = 0
        cdef int64_t alike
        cdef int32_t i, j, size
        cdef int32_t last = 0
        while True:  # sizes from the smallest on; there are few
            size = 0
            alike = 0
            for i in range(self.n):
                j = self.gangs[i].num_gpu
                if j > last and (size == 0 or j < size):
                    size, alike = j, 0
                alike += j == size
            if size == 0:
                return total
            total += alike * (alike - 1) // 2
            last = size

    cdef void forget(self) noexcept nogil:
        """Drop the shares of the last allocation, and couples that have nothing else to remember."""
        cdef int64_t i
        cdef int32_t kept = 0
        cdef int32_t w = self.width
        for i in range(<int64_t> self.n * w):
            self.claims[i].share = 0
        for i in range(self.n):
            self.gangs[i].known = False
        for i in range(self.n_couples):
            if self.remembers(i):
                self.move_couple(i, kept)
                kept += 1
        self.n_couples = kept

    cdef bint remembers(self, int64_t couple) noexcept nogil:
        """Forget its shares; whether it differs from a pair that never ran."""
        cdef ShareAccount* c = &self.shared[couple * self.width]
        cdef bint differs = False
        cdef int g
        for g in range(self.width):
            c[g].share = 0
            differs |= c[g].received != self.half or c[g].deficit != self.half or c[g].ran != NEVER
        return differs

    cdef void move_couple(self, int64_t source, int64_t target) noexcept nogil:
        cdef int32_t w = self.width
        if source != target:
            self.couples[target] = self.couples[source]
            memmove(&self.shared[target * w], &self.shared[source * w], w * sizeof(ShareAccount))

    cdef void compact(self) noexcept nogil:
        """Remove the jobs that have ended and every couple with one of them."""
        cdef int32_t i
        cdef int32_t kept = 0
        cdef int32_t w = self.width
        cdef Pair* c
        for i in range(self.n):
            self.gangs[i].place = kept
            kept += not self.gangs[i].ended
        kept = 0
        for i in range(self.n_couples):
            c = &self.couples[i]
            if not self.gangs[c.row].ended and not self.gangs[c.mate].ended:
                c.row, c.mate = self.gangs[c.row].place, self.gangs[c.mate].place
                self.move_couple(i, kept)
                kept += 1
        self.n_couples = kept
        kept = 0
        for i in range(self.n):
            if self.gangs[i].ended:
                continue
            if kept != i:
                self.gangs[kept] = self.gangs[i]
                memmove(&self.claims[kept * w], &self.claims[i * w], w * sizeof(ShareAccount))
            kept += 1
        self.n = kept

    cdef int32_t row_of(self, int64_t id) noexcept nogil:
        """Row of a job, or -1."""
        cdef int32_t low = 0
        cdef int32_t high = self.n
        cdef int32_t middle
        while low < high:
            middle = (low + high) // 2
            if self.gangs[middle].id < id:
                low = middle + 1
            else:
                high = middle
        return low if low < self.n and self.gangs[low].id == id else -1

    def rows(self):
        """The active jobs as the bytes of their records."""
        return PyBytes_FromStringAndSize(<char*> self.gangs, self.n * sizeof(Job))

    def observed(self):
        """(job, job, model) for each pair that ran on a model for the first time and has not been told of yet."""
        cdef int64_t i
        cdef int64_t w = self.width
        cdef const Pair* c
        found = []
        for i in range(self.n_couples * w):
            if self.shared[i].ran == UNTOLD:
                self.shared[i].ran = TOLD
                c = &self.couples[i // w]
                found.append((self.gangs[c.row].id, self.gangs[c.mate].id, i % w))
        return found

    cpdef int verify(self) except -1:
        """Jobs rise by id, couples by their members."""
        cdef int32_t i
        for i in range(1, self.n):
            assert self.gangs[i - 1].id < self.gangs[i].id, f"jobs out of order at row {i}"
        for i in range(self.n_couples):
            c = self.couples[i]
            assert 0 <= c.row < c.mate < self.n, f"couple {i} of rows {c.row} and {c.mate}"
            assert self.found(c.row, c.mate) == i, f"couple {i} stands in the wrong place"
            assert self.gangs[c.row].num_gpu == self.gangs[c.mate].num_gpu == c.gang_size, f"couple {i}: sizes differ"
        return 0


cdef inline void owed(ShareAccount* claim, double elapsed, double half) noexcept nogil:
    claim.deficit += claim.share * elapsed - (claim.received - half)
    claim.received = half
