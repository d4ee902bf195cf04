"""How allocations are crossed, changed and made possible again, in the way of Pollux's genetic search.

Numbers are drawn as ``numpy.random.RandomState`` draws them, array by array: the same seed makes the same children as
the published program's operators.
"""

cimport cython
from libc.stdint cimport int32_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset
from fastsim_ext.mersenne cimport WORDS, Mersenne, mersenne_word

cdef double RARE = 0.1       # chance of a row to be reset, of a row to be thinned out, and of its cells to be emptied


cdef inline double uniform(Mersenne* stream) noexcept nogil:
    """A number in [0, 1) of 53 bits."""
    cdef uint32_t high = mersenne_word(stream) >> 5
    cdef uint32_t low = mersenne_word(stream) >> 6
    return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0)


cdef inline int32_t below(Mersenne* stream, uint32_t limit) noexcept nogil:
    """A whole number below ``limit``: low bits are drawn until they fit; a limit of 1 draws nothing."""
    cdef uint32_t mask = limit - 1
    cdef uint32_t drawn
    if limit <= 1:
        return 0
    mask |= mask >> 1
    mask |= mask >> 2
    mask |= mask >> 4
    mask |= mask >> 8
    mask |= mask >> 16
    drawn = mersenne_word(stream) & mask
    while drawn >= limit:
        drawn = mersenne_word(stream) & mask
    return <int32_t> drawn


cdef void breed_crossover(Mersenne* stream, int32_t* first__mjn, int32_t* second__mjn, int matings, int jobs,
                          int nodes) noexcept nogil:
    """Couples exchange their rows above a cut, which is drawn for each of them."""
    cdef int m, i, cut
    cdef int32_t* first
    cdef int32_t* second
    for m in range(matings):
        cut = below(stream, jobs)
        first, second = first__mjn + m * jobs * nodes, second__mjn + m * jobs * nodes
        for i in range(cut * nodes):
            first[i], second[i] = second[i], first[i]


@cython.cdivision(True)
cdef void breed_mutation(Mersenne* stream, int32_t* state__pjn, const int32_t* base__jn, int states, int jobs,
                         int nodes, int node_gpus, unsigned char* flag__pjn, Room* room) noexcept nogil:
    """Some rows go back to what jobs have, some lose cells, and free GPUs are given to some job or one already there.

    ``flag`` is room for one byte for each cell of all states.
    """
    cdef int p, j, n, cells = jobs * nodes
    cdef int32_t* row
    for p in range(states * jobs):
        if uniform(stream) < RARE:
            for n in range(nodes):
                state__pjn[p * nodes + n] = base__jn[(p % jobs) * nodes + n]
    for p in range(states * jobs):
        flag__pjn[p] = uniform(stream) < RARE
    for p in range(states * jobs):
        row = state__pjn + p * nodes
        for n in range(nodes):
            if uniform(stream) < RARE and flag__pjn[p]:
                row[n] = 0
    for p in range(states):
        breed_chosen(stream, state__pjn + p * cells, jobs, nodes, node_gpus, flag__pjn + p * cells, room)
    for p in range(states):
        for j in range(cells):
            # A number is drawn for every cell, whether it is chosen or not.
            n = state__pjn[p * cells + j] + below(stream, max(node_gpus + 1 - state__pjn[p * cells + j], 1))
            if flag__pjn[p * cells + j]:
                state__pjn[p * cells + j] = n


@cython.cdivision(True)
cdef void breed_chosen(Mersenne* stream, const int32_t* state__jn, int jobs, int nodes, int node_gpus,
                       unsigned char* flag__jn, Room* room) noexcept nogil:
    """Cells of one state that shall grow: one job of each node with free GPUs, and one of those there already."""
    cdef const int32_t* row
    cdef double any_job, there, chance
    cdef int j, n
    memset(room.load__n, 0, nodes * sizeof(int32_t))
    memset(room.few__n, 0, nodes * sizeof(int32_t))
    for j in range(jobs):
        row = state__jn + j * nodes
        for n in range(nodes):
            room.load__n[n] += row[n]
            room.few__n[n] += row[n] > 0
    for j in range(jobs):
        row = state__jn + j * nodes
        for n in range(nodes):
            chance = 0.0
            if room.load__n[n] < node_gpus:
                any_job = 1.0 / jobs
                there = 1.0 / room.few__n[n] if row[n] > 0 else 0.0
                chance = any_job + there - any_job * there
            flag__jn[j * nodes + n] = uniform(stream) < chance


