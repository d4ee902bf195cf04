"""How allocations are crossed, changed and made possible again, in the way of Pollux's genetic search.

Numbers are drawn as ``numpy.random.RandomState`` draws them, array by array: the same seed makes the same children as
the published program's operators.
"""

cimport cython
from libc.math cimport ceil
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset
from fastsim_ext.flow cimport (
    Flow, flow_mask, flow_ready, flow_renew, flow_skip, flow_uniform, flow_upto, flow_word,
)
from fastsim_ext.mersenne cimport WORDS

cdef enum:
    HALVES = 2               # words of a number in [0, 1)

cdef double SCALE = 9007199254740992.0   # steps of a number in [0, 1)
cdef double RARE = 0.1       # chance of a row to be reset, of a row to be thinned out, and of its cells to be emptied


cdef inline int32_t below(Flow* flow, int32_t limit) noexcept nogil:
    """A whole number below ``limit``; a limit of 1 draws nothing."""
    if limit <= 1:
        return 0
    return <int32_t> flow_upto(flow, limit - 1)


cdef void breed_crossover(Flow* flow, int32_t* first__mjn, int32_t* second__mjn,
                          const unsigned char* crossed__m, int matings, int jobs, int nodes) noexcept nogil:
    """Couples exchange their rows above a cut, which is drawn for each of them; only those that are ``crossed``."""
    cdef int m, i, cut
    cdef int32_t* first
    cdef int32_t* second
    for m in range(matings):
        cut = below(flow, jobs)
        if crossed__m != NULL and not crossed__m[m]:
            continue
        first, second = first__mjn + m * jobs * nodes, second__mjn + m * jobs * nodes
        for i in range(cut * nodes):
            first[i], second[i] = second[i], first[i]


@cython.cdivision(True)
cdef void breed_mutation(Flow* flow, int32_t* state__pjn, const int32_t* base__jn, int states, int jobs,
                         int nodes, int node_gpus, unsigned char* flag__pjn, Room* room) noexcept nogil:
    """Some rows go back to what jobs have, some lose cells, and free GPUs are given to some job or one already there.

    ``flag`` is room for two bytes for each cell of all states.
    """
    cdef int p, n, cells = jobs * nodes
    cdef int32_t* row
    for p in range(states * jobs):
        if flow_uniform(flow) < RARE:
            for n in range(nodes):
                state__pjn[p * nodes + n] = base__jn[(p % jobs) * nodes + n]
    for p in range(states * jobs):
        flag__pjn[p] = flow_uniform(flow) < RARE
    for p in range(states * jobs):
        row = state__pjn + p * nodes
        if not flag__pjn[p]:
            flow_skip(flow, HALVES * nodes)
            continue
        for n in range(nodes):
            if flow_uniform(flow) < RARE:
                row[n] = 0
    for p in range(states):
        breed_chosen(flow, state__pjn + p * cells, jobs, nodes, node_gpus, flag__pjn + p * cells, room)
    breed_drawn(flow, state__pjn, states * cells, node_gpus, flag__pjn + states * cells)
    for p in range(states * cells):
        state__pjn[p] += flag__pjn[states * cells + p] & -<int32_t> flag__pjn[p]


cdef void breed_drawn(Flow* flow, const int32_t* state__pjn, int cells, int node_gpus,
                      unsigned char* more__pjn) noexcept nogil:
    """GPUs by which each cell may grow: a whole number up to what is left of a node, drawn for chosen cells or not."""
    cdef int32_t value
    cdef uint32_t most, mask, drawn
    cdef int p = 0, stop, at
    while p < cells:
        value, stop = state__pjn[p], p + 1
        while stop < cells and state__pjn[stop] == value:
            stop += 1
        if value >= node_gpus:
            memset(more__pjn + p, 0, stop - p)
            p = stop
        most = node_gpus - value
        mask = flow_mask(most)
        while p < stop:                      # words that are too large are written over
            if flow.source.used == WORDS:
                flow_renew(flow)
            at = flow.source.used
            while p < stop and at < WORDS:
                drawn = flow.word[at] & mask
                more__pjn[p] = drawn
                p += drawn <= most
                at += 1
            flow.source.used = at


@cython.cdivision(True)
cdef void breed_chosen(Flow* flow, const int32_t* state__jn, int jobs, int nodes, int node_gpus,
                       unsigned char* flag__jn, Room* room) noexcept nogil:
    """Cells of one state that shall grow: one job of each node with free GPUs, and one of those there already."""
    cdef const int32_t* row
    cdef double there, any_job = 1.0 / jobs
    cdef int j, n
    memset(room.load__n, 0, nodes * sizeof(int32_t))
    memset(room.few__n, 0, nodes * sizeof(int32_t))
    for j in range(jobs):
        row = state__jn + j * nodes
        for n in range(nodes):
            room.load__n[n] += row[n]
            room.few__n[n] += row[n] > 0
    for n in range(nodes):
        room.chance__n[2 * n] = room.chance__n[2 * n + 1] = 0
        if room.load__n[n] < node_gpus:
            there = 1.0 / room.few__n[n] if room.few__n[n] else 0.0
            room.chance__n[2 * n] = <uint64_t> ceil(any_job * SCALE)
            room.chance__n[2 * n + 1] = <uint64_t> ceil((any_job + there - any_job * there) * SCALE)
    for j in range(jobs):
        breed_taken(flow, state__jn + j * nodes, nodes, flag__jn + j * nodes, room)


