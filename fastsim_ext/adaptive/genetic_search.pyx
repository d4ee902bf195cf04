"""Pollux's genetic search for the best allocation of a cluster: a population whose best states survive.

It is NSGA-II with the operators of ``genetic_operators`` and the two values of ``fitness``. Pairs of parents win
tournaments, their children are changed and repaired, and those that are new join the population; then those on the
first fronts survive, of the last front those that are least crowded. Random numbers are drawn in the order in which the
published program draws them, so that one seed leads through the same populations.
"""

cimport cython
from libc.stdint cimport int8_t, int32_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset
from fastsim_ext.adaptive.fitness cimport FitnessRoom, FitnessInputs, fitness_free, fitness_of, fitness_reserve
from fastsim_ext.adaptive.genetic_operators cimport (
    MOST_GPUS, Room, genetic_crossover, genetic_free, genetic_mutation, genetic_repair, genetic_reserve,
)
from fastsim_ext.adaptive.pareto_fronts cimport (
    FrontRoom, fronts_ascending, fronts_crowding, fronts_free, fronts_reserve, fronts_sorted,
)
from fastsim_ext.random cimport WORDS, NumpyStream, numpy_begin, numpy_ready, numpy_uniform, numpy_upto

cdef enum:
    MATING_ROUNDS = 101            # rounds of mating until there are enough children
    LARGEST_SEED = 9999999   # of a search
    UNCHECKED = 8            # generations between two checks of Ctrl-C
    LARGEST_CUT = 32766      # numbers that are drawn for sizes of clusters, which never change here

cdef double CROSSOVER_CHANCE = 0.9    # chance of parents to exchange rows


# ---------------------------------------------------------------------- children

cdef void search_shuffled(NumpyStream* stream, int32_t* items, int count) noexcept nogil:
    """The numbers below ``count`` in a drawn order."""
    cdef int i
    cdef uint32_t j
    for i in range(count):
        items[i] = i
    for i in range(count - 1, 0, -1):
        j = numpy_upto(stream, i)
        items[i], items[j] = items[j], items[i]


cdef inline int32_t winner(NumpyStream* stream, const Population* pool, int32_t a, int32_t b) noexcept nogil:
    """The state that beats the other, or is less crowded; else one of them is drawn."""
    cdef bint better = pool.loss__p[a] < pool.loss__p[b] or pool.waste__p[a] < pool.waste__p[b]
    cdef bint worse = pool.loss__p[b] < pool.loss__p[a] or pool.waste__p[b] < pool.waste__p[a]
    if better != worse:
        return a if better else b
    if pool.crowding__p[a] != pool.crowding__p[b]:
        return a if pool.crowding__p[a] > pool.crowding__p[b] else b
    return b if numpy_upto(stream, 1) else a


cdef void search_children(NumpyStream* stream, Population* pool, int matings, const FitnessInputs* inputs,
                          const Rules* rules, Room* operators) noexcept nogil:
    """Two children of each pair of parents, after crossover, mutation and repair."""
    cdef size_t bytes = pool.cells
    cdef int drawn = 0, i, _
    while drawn < 4 * matings:
        search_shuffled(stream, pool.draw__p + drawn, pool.alive)
        drawn += pool.alive
    for i in range(2 * matings):
        pool.turn__p[i] = winner(stream, pool, pool.draw__p[2 * i], pool.draw__p[2 * i + 1])
    for i in range(matings):
        pool.flag__pjn[i] = numpy_uniform(stream) < CROSSOVER_CHANCE
        memcpy(pool.child__pjn + i * pool.cells, pool.state__pjn + pool.turn__p[2 * i] * pool.cells, bytes)
        memcpy(pool.child__pjn + (matings + i) * pool.cells, pool.state__pjn + pool.turn__p[2 * i + 1] * pool.cells,
               bytes)
    genetic_crossover(stream, pool.child__pjn, pool.child__pjn + matings * pool.cells, pool.flag__pjn, matings,
                      inputs.jobs, inputs.nodes)
    for _ in range(2 * matings):
        numpy_upto(stream, LARGEST_CUT)
    genetic_mutation(stream, pool.child__pjn, inputs.base__jn, 2 * matings, inputs.jobs, inputs.nodes, inputs.node_gpus,
                     pool.flag__pjn, operators)
    genetic_repair(stream, pool.child__pjn, rules.most__j, rules.least__j, 2 * matings, inputs.jobs, inputs.nodes,
                   inputs.node_gpus, rules.apart, operators)


