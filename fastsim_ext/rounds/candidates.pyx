"""Selection of the jobs of a round, by priority, deficit and share as long as GPUs are left, and the heap it uses.

Pairs without a share that never ran are equal in that order, so they are drawn one by one from a stream instead of
being listed: those that were there at the last settlement, and those with a member that arrived since.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc
from fastsim_ext.random cimport WORDS, mersenne_shuffle
from fastsim_ext.rounds.job_table cimport NEVER, Job, Pair, ShareAccount
from fastsim_ext.rounds.leases cimport Task

cdef enum:
    LISTED, SETTLED, FRESH             # an entry by itself, and the two streams

cdef double LARGE = 1e9                # priority of a share that has not run yet, for each unit of it


@cython.final
cdef class CandidateSelection:
    """Fills the tasks of ``leases`` from the candidates of ``table``."""

    def __init__(self, JobTable table, Leases leases, alone, shared, fastest, shuffle_state, *, bint pairs,
                 bint shuffled, bint strict, bint one_line, bint reserves):
        import numpy as np
        cdef int i
        self.table, self.leases, self.heap = table, leases, CandidateHeap()
        self.alone, self.shared = alone, shared
        self.fastest = np.array(fastest, np.int32)
        self.visit = np.array(fastest, np.int32)
        self.free = np.zeros(leases.width, np.int32)
        for i in range(WORDS):
            self.shuffler.word[i] = shuffle_state[i]
        self.shuffler.used = shuffle_state[WORDS]
        self.pairs, self.shuffled, self.strict, self.one_line = pairs, shuffled, strict, one_line
        self.reserves = reserves

    cdef int reserve(self) except -1 nogil:
        """Make room for all that a line can hold."""
        cdef int64_t lines = self.leases.width if self.one_line else 1
        return self.heap.reserve(lines * (<int64_t> self.table.n + self.table.n_pairs + 2))

    cdef void choose(self) noexcept nogil:
        """Take candidates until GPUs or candidates run out."""
        cdef int32_t i
        cdef int32_t w = self.leases.width
        for i in range(w):
            self.free[i] = self.leases.present[i]
            self.visit[i] = self.fastest[i]
        if self.shuffled:
            mersenne_shuffle(&self.shuffler, &self.visit[0], w)
        for i in range(self.table.n):
            self.table.jobs[i].taken = False
        self.unplaced = self.table.n
        self.leases.begin()
        if self.one_line:
            self.line(0, w)
        else:
            for i in range(w):
                self.line(i, 1)

    cdef void line(self, int32_t first, int32_t count) noexcept nogil:
        """Serve the GPU models ``visit[first]`` and the ``count`` - 1 after it in one line."""
        cdef int64_t span = (<int64_t> self.table.n + 1) * (self.table.n + 1)
        cdef int32_t i, model
        cdef Candidate* best
        self.heap.n = 0
        for i in range(count):
            model = self.visit[first + i]
            self.enter_singles(model, i * span)
            if self.pairs:
                self.enter_pairs(model, i * span)
        self.heap.arrange()
        if self.pairs and not self.strict:
            for i in range(count):
                self.enter_stream(self.visit[first + i], i * span, SETTLED)
                self.enter_stream(self.visit[first + i], i * span, FRESH)
        while self.heap.n_heap and self.unplaced and (count > 1 or self.free[self.visit[first]]):
            i = self.heap.best()
            best = &self.heap.items[i]
            self.heap.drop()
            self.take(best)
            if best.stream != LISTED and self.next_pair(best):
                self.heap.put(i)

    cdef void enter_singles(self, int32_t model, int64_t before) noexcept nogil:
        cdef int32_t n = self.table.n
        cdef int32_t row
        cdef int32_t space = self.free[model]
        cdef const Job* job
        cdef const ShareAccount* account
        cdef Candidate* entry
        for row in range(n):
            job = &self.table.jobs[row]
            if job.taken or job.num_gpu > space or not self.alone[job.kind, model] > 0:
                continue
            account = &self.table.accounts[row * self.table.width + model]
            entry = &self.heap.items[self.heap.n]
            entry.priority = self.priority(account, model)
            if self.strict and entry.priority <= 0:
                continue
            entry.deficit, entry.share = account.deficit, account.share
            entry.order = before + row * (<int64_t> n + 1)
            entry.row, entry.mate, entry.pair, entry.model, entry.stream = row, -1, -1, model, LISTED
            self.heap.n += 1

    cdef void enter_pairs(self, int32_t model, int64_t before) noexcept nogil:
        cdef int32_t i
        cdef const Pair* pair
        cdef const ShareAccount* account
        cdef Candidate* entry
        for i in range(self.table.n_pairs):
            pair = &self.table.pairs[i]
            account = &self.table.shared[i * self.table.width + model]
            if not self.can_share(pair.row, pair.mate, model, account.ran != NEVER):
                continue
            entry = &self.heap.items[self.heap.n]
            entry.priority = self.priority(account, model)
            if self.strict and entry.priority <= 0:
                continue
            entry.deficit, entry.share = account.deficit, account.share
            entry.order = before + pair.mate * (<int64_t> self.table.n + 1) + pair.row + 1
            entry.row, entry.mate, entry.pair = pair.row, pair.mate, i
            entry.model, entry.stream = model, LISTED
            self.heap.n += 1

    cdef void enter_stream(self, int32_t model, int64_t before, int32_t stream) noexcept nogil:
        """Enter the first pair of a stream, which represents all of it."""
        cdef Candidate* entry = &self.heap.items[self.heap.n]
        entry.priority, entry.share = 0.0, 0.0
        entry.deficit = self.table.owed if stream == SETTLED else 0.0
        entry.order, entry.row, entry.mate, entry.pair = before, -1, 1, -1
        entry.model, entry.stream = model, stream
        if self.next_pair(entry):
            self.heap.put(self.heap.n)
            self.heap.n += 1

    cdef bint next_pair(self, Candidate* entry) noexcept nogil:
        """Move a stream on to its next pair that can run."""
        cdef int32_t n = self.table.n
        cdef int32_t row = entry.row + 1
        cdef int32_t mate = entry.mate
        cdef int64_t span = (<int64_t> n + 1) * (n + 1)
        cdef const Job* job
        while mate < n:
            job = &self.table.jobs[mate]
            if not job.taken and job.num_gpu <= self.free[entry.model]:
                while row < mate:
                    if ((self.table.jobs[row].settled and job.settled) == (entry.stream == SETTLED)
                            and self.can_share(row, mate, entry.model, False) and self.table.find(row, mate) < 0):
                        entry.order = entry.order // span * span + mate * (<int64_t> n + 1) + row + 1
                        entry.row, entry.mate = row, mate
                        return True
                    row += 1
            mate += 1
            row = 0
        return False

    cdef bint can_share(self, int32_t row, int32_t mate, int32_t model, bint ran) noexcept nogil:
        """Whether two jobs fit and can share GPUs: by their kinds if they ``ran`` together, else by estimated kinds."""
        cdef const Job* a = &self.table.jobs[row]
        cdef const Job* b = &self.table.jobs[mate]
        if a.taken or b.taken or a.num_gpu != b.num_gpu or a.num_gpu > self.free[model]:
            return False
        if ran:
            return self.mix(a.kind, b.kind, model)
        # An estimated rate is a fraction of the rate alone, so a job that cannot run alone has none.
        return (self.mix(a.estimated_kind, b.estimated_kind, model)
                and (a.estimated_kind == a.kind or self.alone[a.kind, model] > 0)
                and (b.estimated_kind == b.kind or self.alone[b.kind, model] > 0))

    cdef bint mix(self, int32_t kind, int32_t other, int32_t model) noexcept nogil:
        """Whether jobs of these kinds both make progress while they share GPUs."""
        return self.shared[kind, other, model] > 0 and self.shared[other, kind, model] > 0

    cdef double priority(self, const ShareAccount* account, int32_t model) noexcept nogil:
        """The share over the part of the time it got so far."""
        cdef double part
        if account.share == 0:
            return 0.0
        part = account.received / self.table.type_time[model] if self.table.type_time[model] != 0 else 0.0
        return account.share / part if part > 0 else account.share * LARGE

    cdef void take(self, const Candidate* entry) noexcept nogil:
        """Reserve the GPUs of a candidate that still fits; unless it must wait for an allocation, it will run."""
        cdef Job* job = &self.table.jobs[entry.row]
        cdef Job* mate = NULL if entry.mate < 0 else &self.table.jobs[entry.mate]
        cdef Task* task
        if job.taken or (mate != NULL and mate.taken) or job.num_gpu > self.free[entry.model]:
            return
        self.free[entry.model] -= job.num_gpu
        job.taken = True
        self.unplaced -= 1
        if mate != NULL:
            mate.taken = True
            self.unplaced -= 1
        if self.reserves and not (job.known and (mate == NULL or mate.known)):
            return
        task = &self.leases.tasks[self.leases.n]
        self.leases.n += 1
        task.id, task.row, task.num_gpu, task.model = job.id, entry.row, job.num_gpu, entry.model
        task.mate, task.mate_id = entry.mate, -1 if mate == NULL else mate.id
        task.priority, task.deficit = entry.priority, entry.deficit
        task.before = job.task
        if task.before >= 0:
            if self.leases.last[task.before].id != task.id or self.leases.last[task.before].mate_id != task.mate_id:
                task.before = -1

    def drawn(self):
        """State of the stream that shuffles GPU models, as ``random.Random.getstate()[1]`` has it."""
        return (*[self.shuffler.word[i] for i in range(WORDS)], self.shuffler.used)


@cython.final
cdef class CandidateHeap:
    """Entries, and a heap of their places; the best one is ``items[best()]``."""

    def __dealloc__(self):
        free(self.items)
        free(self.heap)

    cdef int reserve(self, int64_t count) except -1 nogil:
        """Make room for ``count`` entries."""
        cdef Candidate* items
        cdef Place* heap
        if count <= self.room:
            return 0
        items = <Candidate*> realloc(self.items, 2 * count * sizeof(Candidate))
        if items != NULL:
            self.items = items
        heap = <Place*> realloc(self.heap, 2 * count * sizeof(Place))
        if heap != NULL:
            self.heap = heap
        if items == NULL or heap == NULL:
            with gil:
                raise MemoryError()
        self.room = 2 * count
        return 0

    cdef bint better(self, const Place* a, const Place* b) noexcept nogil:
        cdef const Candidate* x
        cdef const Candidate* y
        if a.priority != b.priority:
            return a.priority > b.priority
        x, y = &self.items[a.item], &self.items[b.item]
        if x.deficit != y.deficit:
            return x.deficit > y.deficit
        if x.share != y.share:
            return x.share > y.share
        return x.order < y.order

    cdef void arrange(self) noexcept nogil:
        """Turn the entries, in any order, into a heap."""
        cdef int64_t i
        for i in range(self.n):
            self.heap[i].priority, self.heap[i].item = self.items[i].priority, i
        self.n_heap = self.n
        for i in range(self.n_heap // 2 - 1, -1, -1):
            self.sink(i)

    cdef void sink(self, int64_t i) noexcept nogil:
        cdef Place moving = self.heap[i]
        cdef int64_t child = 2 * i + 1
        while child < self.n_heap:
            if child + 1 < self.n_heap and self.better(&self.heap[child + 1], &self.heap[child]):
                child += 1
            if not self.better(&self.heap[child], &moving):
                break
            self.heap[i] = self.heap[child]
            i = child
            child = 2 * i + 1
        self.heap[i] = moving

    cdef int32_t best(self) noexcept nogil:
        """Index of the best entry."""
        return self.heap[0].item

    cdef void put(self, int32_t item) noexcept nogil:
        """Put an entry into the heap; there is room."""
        cdef Place new
        new.priority, new.item = self.items[item].priority, item
        self.n_heap += 1
        self.rise(self.n_heap - 1, new)

    cdef void rise(self, int64_t i, Place moving) noexcept nogil:
        """Let an entry rise from place ``i`` to where it belongs."""
        while i > 0 and self.better(&moving, &self.heap[(i - 1) // 2]):
            self.heap[i] = self.heap[(i - 1) // 2]
            i = (i - 1) // 2
        self.heap[i] = moving

    cdef void drop(self) noexcept nogil:
        """Take the best entry out of the heap."""
        cdef int64_t i = 0
        cdef int64_t child = 1
        cdef const Place* one
        self.n_heap -= 1
        # The entry that replaces the best one came from the bottom and mostly returns there, so it is not compared on
        # the way down.
        while child + 1 < self.n_heap:
            one = &self.heap[child]
            if one[0].priority != one[1].priority:
                child += one[1].priority > one[0].priority
            else:
                child += self.better(&one[1], &one[0])
            self.heap[i] = self.heap[child]
            i = child
            child = 2 * i + 1
        if child < self.n_heap:
            self.heap[i] = self.heap[child]
            i = child
        self.rise(i, self.heap[self.n_heap])

    cpdef int verify(self) except -1:
        """No entry is better than the one above it."""
        cdef int64_t i
        for i in range(1, self.n_heap):
            assert not self.better(&self.heap[i], &self.heap[(i - 1) // 2]), f"heap order broken at {i}"
        return 0
