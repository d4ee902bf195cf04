"""Crossover, mutation and repair of allocations, as in Pollux's genetic search.

Numbers are drawn as ``numpy.random.RandomState`` draws them, array by array: the same seed makes the same children as
the published program's operators.
"""

cimport cython
from libc.math cimport ceil
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from fastsim_ext.random cimport (
    WORDS, NumpyStream, numpy_clear, numpy_mask, numpy_ready, numpy_renew, numpy_skip, numpy_steps, numpy_upto,
)

cdef enum:
    HALVES = 2               # words of a number in [0, 1)
    LOW_BITS = 26            # of its steps, from the second word

cdef int64_t DRAWN = 1LL << 62           # above all steps

cdef double SCALE = 9007199254740992.0   # steps of a number in [0, 1)
# Chance of a row to be reset, of a row to be thinned out, and of its cells to be emptied: a tenth.
cdef int64_t RARE_STEPS = <int64_t> ceil(0.1 * SCALE)


cdef inline int32_t below(NumpyStream* stream, int32_t limit) noexcept nogil:
    """A whole number below ``limit``; a limit of 1 draws nothing."""
    if limit <= 1:
        return 0
    return <int32_t> numpy_upto(stream, limit - 1)


cdef void genetic_crossover(NumpyStream* stream, int8_t* first__mjn, int8_t* second__mjn,
                            const unsigned char* crossed__m, int matings, int jobs, int nodes) noexcept nogil:
    """Couples exchange their rows above a cut, which is drawn for each of them; only those that are ``crossed``."""
    cdef int m, i, cut
    cdef int8_t* first
    cdef int8_t* second
    for m in range(matings):
        cut = below(stream, jobs)
        if crossed__m != NULL and not crossed__m[m]:
            continue
        first, second = first__mjn + m * jobs * nodes, second__mjn + m * jobs * nodes
        for i in range(cut * nodes):
            first[i], second[i] = second[i], first[i]