cdef uint64_t search_hash(const int8_t* state__jn, int cells) noexcept nogil:
    """A hash of a state."""
    cdef uint64_t mark = 0xcbf29ce484222325ULL
    cdef uint64_t part = 0
    cdef int i
    for i in range(0, cells - 7, 8):
        memcpy(&part, state__jn + i, 8)
        mark = (mark ^ part) * 0x9e3779b97f4a7c15ULL
        mark ^= mark >> 29
    part = 0
    memcpy(&part, state__jn + cells - cells % 8, cells % 8)
    mark = (mark ^ part) * 0x9e3779b97f4a7c15ULL
    return mark ^ (mark >> 32)


cdef void search_index(Population* pool) noexcept nogil:
    """Index the surviving states by their hashes."""
    cdef int at, slot
    memset(pool.known__h, -1, pool.slots * sizeof(int32_t))
    for at in range(pool.alive):
        slot = pool.mark__p[at] & (pool.slots - 1)
        while pool.known__h[slot] >= 0:
            slot = (slot + 1) & (pool.slots - 1)
        pool.known__h[slot] = at


cdef bint search_add(Population* pool, const int8_t* state__jn) noexcept nogil:
    """Add a state behind the others, unless one of them is equal; whether it was added."""
    cdef uint64_t mark = search_hash(state__jn, pool.cells)
    cdef int slot = mark & (pool.slots - 1), here = pool.alive + pool.born, at = pool.known__h[slot]
    while at >= 0:
        if pool.mark__p[at] == mark and not memcmp(pool.state__pjn + at * pool.cells, state__jn, pool.cells):
            return False
        slot = (slot + 1) & (pool.slots - 1)
        at = pool.known__h[slot]
    pool.known__h[slot] = here
    memcpy(pool.state__pjn + here * pool.cells, state__jn, pool.cells)
    pool.mark__p[here] = mark
    pool.born += 1
    return True


cdef void search_evaluate(Population* pool, const FitnessInputs* inputs, FitnessRoom* fit) noexcept nogil:
    """Compute the values of the new states."""
    cdef int at
    for at in range(pool.alive, pool.alive + pool.born):
        fitness_of(inputs, pool.state__pjn + at * pool.cells, fit, &pool.loss__p[at], &pool.waste__p[at])
        pool.loss__p[at], pool.waste__p[at] = -pool.loss__p[at], -pool.waste__p[at]


cdef void search_offspring(NumpyStream* stream, Population* pool, const FitnessInputs* inputs, const Rules* rules,
                           Room* operators, FitnessRoom* fit) noexcept nogil:
    """Make new states: ``pool.size`` of them, or as many as ``MATING_ROUNDS`` rounds yield."""
    cdef int _, matings, at
    pool.born = 0
    search_index(pool)
    for _ in range(MATING_ROUNDS):
        matings = (pool.size - pool.born + 1) // 2
        search_children(stream, pool, matings, inputs, rules, operators)
        for at in range(2 * matings):
            search_add(pool, pool.child__pjn + at * pool.cells)
            if pool.born == pool.size:
                break
        if pool.born == pool.size:
            break
    search_evaluate(pool, inputs, fit)


# ---------------------------------------------------------------------- survival

cdef int search_least_crowded(NumpyStream* stream, Population* pool, int32_t* member, int count, int wanted,
                              FrontRoom* fronts) noexcept nogil:
    """Put the least crowded members of a front first; equal ones in a drawn order."""
    cdef int at
    search_shuffled(stream, fronts.spare__p, count)
    for at in range(count):
        fronts.spare__p[at] = member[fronts.spare__p[at]]
    fronts_ascending(pool.crowding__p, fronts.spare__p, 0, count - 1)
    for at in range(wanted):
        member[at] = fronts.spare__p[count - 1 - at]
    return wanted


cdef void search_survive(NumpyStream* stream, Population* pool, FrontRoom* fronts, int size) noexcept nogil:
    """Keep ``size`` states, front after front; their values move with them."""
    cdef int all_of_them = pool.alive + pool.born
    cdef int front, start = 0, count, at, lives = 0, wanted = min(size, all_of_them)
    cdef int fronts_found = fronts_sorted(pool.loss__p, pool.waste__p, all_of_them, wanted, fronts)
    cdef int32_t p
    for front in range(fronts_found):
        count = fronts.end__f[front] - start
        fronts_crowding(pool.loss__p, pool.waste__p, start, count, pool.crowding__p, fronts)
        if lives + count > wanted:
            count = search_least_crowded(stream, pool, fronts.order__p + start, count, wanted - lives, fronts)
        for at in range(count):
            pool.order__p[lives + at] = fronts.order__p[start + at]
        lives += count
        start = fronts.end__f[front]
    for at in range(lives):
        p = pool.order__p[at]
        memcpy(pool.next__pjn + at * pool.cells, pool.state__pjn + p * pool.cells, pool.cells)
        pool.mark__p[all_of_them + at] = pool.mark__p[p]
    memcpy(pool.mark__p, pool.mark__p + all_of_them, lives * sizeof(uint64_t))
    search_sorted(pool.loss__p, pool.order__p, lives, fronts.gap__p)
    search_sorted(pool.waste__p, pool.order__p, lives, fronts.gap__p)
    search_sorted(pool.crowding__p, pool.order__p, lives, fronts.gap__p)
    for at in range(lives):
        pool.rank__p[at] = fronts.rank__p[pool.order__p[at]]
    pool.state__pjn, pool.next__pjn = pool.next__pjn, pool.state__pjn
    pool.alive, pool.born = lives, 0


