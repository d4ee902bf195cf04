"""The servers of one round: what they have left, and the GPUs and shares of every running job.

Every round begins with empty servers. GPUs are numbered server by server, servers GPU model by GPU model; a job sits
on servers of one model.
"""

cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, uint64_t
from libc.stdlib cimport calloc, free
from fastsim_ext.memory cimport memory_grown
from fastsim_ext.rounds.ordered_jobs cimport RESOURCES, OrderedJob


cdef void* zeros(long long count, size_t size) except NULL:
    cdef void* block = calloc(max(count, 1), size)
    if block == NULL:
        raise MemoryError()
    return block


@cython.final
cdef class ServerAllocation:
    """``num_gpu`` by server, ``cap__sr`` what each has of every resource, ``base`` where each GPU model begins."""

    def __init__(self, num_gpu, const double[:, ::1] cap__sr, base):
        cdef int32_t s, r
        cdef Server* server
        self.count, self.models = len(num_gpu), len(base) - 1
        self.width = max(num_gpu, default=0)
        if self.width > 64:
            raise ValueError(f"a server with {self.width} GPUs, expected at most 64")
        self.servers = <Server*> zeros(self.count, sizeof(Server))
        self.base = <int32_t*> zeros(self.models + 1, sizeof(int32_t))
        self.n_free = <int32_t*> zeros(self.models, sizeof(int32_t))
        self.listed = <int32_t*> zeros(<long long> self.count * self.width, sizeof(int32_t))
        for s in range(self.models + 1):
            self.base[s] = base[s]
        for s in range(self.count):
            server = &self.servers[s]
            server.num_gpu, server.first = num_gpu[s], self.gpus
            self.gpus += server.num_gpu
            for r in range(RESOURCES):
                server.cap[r] = cap__sr[s, r]
                server.fair[r] = server.cap[r] / server.num_gpu if server.num_gpu else 0.0
        self.server_of = <int32_t*> zeros(self.gpus, sizeof(int32_t))
        for s in range(self.count):
            for r in range(self.servers[s].num_gpu):
                self.server_of[self.servers[s].first + r] = s
        self.picks = <ServerPart*> zeros(self.count, sizeof(ServerPart))
        self.clear()

    def __dealloc__(self):
        free(self.servers)
        free(self.parts)
        free(self.listed)
        free(self.picks)
        free(self.base)
        free(self.n_free)
        free(self.server_of)

    cdef int reserve(self, int32_t jobs) except -1 nogil:
        """Room for the server parts of a round: one for every GPU, and one for every job without GPUs."""
        cdef int32_t most = self.gpus + jobs
        if most > self.room:
            self.parts = <ServerPart*> memory_grown(self.parts, 2 * most, sizeof(ServerPart))
            self.room = 2 * most
        return 0

    cdef void clear(self) noexcept nogil:
        """Empty all servers; an absent one has nothing."""
        cdef int32_t m, s, r
        cdef Server* server
        self.n, self.present, self.present_gpus = 0, 0, 0
        for m in range(self.models):
            self.n_free[m] = 0
            for s in range(self.base[m], self.base[m + 1]):
                server = &self.servers[s]
                server.n_parts = 0
                if self.is_absent(server):
                    server.n_free, server.free = 0, 0
                    for r in range(RESOURCES):
                        server.left[r] = -INFINITY
                    continue
                self.present += 1
                server.n_free = server.num_gpu
                server.free = <uint64_t> -1 >> (64 - server.num_gpu) if server.num_gpu else 0
                self.n_free[m] += server.num_gpu
                for r in range(RESOURCES):
                    server.left[r] = server.cap[r]
            self.present_gpus += self.n_free[m]

    cdef bint is_absent(self, const Server* server) noexcept nogil:
        """Whether a server is absent in this round; one without GPUs never is."""
        return self.presence is not None and server.num_gpu > 0 and self.presence.is_absent(server.first)

    # ------------------------------------------------------------------ proposals

    cdef void take_again(self, const int32_t* gpus, int32_t num_gpu) noexcept nogil:
        """Pick these very GPUs, listed server by server."""
        cdef int32_t i, server
        cdef ServerPart* part = self.picks
        self.n_picks = 0
        for i in range(num_gpu):
            server = self.server_of[gpus[i]]
            if self.n_picks == 0 or part.server != server:
                part = &self.picks[self.n_picks]
                self.pick(server, 0, 0)
            part.gpus |= <uint64_t> 1 << (gpus[i] - self.servers[server].first)
            part.num_gpu += 1

    cdef bint holds(self, int32_t num_gpu, const double* need) noexcept nogil:
        """Whether the servers that are picked have enough for a gang that needs so much in all."""
        cdef int32_t i, r
        for i in range(self.n_picks):
            for r in range(RESOURCES):
                if not enough(self.servers[self.picks[i].server].left[r],
                              need[r] / num_gpu * self.picks[i].num_gpu):
                    return False
        return True

    cdef bint propose(self, int32_t model, int32_t num_gpu, const double* need, bint packed) noexcept nogil:
        """Pick servers for a gang that needs so much in all; answers whether there are enough.

        ``packed`` gangs stay together if they can.
        """
        cdef double[RESOURCES] each
        cdef int32_t r
        for r in range(RESOURCES):
            each[r] = need[r] / num_gpu if num_gpu else need[r]
        self.n_picks = 0
        if not packed or num_gpu == 0:
            return self.scan(model, num_gpu, each)
        if num_gpu > 1 and self.consolidated(model, num_gpu, need):
            return True
        return self.fullest(model, num_gpu, each)

    cdef int32_t fitting(self, const Server* server, const double* each, int32_t most) noexcept nogil:
        """How many GPUs a server can give, up to ``most``, each with so much of the rest."""
        cdef double[RESOURCES] held
        cdef int32_t r
        cdef int32_t n = 0
        for r in range(RESOURCES):
            held[r] = 0.0
        while n < most:
            for r in range(RESOURCES):
                if not enough(server.left[r] - held[r], each[r]):
                    return n
            for r in range(RESOURCES):
                held[r] += each[r]
            n += 1
        return n

    cdef bint scan(self, int32_t model, int32_t num_gpu, const double* each) noexcept nogil:
        """Free GPUs by rising number, as long as their server has enough for each."""
        cdef int32_t left = num_gpu
        cdef int32_t s, n
        cdef const Server* server
        for s in range(self.base[model], self.base[model + 1]):
            server = &self.servers[s]
            if num_gpu == 0:
                if self.fitting(server, each, 1):
                    self.pick(s, 0, 0)
                    return True
                continue
            if server.n_free == 0:
                continue
            n = self.fitting(server, each, min(left, server.n_free))
            if n:
                self.pick(s, lowest(server.free, n), n)
                left -= n
                if left == 0:
                    return True
        return False

    cdef bint consolidated(self, int32_t model, int32_t num_gpu, const double* need) noexcept nogil:
        """All on one server that has enough, the one with the fewest free GPUs."""
        cdef int32_t best = -1
        cdef int32_t s
        cdef const Server* server
        for s in range(self.base[model], self.base[model + 1]):
            server = &self.servers[s]
            if server.n_free >= num_gpu and (best < 0 or server.n_free < self.servers[best].n_free) \
                    and self.fitting(server, need, 1):
                best = s
        if best < 0:
            return False
        self.pick(best, lowest(self.servers[best].free, num_gpu), num_gpu)
        return True

    cdef bint fullest(self, int32_t model, int32_t num_gpu, const double* each) noexcept nogil:
        """GPUs by falling number of the server with the fewest free ones, then of the next one."""
        cdef int32_t left = num_gpu
        cdef int32_t free_gpus, s, n
        cdef const Server* server
        for free_gpus in range(1, self.width + 1):
            for s in range(self.base[model], self.base[model + 1]):
                server = &self.servers[s]
                if server.n_free != free_gpus:
                    continue
                n = self.fitting(server, each, min(left, free_gpus))
                if n:
                    self.pick(s, highest(server.free, n), n)
                    left -= n
                    if left == 0:
                        return True
        return False

    cdef void pick(self, int32_t server, uint64_t gpus, int32_t num_gpu) noexcept nogil:
        cdef ServerPart* part = &self.picks[self.n_picks]
        part.server, part.gpus, part.num_gpu = server, gpus, num_gpu
        self.n_picks += 1

    # ------------------------------------------------------------------ parts

    cdef void commit(
        self, OrderedJob* entry, int32_t row, int32_t model, int32_t num_gpu, const double* need
    ) noexcept nogil:
        """Take what was proposed; without a need, each GPU brings its fair share."""
        cdef int32_t i, r
        cdef ServerPart* part
        cdef Server* server
        entry.model, entry.first_part, entry.n_parts = model, -1, self.n_picks
        for r in range(RESOURCES):
            entry.share[r] = 0.0
        for i in range(self.n_picks - 1, -1, -1):
            part = &self.parts[self.n + i]
            part[0] = self.picks[i]
            part.row, part.next = row, entry.first_part
            entry.first_part = self.n + i
        for i in range(self.n, self.n + self.n_picks):
            part = &self.parts[i]
            server = &self.servers[part.server]
            for r in range(RESOURCES):
                if need == NULL:
                    part.share[r] = server.fair[r] * part.num_gpu
                else:
                    part.share[r] = need[r] / num_gpu * part.num_gpu if num_gpu else need[r]
                server.left[r] -= part.share[r]
                entry.share[r] += part.share[r]
            server.free &= ~part.gpus
            server.n_free -= part.num_gpu
            if part.num_gpu:
                self.listed[part.server * self.width + server.n_parts] = i
                server.n_parts += 1
        self.n += self.n_picks
        self.n_free[model] -= num_gpu

    cdef void reshare(self, OrderedJob* entry, int32_t num_gpu, const double* need) noexcept nogil:
        """Another need on the same GPUs."""
        cdef int32_t r
        cdef int32_t at = entry.first_part
        cdef double share
        cdef ServerPart* part
        for r in range(RESOURCES):
            entry.share[r] = 0.0
        while at >= 0:
            part = &self.parts[at]
            for r in range(RESOURCES):
                share = need[r] / num_gpu * part.num_gpu
                self.servers[part.server].left[r] += part.share[r] - share
                part.share[r] = share
                entry.share[r] += share
            at = part.next

    cdef bint room_to_reshare(self, const OrderedJob* entry, int32_t num_gpu, const double* need) noexcept nogil:
        """Whether its servers have enough for another need on the same GPUs."""
        cdef int32_t r
        cdef int32_t at = entry.first_part
        cdef const ServerPart* part
        while at >= 0:
            part = &self.parts[at]
            for r in range(RESOURCES):
                if not enough(self.servers[part.server].left[r] + part.share[r], need[r] / num_gpu * part.num_gpu):
                    return False
            at = part.next
        return True

    cdef int32_t room_for(self, int32_t num_gpu, const double* need) noexcept nogil:
        """How many GPUs of the model with the most room a gang with this need could have, were it alone."""
        cdef double[RESOURCES] each
        cdef int32_t m, s, r, n
        cdef int32_t most = 0
        for r in range(RESOURCES):
            each[r] = need[r] / max(num_gpu, 1)
        for m in range(self.models):
            n = 0
            for s in range(self.base[m], self.base[m + 1]):
                n += self.fitting(&self.servers[s], each, max(self.servers[s].num_gpu, 0 if num_gpu else 1))
            most = max(most, n)
        return most

    # ------------------------------------------------------------------ outside

    def follow(self, NodePresence presence not None):
        """From now on absent servers have nothing."""
        self.presence = presence
        self.clear()

    def rooms(self, const int32_t[::1] num_gpu, const double[:, ::1] need__kr):
        """For each gang size and need, the GPUs that the best GPU model could give to such gangs if it were empty."""
        self.clear()
        return [self.room_for(num_gpu[k], &need__kr[k, 0]) for k in range(num_gpu.shape[0])]

    def left(self):
        """By server: free GPUs, and what is left of every resource; an absent one has nothing."""
        found = []
        for s in range(self.count):
            there = not self.is_absent(&self.servers[s])
            found.append((self.servers[s].n_free,
                          tuple([self.servers[s].left[r] if there else 0.0 for r in range(RESOURCES)])))
        return found

    def absent(self):
        """Whether each server is absent in this round."""
        return [self.is_absent(&self.servers[s]) for s in range(self.count)]

    def taken(self):
        """(row, server, GPUs as bits, shares) of every server part."""
        return [(self.parts[i].row, self.parts[i].server, self.parts[i].gpus,
                 tuple([self.parts[i].share[r] for r in range(RESOURCES)])) for i in range(self.n)]

    cpdef int verify(self) except -1:
        """Parts and free amounts add up to every server."""
        cdef int32_t i, s, r
        cdef uint64_t gpus
        for s in range(self.count):
            server = self.servers[s]
            if self.is_absent(&self.servers[s]):
                for i in range(self.n):
                    assert self.parts[i].server != s, f"a job is on server {s}, which is absent"
                continue
            total = [server.left[r] for r in range(RESOURCES)]
            gpus = server.free
            for i in range(self.n):
                if self.parts[i].server == s:
                    assert gpus & self.parts[i].gpus == 0, f"a GPU of server {s} has two holders"
                    gpus |= self.parts[i].gpus
                    total = [total[r] + self.parts[i].share[r] for r in range(RESOURCES)]
            assert gpus == (<uint64_t> -1 >> (64 - server.num_gpu) if server.num_gpu else 0), f"server {s} lost a GPU"
            for r in range(RESOURCES):  # sums of shares that are no whole numbers are rounded
                assert abs(total[r] - server.cap[r]) <= 1e-6, f"server {s} has {total[r]} of {server.cap[r]}"
                assert server.left[r] >= -1e-6, f"server {s} gave away {-server.left[r]} too much"
        return 0


cdef inline uint64_t lowest(uint64_t bits, int32_t n) noexcept nogil:
    cdef uint64_t chosen = 0
    cdef uint64_t bit
    while n:
        bit = bits & (~bits + 1)
        chosen |= bit
        bits &= ~bit
        n -= 1
    return chosen


cdef inline uint64_t highest(uint64_t bits, int32_t n) noexcept nogil:
    cdef int32_t spare = -n
    cdef uint64_t rest = bits
    while rest:
        rest &= rest - 1
        spare += 1
    return bits & ~lowest(bits, spare)