cdef void breed_repair(Mersenne* stream, int32_t* state__pjn, const int32_t* most__j, const int32_t* least__j,
                       int states, int jobs, int nodes, int node_gpus, Room* room) noexcept nogil:
    """Make states possible: jobs on several nodes meet nowhere, nobody has too many GPUs, and no node gives too many.

    Earlier jobs win on a node. Which nodes a job loses is drawn, so that not the last ones always suffer.
    """
    cdef int32_t* state
    cdef int32_t* row
    cdef int p, j, n, gpus, spread
    for p in range(states):
        state = state__pjn + p * jobs * nodes
        memset(room.many__n, 0, nodes * sizeof(int32_t))
        for j in range(jobs):
            row = state + j * nodes
            spread = 0
            for n in range(nodes):
                spread += row[n] > 0
            for n in range(nodes):
                room.many__n[n] += spread > 1 and row[n] > 0
                if room.many__n[n] > 1:
                    row[n] = 0
        memset(room.load__n, 0, nodes * sizeof(int32_t))
        for j in range(jobs):
            row = state + j * nodes
            breed_shortened(stream, row, most__j[j], nodes, room)
            gpus = 0
            for n in range(nodes):
                row[n] = min(row[n], node_gpus - room.load__n[n])
                room.load__n[n] += row[n]
                gpus += row[n]
            if gpus < least__j[j]:
                memset(row, 0, nodes * sizeof(int32_t))


cdef void breed_shortened(Mersenne* stream, int32_t* row, int most, int nodes, Room* room) noexcept nogil:
    """Take GPUs beyond the most from a job, from the nodes that come last in a drawn order."""
    cdef int n, at, gpus = 0
    for n in range(nodes):
        room.draw__n[n] = uniform(stream)
        gpus += row[n]
    if gpus <= most:
        return
    for n in range(nodes):           # insertion: few nodes
        at = n
        while at > 0 and room.draw__n[room.order__n[at - 1]] > room.draw__n[n]:
            room.order__n[at] = room.order__n[at - 1]
            at -= 1
        room.order__n[at] = n
    for at in range(nodes):
        n = room.order__n[at]
        row[n] = min(row[n], most)
        most -= row[n]


cdef class Breeder:
    """The operators on arrays, and the stream of random numbers they share; sizes are those of one search."""

    cdef Mersenne stream
    cdef Room room
    cdef int jobs, nodes, node_gpus

    def __cinit__(self, int jobs, int nodes, int node_gpus, const uint32_t[::1] key, int used):
        cdef int i
        if jobs < 1 or nodes < 1 or key.shape[0] != WORDS:
            raise ValueError("jobs, nodes or the state of the stream")
        self.jobs, self.nodes, self.node_gpus = jobs, nodes, node_gpus
        for i in range(WORDS):
            self.stream.word[i] = key[i]
        self.stream.used = used
        self.room.load__n = <int32_t*> malloc(4 * nodes * sizeof(int32_t))
        self.room.draw__n = <double*> malloc(nodes * sizeof(double))
        if self.room.load__n == NULL or self.room.draw__n == NULL:
            raise MemoryError
        self.room.many__n = self.room.load__n + nodes
        self.room.few__n = self.room.many__n + nodes
        self.room.order__n = self.room.few__n + nodes

    def __dealloc__(self):
        free(self.room.load__n)
        free(self.room.draw__n)

    def crossed(self, int32_t[:, :, ::1] first__mjn, int32_t[:, :, ::1] second__mjn):
        """Exchange rows between the couples of both arrays."""
        self.fits(first__mjn)
        self.fits(second__mjn)
        if first__mjn.shape[0] != second__mjn.shape[0]:
            raise ValueError("couples of two")
        if first__mjn.shape[0]:
            breed_crossover(&self.stream, &first__mjn[0, 0, 0], &second__mjn[0, 0, 0], <int> first__mjn.shape[0],
                            self.jobs, self.nodes)

    def mutated(self, int32_t[:, :, ::1] state__pjn, const int32_t[:, ::1] base__jn):
        """Change each state a little; ``base`` is what jobs have."""
        cdef int states = <int> state__pjn.shape[0]
        cdef unsigned char* flag__pjn
        self.fits(state__pjn)
        if base__jn.shape[0] != self.jobs or base__jn.shape[1] != self.nodes:
            raise ValueError("the shape of the base")
        if not states:
            return
        flag__pjn = <unsigned char*> malloc(states * self.jobs * self.nodes)
        if flag__pjn == NULL:
            raise MemoryError
        breed_mutation(&self.stream, &state__pjn[0, 0, 0], &base__jn[0, 0], states, self.jobs, self.nodes,
                       self.node_gpus, flag__pjn, &self.room)
        free(flag__pjn)

    def repaired(self, int32_t[:, :, ::1] state__pjn, const int32_t[::1] most__j, const int32_t[::1] least__j):
        """Make each state possible; ``most`` and ``least`` are GPUs of each job."""
        self.fits(state__pjn)
        if most__j.shape[0] != self.jobs or least__j.shape[0] != self.jobs:
            raise ValueError("a bound for each job")
        if state__pjn.shape[0]:
            breed_repair(&self.stream, &state__pjn[0, 0, 0], &most__j[0], &least__j[0], <int> state__pjn.shape[0],
                         self.jobs, self.nodes, self.node_gpus, &self.room)

    def stream_state(self):
        """The stream as numpy knows it: key, and words of it that are used."""
        return [self.stream.word[i] for i in range(WORDS)], self.stream.used

    cdef int fits(self, int32_t[:, :, ::1] state__pjn) except -1:
        if state__pjn.shape[1] != self.jobs or state__pjn.shape[2] != self.nodes:
            raise ValueError("the shape of a state")
        return 0