cdef void search_sorted(double* value, const int32_t* order, int count, double* spare) noexcept nogil:
    cdef int at
    for at in range(count):
        spare[at] = value[order[at]]
    memcpy(value, spare, count * sizeof(double))


# ---------------------------------------------------------------------- the search

cdef int search_reserve(Population* pool, int size, int cells) except -1 nogil:
    """Allocate memory; ``search_free`` releases it, also after a failure."""
    pool.size, pool.cells, pool.alive, pool.born = size, cells, 0, 0
    pool.slots = 4
    while pool.slots < 4 * size:
        pool.slots *= 2
    pool.state__pjn = <int8_t*> malloc(2 * size * cells)
    pool.next__pjn = <int8_t*> malloc(2 * size * cells)
    pool.child__pjn = <int8_t*> malloc((size + 2) * cells)
    pool.loss__p = <double*> malloc(6 * size * sizeof(double))
    pool.mark__p = <uint64_t*> malloc(3 * size * sizeof(uint64_t))
    pool.known__h = <int32_t*> malloc(pool.slots * sizeof(int32_t))
    pool.rank__p = <int32_t*> malloc((10 * size + 8) * sizeof(int32_t))
    pool.flag__pjn = <unsigned char*> malloc(2 * (size + 2) * cells)
    if (pool.state__pjn == NULL or pool.next__pjn == NULL or pool.child__pjn == NULL or pool.loss__p == NULL
            or pool.mark__p == NULL or pool.known__h == NULL or pool.rank__p == NULL or pool.flag__pjn == NULL):
        with gil:
            raise MemoryError()
    pool.waste__p = pool.loss__p + 2 * size
    pool.crowding__p = pool.waste__p + 2 * size
    pool.order__p = pool.rank__p + 2 * size
    pool.turn__p = pool.order__p + 2 * size
    pool.draw__p = pool.turn__p + size + 2
    return 0


cdef void search_free(Population* pool) noexcept nogil:
    """Release the memory."""
    free(pool.state__pjn)
    free(pool.next__pjn)
    free(pool.child__pjn)
    free(pool.loss__p)
    free(pool.mark__p)
    free(pool.known__h)
    free(pool.rank__p)
    free(pool.flag__pjn)


cdef struct SearchRoom:
    Room operators
    FitnessRoom fit
    FrontRoom fronts


cdef int search_begin(NumpyStream* stream, Population* pool, const FitnessInputs* inputs, const Rules* rules,
                      int states, SearchRoom* room) except -1 nogil:
    """The first generation of a population, whose first ``states`` children are its initial states."""
    cdef int at
    genetic_reserve(&room.operators, inputs.jobs, inputs.nodes)
    fitness_reserve(&room.fit, inputs.jobs, inputs.nodes)
    fronts_reserve(&room.fronts, 2 * pool.size)
    genetic_repair(stream, pool.child__pjn, rules.most__j, rules.least__j, states, inputs.jobs, inputs.nodes,
                   inputs.node_gpus, rules.apart, &room.operators)
    search_index(pool)
    for at in range(states):
        search_add(pool, pool.child__pjn + at * pool.cells)
    search_evaluate(pool, inputs, &room.fit)
    search_survive(stream, pool, &room.fronts, pool.born)
    return 0


cdef bint search_evolve(NumpyStream* stream, Population* pool, const FitnessInputs* inputs, const Rules* rules,
                        int generations, SearchRoom* room) except -1 nogil:
    """Evolve a population for further generations; False if one has no new children, after which none changes."""
    cdef int _
    for _ in range(generations):
        search_offspring(stream, pool, inputs, rules, &room.operators, &room.fit)
        if not pool.born:
            return False
        search_survive(stream, pool, &room.fronts, pool.size)
    return True