cdef void breed_taken(Flow* flow, const int32_t* row, int nodes, unsigned char* flag__n, Room* room) noexcept nogil:
    """Cells of one job whose number in [0, 1) is below their chance; both are counted in steps."""
    cdef const uint32_t* word = flow.word + flow.source.used
    cdef const uint64_t* chance = room.chance__n
    cdef uint64_t steps
    cdef int n
    if flow.source.used + HALVES * nodes <= WORDS:
        for n in range(nodes):
            steps = (<uint64_t> (word[2 * n] >> 5) << 26) | (word[2 * n + 1] >> 6)
            flag__n[n] = steps < chance[2 * n + (row[n] > 0)]
        flow.source.used += HALVES * nodes
        return
    for n in range(nodes):                   # over the end of a generation
        steps = <uint64_t> (flow_word(flow) >> 5) << 26
        steps |= flow_word(flow) >> 6
        flag__n[n] = steps < chance[2 * n + (row[n] > 0)]


cdef void breed_repair(Flow* flow, int32_t* state__pjn, const int32_t* most__j, const int32_t* least__j,
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
            breed_shortened(flow, row, most__j[j], nodes, room)
            gpus = 0
            for n in range(nodes):
                row[n] = min(row[n], node_gpus - room.load__n[n])
                room.load__n[n] += row[n]
                gpus += row[n]
            if gpus < least__j[j]:
                memset(row, 0, nodes * sizeof(int32_t))


cdef void breed_shortened(Flow* flow, int32_t* row, int most, int nodes, Room* room) noexcept nogil:
    """Take GPUs beyond the most from a job, from the nodes that come last in a drawn order."""
    cdef int n, at, gpus = 0
    for n in range(nodes):
        gpus += row[n]
    if gpus <= most:
        flow_skip(flow, HALVES * nodes)
        return
    for n in range(nodes):
        room.draw__n[n] = flow_uniform(flow)
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


cdef int breed_reserve(Room* room, int nodes) except -1 nogil:
    """Make room; ``breed_free`` gives it back, also after a failure."""
    room.load__n = <int32_t*> malloc(4 * nodes * sizeof(int32_t))
    room.draw__n = <double*> malloc(nodes * sizeof(double))
    room.chance__n = <uint64_t*> malloc(2 * nodes * sizeof(uint64_t))
    if room.load__n == NULL or room.draw__n == NULL or room.chance__n == NULL:
        with gil:
            raise MemoryError()
    room.many__n = room.load__n + nodes
    room.few__n = room.many__n + nodes
    room.order__n = room.few__n + nodes
    return 0


cdef void breed_free(Room* room) noexcept nogil:
    """Give the room back."""
    free(room.load__n)
    free(room.draw__n)
    free(room.chance__n)


cdef class Breeder:
    """The operators on arrays, and the stream of random numbers they share; sizes are those of one search."""

    cdef Flow flow
    cdef Room room
    cdef int jobs, nodes, node_gpus

    def __cinit__(self, int jobs, int nodes, int node_gpus, const uint32_t[::1] key, int used):
        cdef int i
        if jobs < 1 or nodes < 1 or key.shape[0] != WORDS:
            raise ValueError("jobs, nodes or the state of the stream")
        self.jobs, self.nodes, self.node_gpus = jobs, nodes, node_gpus
        for i in range(WORDS):
            self.flow.source.word[i] = key[i]
        self.flow.source.used = used
        flow_ready(&self.flow)
        breed_reserve(&self.room, nodes)

    def __dealloc__(self):
        breed_free(&self.room)

    def crossed(self, int32_t[:, :, ::1] first__mjn, int32_t[:, :, ::1] second__mjn):
        """Exchange rows between the couples of both arrays."""
        self.fits(first__mjn)
        self.fits(second__mjn)
        if first__mjn.shape[0] != second__mjn.shape[0]:
            raise ValueError("couples of two")
        if first__mjn.shape[0]:
            breed_crossover(&self.flow, &first__mjn[0, 0, 0], &second__mjn[0, 0, 0], NULL,
                            <int> first__mjn.shape[0], self.jobs, self.nodes)

    def mutated(self, int32_t[:, :, ::1] state__pjn, const int32_t[:, ::1] base__jn):
        """Change each state a little; ``base`` is what jobs have."""
        cdef int states = <int> state__pjn.shape[0]
        cdef unsigned char* flag__pjn
        self.fits(state__pjn)
        if base__jn.shape[0] != self.jobs or base__jn.shape[1] != self.nodes:
            raise ValueError("the shape of the base")
        if not states:
            return
        flag__pjn = <unsigned char*> malloc(2 * states * self.jobs * self.nodes)
        if flag__pjn == NULL:
            raise MemoryError
        breed_mutation(&self.flow, &state__pjn[0, 0, 0], &base__jn[0, 0], states, self.jobs, self.nodes,
                       self.node_gpus, flag__pjn, &self.room)
        free(flag__pjn)

    def repaired(self, int32_t[:, :, ::1] state__pjn, const int32_t[::1] most__j, const int32_t[::1] least__j):
        """Make each state possible; ``most`` and ``least`` are GPUs of each job."""
        self.fits(state__pjn)
        if most__j.shape[0] != self.jobs or least__j.shape[0] != self.jobs:
            raise ValueError("a bound for each job")
        if state__pjn.shape[0]:
            breed_repair(&self.flow, &state__pjn[0, 0, 0], &most__j[0], &least__j[0], <int> state__pjn.shape[0],
                         self.jobs, self.nodes, self.node_gpus, &self.room)

    def stream_state(self):
        """The stream as numpy knows it: key, and words of it that are used."""
        return [self.flow.source.word[i] for i in range(WORDS)], self.flow.source.used

    cdef int fits(self, int32_t[:, :, ::1] state__pjn) except -1:
        if state__pjn.shape[1] != self.jobs or state__pjn.shape[2] != self.nodes:
            raise ValueError("the shape of a state")
        return 0