cdef void genetic_rare(NumpyStream* stream, unsigned char* flag, int count) noexcept nogil:
    """Which of so many numbers in [0, 1) are rare."""
    cdef const uint32_t* word
    cdef int32_t steps, limit = RARE_STEPS >> LOW_BITS
    cdef unsigned char near
    cdef int i, some
    while count:
        some = min(count, (WORDS - stream.source.used) // HALVES)
        numpy_clear(stream, HALVES * some)
        word, near = stream.word + stream.source.used, not some
        for i in range(some):                # high halves decide, but for one in a hundred million
            steps = word[HALVES * i] >> 5
            flag[i] = steps < limit
            near |= steps == limit
        if near:
            some = max(some, 1)
            for i in range(some):
                flag[i] = numpy_steps(stream) < RARE_STEPS
        else:
            stream.source.used += HALVES * some
        flag, count = flag + some, count - some


cdef void genetic_mutation(NumpyStream* stream, int8_t* state__pjn, const int8_t* base__jn, int states, int jobs,
                           int nodes, int node_gpus, unsigned char* flag__pjn, Room* room) noexcept nogil:
    """Some rows go back to what jobs have, some lose cells, and free GPUs are given to some job or one already there.

    ``flag`` is room for two bytes for each cell of all states.
    """
    cdef int p, n, cells = jobs * nodes
    cdef int8_t* row
    cdef unsigned char* rare__n = room.rare__n
    cdef unsigned char* more__pjn = flag__pjn + states * cells
    genetic_rare(stream, flag__pjn, states * jobs)
    for p in range(states * jobs):
        if flag__pjn[p]:
            memcpy(state__pjn + p * nodes, base__jn + (p % jobs) * nodes, nodes)
    genetic_rare(stream, flag__pjn, states * jobs)
    for p in range(states * jobs):
        if not flag__pjn[p]:
            numpy_skip(stream, HALVES * nodes)
            continue
        row = state__pjn + p * nodes
        genetic_rare(stream, rare__n, nodes)
        for n in range(nodes):
            row[n] &= <int8_t> (rare__n[n] - 1)
    genetic_chances(jobs, room)
    for p in range(states):
        genetic_chosen(stream, state__pjn + p * cells, jobs, nodes, node_gpus, flag__pjn + p * cells, room)
    genetic_drawn(stream, state__pjn, states * cells, node_gpus, more__pjn)
    for p in range(states * cells):
        state__pjn[p] += more__pjn[p] & -flag__pjn[p]


cdef void genetic_drawn(NumpyStream* stream, const int8_t* state__pjn, int cells, int node_gpus,
                        unsigned char* more__pjn) noexcept nogil:
    """GPUs by which each cell may grow: a whole number up to what is left of a node, drawn for chosen cells or not."""
    cdef uint32_t[MOST_GPUS] masks
    cdef uint32_t most, mask, drawn
    cdef int8_t value
    cdef int p = 0, at = WORDS, stop
    for value in range(node_gpus):
        masks[value] = numpy_mask(node_gpus - value)
    if stream.source.used < WORDS:
        at = stream.source.used
        numpy_clear(stream, WORDS - at)
    while p < cells:
        value = state__pjn[p]
        if value >= node_gpus:
            more__pjn[p] = 0
            p += 1
            continue
        if at == WORDS:
            numpy_renew(stream)
            numpy_clear(stream, WORDS)
            at = 0
        most, mask, stop = node_gpus - value, masks[value], min(<int> WORDS, at + cells - p)
        while at < stop and state__pjn[p] == value:
            drawn = stream.word[at] & mask     # words that are too large are written over
            more__pjn[p] = drawn
            p += drawn <= most
            at += 1
    stream.source.used = at


@cython.cdivision(True)
cdef void genetic_chances(int jobs, Room* room) noexcept nogil:
    """Chances to grow on a node with free GPUs: of any job, and of one of so many that are there, in steps."""
    cdef double there, any_job = 1.0 / jobs
    cdef int few
    room.chance__k[0] = <int64_t> ceil(any_job * SCALE)
    for few in range(1, jobs + 1):
        there = 1.0 / few
        room.chance__k[few] = <int64_t> ceil((any_job + there - any_job * there) * SCALE)


cdef void genetic_chosen(NumpyStream* stream, const int8_t* state__jn, int jobs, int nodes, int node_gpus,
                         unsigned char* flag__jn, Room* room) noexcept nogil:
    """Cells of one state that shall grow: one job of each node with free GPUs, and one of those there already."""
    cdef const int8_t* row
    cdef int16_t* load__n = room.load__n
    cdef int16_t* few__n = room.few__n
    cdef int32_t any_job = room.chance__k[0] >> LOW_BITS
    cdef int32_t free_gpus
    cdef int j, n
    if jobs == 1:                            # with a chance of 1, and none to grow into where a node is full
        memset(flag__jn, 1, nodes)
        numpy_skip(stream, HALVES * nodes)
        return
    memset(load__n, 0, nodes * sizeof(int16_t))
    memset(few__n, 0, nodes * sizeof(int16_t))
    for j in range(jobs):
        row = state__jn + j * nodes
        for n in range(nodes):
            load__n[n] += row[n]
            few__n[n] += row[n] > 0
    for n in range(nodes):
        free_gpus = -<int32_t> (load__n[n] < node_gpus)
        room.away__n[n] = any_job & free_gpus
        room.more__n[n] = (any_job ^ (room.chance__k[few__n[n]] >> LOW_BITS)) & free_gpus
    for j in range(jobs):
        genetic_taken(stream, state__jn + j * nodes, nodes, node_gpus, flag__jn + j * nodes, room)


cdef void genetic_taken(NumpyStream* stream, const int8_t* row, int nodes, int node_gpus, unsigned char* flag__n,
                        Room* room) noexcept nogil:
    """Cells of one job whose number in [0, 1) is below their chance; both are counted in steps."""
    cdef const uint32_t* word
    cdef const int32_t* away__n = room.away__n
    cdef const int32_t* more__n = room.more__n
    cdef int32_t steps, limit
    cdef unsigned char near = 0
    cdef int n
    if stream.source.used + HALVES * nodes <= WORDS:
        numpy_clear(stream, HALVES * nodes)
        word = stream.word + stream.source.used
        for n in range(nodes):               # high halves decide, but for one in a hundred million
            steps = word[HALVES * n] >> 5
            limit = away__n[n] ^ (more__n[n] & -<int32_t> (row[n] > 0))
            flag__n[n] = steps < limit
            near |= steps == limit
        if not near:
            stream.source.used += HALVES * nodes
            return
    for n in range(nodes):
        flag__n[n] = (numpy_steps(stream) < room.chance__k[room.few__n[n] if row[n] > 0 else 0]
                      and room.load__n[n] < node_gpus)


cdef void genetic_repair(NumpyStream* stream, int8_t* state__pjn, const int32_t* most__j, const int32_t* least__j,
                         int states, int jobs, int nodes, int node_gpus, bint apart, Room* room) noexcept nogil:
    """Repair states: no job and no node exceeds its number of GPUs; with ``apart``, no two jobs of several nodes share
    a node.

    Earlier jobs win on a node. Which nodes a job loses is drawn, so that not the last ones always suffer.
    """
    cdef int8_t* state
    cdef int8_t* row
    cdef int8_t* left__n = room.left__n
    cdef int8_t left
    cdef int p, j, n, gpus
    for p in range(states):
        state = state__pjn + p * jobs * nodes
        if apart:
            genetic_parted(state, jobs, nodes, room)
        memset(left__n, node_gpus, nodes)
        for j in range(jobs):
            row = state + j * nodes
            genetic_shortened(stream, row, most__j[j], nodes, room)
            gpus = 0
            for n in range(nodes):
                left = left__n[n]
                row[n] = min(row[n], left)
                left__n[n] = left - row[n]
                gpus += row[n]
            if gpus < least__j[j]:
                memset(row, 0, nodes)


cdef void genetic_parted(int8_t* state__jn, int jobs, int nodes, Room* room) noexcept nogil:
    """Let jobs on several nodes go from where an earlier one of them is, and jobs on one node from where two were."""
    cdef int8_t* row
    cdef int8_t* one__n = room.one__n
    cdef int8_t* two__n = room.two__n
    cdef int8_t here
    cdef int j, n, spread
    if jobs == 1:
        return
    memset(one__n, 0, nodes)
    memset(two__n, 0, nodes)
    for j in range(jobs):
        row = state__jn + j * nodes
        spread = 0
        for n in range(nodes):
            spread += row[n] > 0
        if spread > 1:
            for n in range(nodes):
                here = row[n] > 0
                two__n[n] |= one__n[n] & here
                one__n[n] |= here
        if spread:
            for n in range(nodes):
                row[n] &= <int8_t> (two__n[n] - 1)


cdef void genetic_shortened(NumpyStream* stream, int8_t* row, int most, int nodes, Room* room) noexcept nogil:
    """Take GPUs beyond the most from a job, from the nodes that come last in a drawn order."""
    cdef int64_t* draw__n = room.draw__n
    cdef int64_t lowest
    cdef int n, at, first, there, gpus = 0
    for n in range(nodes):
        gpus += row[n]
    if gpus <= most:
        numpy_skip(stream, HALVES * nodes)
        return
    there = genetic_places(stream, row, nodes, room)
    memset(room.keep__n, 0, nodes)
    while most > 0:                  # the nodes of the lowest numbers, and of equal ones the first
        first, lowest = 0, draw__n[0]
        for at in range(1, there):
            first = at if draw__n[at] < lowest else first
            lowest = min(draw__n[at], lowest)
        n = room.order__n[first]
        draw__n[first] = DRAWN
        room.keep__n[n] = <int8_t> min(<int> row[n], most)
        most -= room.keep__n[n]
    memcpy(row, room.keep__n, nodes)


cdef int genetic_places(NumpyStream* stream, const int8_t* row, int nodes, Room* room) noexcept nogil:
    """Nodes where a job is, in ``order``, and the numbers drawn for them; returns how many there are."""
    cdef const uint32_t* word
    cdef int n, there = 0
    if stream.source.used + HALVES * nodes <= WORDS:
        numpy_clear(stream, HALVES * nodes)
        word = stream.word + stream.source.used
        for n in range(nodes):
            room.draw__n[there] = <int64_t> (word[HALVES * n] >> 5) << LOW_BITS | word[HALVES * n + 1] >> 6
            room.order__n[there] = n
            there += row[n] > 0
        stream.source.used += HALVES * nodes
        return there
    for n in range(nodes):
        if row[n]:
            room.draw__n[there], room.order__n[there] = numpy_steps(stream), n
            there += 1
        else:
            numpy_skip(stream, HALVES)
    return there


cdef int genetic_reserve(Room* room, int jobs, int nodes) except -1 nogil:
    """Make room; ``breed_free`` gives it back, also after a failure."""
    room.load__n = <int16_t*> malloc(2 * nodes * sizeof(int16_t))
    room.one__n = <int8_t*> malloc(5 * nodes)
    room.order__n = <int32_t*> malloc(3 * nodes * sizeof(int32_t))
    room.draw__n = <int64_t*> malloc((nodes + jobs + 1) * sizeof(int64_t))
    if room.load__n == NULL or room.one__n == NULL or room.order__n == NULL or room.draw__n == NULL:
        with gil:
            raise MemoryError()
    room.few__n = room.load__n + nodes
    room.two__n, room.left__n = room.one__n + nodes, room.one__n + 2 * nodes
    room.keep__n = room.one__n + 3 * nodes
    room.rare__n = <unsigned char*> (room.one__n + 4 * nodes)
    room.away__n, room.more__n = room.order__n + nodes, room.order__n + 2 * nodes
    room.chance__k = room.draw__n + nodes
    return 0


cdef void genetic_free(Room* room) noexcept nogil:
    """Give the room back."""
    free(room.load__n)
    free(room.one__n)
    free(room.order__n)
    free(room.draw__n)


cdef class GeneticOperators:
    """The operators on arrays, and the stream of random numbers they share; sizes are those of one search."""

    cdef NumpyStream stream
    cdef Room room
    cdef int jobs, nodes, node_gpus

    def __cinit__(self, int jobs, int nodes, int node_gpus, const uint32_t[::1] key, int used):
        cdef int i
        if jobs < 1 or nodes < 1 or not 1 <= node_gpus <= MOST_GPUS or key.shape[0] != WORDS:
            raise ValueError("jobs, nodes, GPUs or the state of the stream")
        self.jobs, self.nodes, self.node_gpus = jobs, nodes, node_gpus
        for i in range(WORDS):
            self.stream.source.word[i] = key[i]
        self.stream.source.used = used
        numpy_ready(&self.stream)
        genetic_reserve(&self.room, jobs, nodes)

    def __dealloc__(self):
        genetic_free(&self.room)

    def crossed(self, int8_t[:, :, ::1] first__mjn, int8_t[:, :, ::1] second__mjn):
        """Exchange rows between the couples of both arrays."""
        self.fits(first__mjn)
        self.fits(second__mjn)
        if first__mjn.shape[0] != second__mjn.shape[0]:
            raise ValueError("couples of two")
        if first__mjn.shape[0]:
            genetic_crossover(&self.stream, &first__mjn[0, 0, 0], &second__mjn[0, 0, 0], NULL,
                              <int> first__mjn.shape[0], self.jobs, self.nodes)

    def mutated(self, int8_t[:, :, ::1] state__pjn, const int8_t[:, ::1] base__jn):
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
        genetic_mutation(&self.stream, &state__pjn[0, 0, 0], &base__jn[0, 0], states, self.jobs, self.nodes,
                         self.node_gpus, flag__pjn, &self.room)
        free(flag__pjn)

    def repaired(self, int8_t[:, :, ::1] state__pjn, const int32_t[::1] most__j, const int32_t[::1] least__j,
                 bint apart=True):
        """Make each state possible; ``most`` and ``least`` are GPUs of each job.

        ``apart``: no two jobs of several nodes share a node.
        """
        self.fits(state__pjn)
        if most__j.shape[0] != self.jobs or least__j.shape[0] != self.jobs:
            raise ValueError("a bound for each job")
        if state__pjn.shape[0]:
            genetic_repair(&self.stream, &state__pjn[0, 0, 0], &most__j[0], &least__j[0], <int> state__pjn.shape[0],
                           self.jobs, self.nodes, self.node_gpus, apart, &self.room)

    def stream_state(self):
        """The stream in numpy's terms: key, and words of it that are used."""
        return [self.stream.source.word[i] for i in range(WORDS)], self.stream.source.used

    cdef int fits(self, int8_t[:, :, ::1] state__pjn) except -1:
        if state__pjn.shape[1] != self.jobs or state__pjn.shape[2] != self.nodes:
            raise ValueError("the shape of a state")
        return 0