@cython.final
cdef class GeneticSearch:
    """Searches one after the other, with one stream of random numbers; a population has ``size`` states."""

    def __init__(self, uint32_t seed, int size=100):
        if size < 1:
            raise ValueError("a population of no states")
        self.size = size
        numpy_begin(&self.stream, seed)

    def front(self, const int8_t[:, :, ::1] state__pjn, const int8_t[:, ::1] base__jn,
              const double[:, :, ::1] speedup__jsk, const double[::1] keeping__j, const double[::1] share__j,
              const int32_t[::1] most__j, const int32_t[::1] least__j, int node_gpus, double power, int generations,
              bint apart=True, check=None):
        """The first front after some generations: its states, their mean speedups and their utilities.

        ``state`` holds the initial states, ``base`` the present allocation. ``most`` and ``least`` limit a job's GPUs
        unless it has none; ``fitness`` defines the other terms. ``apart``: no two jobs of several nodes share a node.
        ``check`` is called between some generations, and may raise.
        """
        cdef bint born = True
        cdef SearchRoom room
        cdef int some
        cdef int states = <int> state__pjn.shape[0], jobs = <int> base__jn.shape[0], nodes = <int> base__jn.shape[1]
        cdef Population pool
        cdef FitnessInputs inputs
        cdef Rules rules
        if (not 1 <= states <= self.size or jobs < 1 or nodes < 1
                or not 1 <= node_gpus <= MOST_GPUS or state__pjn.shape[1] != jobs
                or state__pjn.shape[2] != nodes or speedup__jsk.shape[0] != jobs or speedup__jsk.shape[1] != 2
                or speedup__jsk.shape[2] < 1 or keeping__j.shape[0] != jobs or share__j.shape[0] != jobs
                or most__j.shape[0] != jobs or least__j.shape[0] != jobs):
            raise ValueError("the shape of a search")
        inputs.jobs, inputs.nodes, inputs.node_gpus, inputs.power = jobs, nodes, node_gpus, power
        inputs.most = <int> speedup__jsk.shape[2] - 1
        inputs.base__jn, inputs.speedup__jsk = &base__jn[0, 0], &speedup__jsk[0, 0, 0]
        inputs.keeping__j, inputs.share__j = &keeping__j[0], &share__j[0]
        rules.most__j, rules.least__j, rules.apart = &most__j[0], &least__j[0], apart
        memset(&room, 0, sizeof(SearchRoom))
        memset(&pool, 0, sizeof(Population))
        try:
            with nogil:
                search_reserve(&pool, self.size, jobs * nodes)
                memcpy(pool.child__pjn, &state__pjn[0, 0, 0], states * pool.cells)
                numpy_begin(&self.stream, numpy_upto(&self.stream, LARGEST_SEED))
                search_begin(&self.stream, &pool, &inputs, &rules, states, &room)
            generations -= 1
            while born and generations > 0:
                if check is not None:
                    check()
                some = min(generations, UNCHECKED)
                generations -= some
                with nogil:
                    born = search_evolve(&self.stream, &pool, &inputs, &rules, some, &room)
            return self.first(&pool, jobs, nodes)
        finally:
            genetic_free(&room.operators)
            fitness_free(&room.fit)
            fronts_free(&room.fronts)
            search_free(&pool)

    cdef object first(self, Population* pool, int jobs, int nodes):
        """The states on the first front with their values."""
        import numpy as np
        cdef int at, count = 0
        cdef int8_t[:, :, ::1] state__pjn
        cdef double[::1] mean__p, utility__p
        for at in range(pool.alive):
            count += pool.rank__p[at] == 0
        state__pjn = np.empty((count, jobs, nodes), np.int8)
        mean__p, utility__p, count = np.empty(count), np.empty(count), 0
        for at in range(pool.alive):
            if pool.rank__p[at] == 0:
                memcpy(&state__pjn[count, 0, 0], pool.state__pjn + at * pool.cells, pool.cells)
                mean__p[count], utility__p[count] = -pool.loss__p[at], -pool.waste__p[at]
                count += 1
        return state__pjn.base, mean__p.base, utility__p.base

    def stream_state(self):
        """The stream in numpy's terms: key, and words of it that are used."""
        return [self.stream.source.word[i] for i in range(WORDS)], self.stream.source.used

    def restore_stream(self, key, int used):
        """Take over the state of a stream."""
        cdef int i
        if len(key) != WORDS or not 0 <= used <= WORDS:
            raise ValueError("the state of a stream")
        for i in range(WORDS):
            self.stream.source.word[i] = key[i]
        self.stream.source.used = used
        numpy_ready(&self.stream)
