"""Pollux's genetic search for the best allocation of a cluster: a herd of states breeds, and its best ones live on.

It is NSGA-II with the operators of ``genetic_operators`` and the two values of ``fitness``. Pairs of parents win
tournaments, their children are changed and repaired, and those that nobody has seen join the herd; then those on the
first fronts live on, of the last front those that are least crowded. Random numbers are drawn in the order in which the
published program draws them, so that one seed leads through the same herds.
"""

cimport cython
from libc.stdint cimport int8_t, int32_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset
from fastsim_ext.adaptive.fitness cimport FitnessRoom, Judge, fitness_free, fitness_of, fitness_reserve
from fastsim_ext.adaptive.genetic_operators cimport (
    MOST_GPUS, Room, breed_crossover, breed_free, breed_mutation, breed_repair, breed_reserve,
)
from fastsim_ext.adaptive.pareto_fronts cimport (
    FrontRoom, fronts_ascending, fronts_crowding, fronts_free, fronts_reserve, fronts_sorted,
)
from fastsim_ext.random cimport WORDS, Flow, flow_begin, flow_ready, flow_uniform, flow_upto

cdef enum:
    LITTERS = 101            # how often parents meet until there are enough children
    LARGEST_SEED = 9999999   # of a search
    LARGEST_CUT = 32766      # numbers that are drawn for sizes of clusters, which never change here

cdef double MEETING = 0.9    # chance of parents to exchange rows


# ---------------------------------------------------------------------- children

cdef void genetic_shuffled(Flow* flow, int32_t* items, int count) noexcept nogil:
    """The numbers below ``count`` in a drawn order."""
    cdef int i
    cdef uint32_t j
    for i in range(count):
        items[i] = i
    for i in range(count - 1, 0, -1):
        j = flow_upto(flow, i)
        items[i], items[j] = items[j], items[i]


cdef inline int32_t winner(Flow* flow, const Population* herd, int32_t a, int32_t b) noexcept nogil:
    """The one that beats the other, or is less crowded; or either."""
    cdef bint better = herd.loss__p[a] < herd.loss__p[b] or herd.waste__p[a] < herd.waste__p[b]
    cdef bint worse = herd.loss__p[b] < herd.loss__p[a] or herd.waste__p[b] < herd.waste__p[a]
    if better != worse:
        return a if better else b
    if herd.crowding__p[a] != herd.crowding__p[b]:
        return a if herd.crowding__p[a] > herd.crowding__p[b] else b
    return b if flow_upto(flow, 1) else a


cdef void genetic_children(Flow* flow, Population* herd, int couples, const Judge* judge, const Rules* rules,
                           Room* breed) noexcept nogil:
    """Two children of each couple: exchanged, changed, repaired."""
    cdef size_t bytes = herd.cells
    cdef int drawn = 0, i, _
    while drawn < 4 * couples:
        genetic_shuffled(flow, herd.draw__p + drawn, herd.alive)
        drawn += herd.alive
    for i in range(2 * couples):
        herd.turn__p[i] = winner(flow, herd, herd.draw__p[2 * i], herd.draw__p[2 * i + 1])
    for i in range(couples):
        herd.flag__pjn[i] = flow_uniform(flow) < MEETING
        memcpy(herd.child__pjn + i * herd.cells, herd.state__pjn + herd.turn__p[2 * i] * herd.cells, bytes)
        memcpy(herd.child__pjn + (couples + i) * herd.cells, herd.state__pjn + herd.turn__p[2 * i + 1] * herd.cells,
               bytes)
    breed_crossover(flow, herd.child__pjn, herd.child__pjn + couples * herd.cells, herd.flag__pjn, couples,
                    judge.jobs, judge.nodes)
    for _ in range(2 * couples):
        flow_upto(flow, LARGEST_CUT)
    breed_mutation(flow, herd.child__pjn, judge.base__jn, 2 * couples, judge.jobs, judge.nodes, judge.node_gpus,
                   herd.flag__pjn, breed)
    breed_repair(flow, herd.child__pjn, rules.most__j, rules.least__j, 2 * couples, judge.jobs, judge.nodes,
                 judge.node_gpus, breed)


cdef uint64_t genetic_mark(const int8_t* state__jn, int cells) noexcept nogil:
    """A number that different states hardly ever share."""
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


cdef void genetic_known(Population* herd) noexcept nogil:
    """Find those who are alive by their marks from now on."""
    cdef int at, slot
    memset(herd.known__h, -1, herd.slots * sizeof(int32_t))
    for at in range(herd.alive):
        slot = herd.mark__p[at] & (herd.slots - 1)
        while herd.known__h[slot] >= 0:
            slot = (slot + 1) & (herd.slots - 1)
        herd.known__h[slot] = at


cdef bint genetic_joined(Population* herd, const int8_t* state__jn) noexcept nogil:
    """Take a state in behind the others, unless one of them is the same."""
    cdef uint64_t mark = genetic_mark(state__jn, herd.cells)
    cdef int slot = mark & (herd.slots - 1), here = herd.alive + herd.born, at = herd.known__h[slot]
    while at >= 0:
        if herd.mark__p[at] == mark and not memcmp(herd.state__pjn + at * herd.cells, state__jn, herd.cells):
            return False
        slot = (slot + 1) & (herd.slots - 1)
        at = herd.known__h[slot]
    herd.known__h[slot] = here
    memcpy(herd.state__pjn + here * herd.cells, state__jn, herd.cells)
    herd.mark__p[here] = mark
    herd.born += 1
    return True


cdef void genetic_judged(Population* herd, const Judge* judge, FitnessRoom* fit) noexcept nogil:
    """The values of the newborn."""
    cdef int at
    for at in range(herd.alive, herd.alive + herd.born):
        fitness_of(judge, herd.state__pjn + at * herd.cells, fit, &herd.loss__p[at], &herd.waste__p[at])
        herd.loss__p[at], herd.waste__p[at] = -herd.loss__p[at], -herd.waste__p[at]


cdef void genetic_born(Flow* flow, Population* herd, const Judge* judge, const Rules* rules, Room* breed,
                       FitnessRoom* fit) noexcept nogil:
    """As many new states as live in a herd, or as many as are found."""
    cdef int _, couples, at
    herd.born = 0
    genetic_known(herd)
    for _ in range(LITTERS):
        couples = (herd.size - herd.born + 1) // 2
        genetic_children(flow, herd, couples, judge, rules, breed)
        for at in range(2 * couples):
            genetic_joined(herd, herd.child__pjn + at * herd.cells)
            if herd.born == herd.size:
                break
        if herd.born == herd.size:
            break
    genetic_judged(herd, judge, fit)


# ---------------------------------------------------------------------- survival

cdef int genetic_chosen(Flow* flow, Population* herd, int32_t* member, int count, int wanted,
                        FrontRoom* fronts) noexcept nogil:
    """Put the least crowded members of a front first; the same ones in a drawn order."""
    cdef int at
    genetic_shuffled(flow, fronts.spare__p, count)
    for at in range(count):
        fronts.spare__p[at] = member[fronts.spare__p[at]]
    fronts_ascending(herd.crowding__p, fronts.spare__p, 0, count - 1)
    for at in range(wanted):
        member[at] = fronts.spare__p[count - 1 - at]
    return wanted


cdef void genetic_survived(Flow* flow, Population* herd, FrontRoom* fronts, int size) noexcept nogil:
    """Let ``size`` states live on, front after front; their values move with them."""
    cdef int all_of_them = herd.alive + herd.born
    cdef int front, start = 0, count, at, lives = 0, wanted = min(size, all_of_them)
    cdef int fronts_found = fronts_sorted(herd.loss__p, herd.waste__p, all_of_them, wanted, fronts)
    cdef int32_t p
    for front in range(fronts_found):
        count = fronts.end__f[front] - start
        fronts_crowding(herd.loss__p, herd.waste__p, start, count, herd.crowding__p, fronts)
        if lives + count > wanted:
            count = genetic_chosen(flow, herd, fronts.order__p + start, count, wanted - lives, fronts)
        for at in range(count):
            herd.order__p[lives + at] = fronts.order__p[start + at]
        lives += count
        start = fronts.end__f[front]
    for at in range(lives):
        p = herd.order__p[at]
        memcpy(herd.next__pjn + at * herd.cells, herd.state__pjn + p * herd.cells, herd.cells)
        herd.mark__p[all_of_them + at] = herd.mark__p[p]
    memcpy(herd.mark__p, herd.mark__p + all_of_them, lives * sizeof(uint64_t))
    genetic_sorted(herd.loss__p, herd.order__p, lives, fronts.gap__p)
    genetic_sorted(herd.waste__p, herd.order__p, lives, fronts.gap__p)
    genetic_sorted(herd.crowding__p, herd.order__p, lives, fronts.gap__p)
    for at in range(lives):
        herd.rank__p[at] = fronts.rank__p[herd.order__p[at]]
    herd.state__pjn, herd.next__pjn = herd.next__pjn, herd.state__pjn
    herd.alive, herd.born = lives, 0


cdef void genetic_sorted(double* value, const int32_t* order, int count, double* spare) noexcept nogil:
    cdef int at
    for at in range(count):
        spare[at] = value[order[at]]
    memcpy(value, spare, count * sizeof(double))


# ---------------------------------------------------------------------- the search

cdef int genetic_reserve(Population* herd, int size, int cells) except -1 nogil:
    """Make room; ``genetic_free`` gives it back, also after a failure."""
    herd.size, herd.cells, herd.alive, herd.born = size, cells, 0, 0
    herd.slots = 4
    while herd.slots < 4 * size:
        herd.slots *= 2
    herd.state__pjn = <int8_t*> malloc(2 * size * cells)
    herd.next__pjn = <int8_t*> malloc(2 * size * cells)
    herd.child__pjn = <int8_t*> malloc((size + 2) * cells)
    herd.loss__p = <double*> malloc(6 * size * sizeof(double))
    herd.mark__p = <uint64_t*> malloc(3 * size * sizeof(uint64_t))
    herd.known__h = <int32_t*> malloc(herd.slots * sizeof(int32_t))
    herd.rank__p = <int32_t*> malloc((10 * size + 8) * sizeof(int32_t))
    herd.flag__pjn = <unsigned char*> malloc(2 * (size + 2) * cells)
    if (herd.state__pjn == NULL or herd.next__pjn == NULL or herd.child__pjn == NULL or herd.loss__p == NULL
            or herd.mark__p == NULL or herd.known__h == NULL or herd.rank__p == NULL or herd.flag__pjn == NULL):
        with gil:
            raise MemoryError()
    herd.waste__p = herd.loss__p + 2 * size
    herd.crowding__p = herd.waste__p + 2 * size
    herd.order__p = herd.rank__p + 2 * size
    herd.turn__p = herd.order__p + 2 * size
    herd.draw__p = herd.turn__p + size + 2
    return 0


cdef void genetic_free(Population* herd) noexcept nogil:
    """Give the room back."""
    free(herd.state__pjn)
    free(herd.next__pjn)
    free(herd.child__pjn)
    free(herd.loss__p)
    free(herd.mark__p)
    free(herd.known__h)
    free(herd.rank__p)
    free(herd.flag__pjn)


cdef int genetic_searched(Flow* flow, Population* herd, const Judge* judge, const Rules* rules, int states,
                          int generations) except -1 nogil:
    """Let a herd live for some generations; its first ``states`` children are those it begins with."""
    cdef Room breed
    cdef FitnessRoom fit
    cdef FrontRoom fronts
    cdef int at, _
    breed_reserve(&breed, judge.jobs, judge.nodes)
    fitness_reserve(&fit, judge.jobs, judge.nodes)
    fronts_reserve(&fronts, 2 * herd.size)
    breed_repair(flow, herd.child__pjn, rules.most__j, rules.least__j, states, judge.jobs, judge.nodes,
                 judge.node_gpus, &breed)
    genetic_known(herd)
    for at in range(states):
        genetic_joined(herd, herd.child__pjn + at * herd.cells)
    genetic_judged(herd, judge, &fit)
    genetic_survived(flow, herd, &fronts, herd.born)
    for _ in range(1, generations):
        genetic_born(flow, herd, judge, rules, &breed, &fit)
        if not herd.born:
            break
        genetic_survived(flow, herd, &fronts, herd.size)
    breed_free(&breed)
    fitness_free(&fit)
    fronts_free(&fronts)
    return 0


@cython.final
cdef class Search:
    """Searches one after the other, with one stream of random numbers; ``size`` states live in a herd."""

    def __init__(self, uint32_t seed, int size=100):
        if size < 1:
            raise ValueError("a herd of nobody")
        self.size = size
        flow_begin(&self.flow, seed)

    def front(self, const int8_t[:, :, ::1] state__pjn, const int8_t[:, ::1] base__jn,
              const double[:, :, ::1] speedup__jsk, const double[::1] keeping__j, const double[::1] share__j,
              const int32_t[::1] most__j, const int32_t[::1] least__j, int node_gpus, double power, int generations):
        """The first front after some generations: its states, their mean speedups and their utilities.

        The search begins with the given states, ``base`` is what jobs have; the rest is told in ``fitness``.
        """
        cdef int states = <int> state__pjn.shape[0], jobs = <int> base__jn.shape[0], nodes = <int> base__jn.shape[1]
        cdef Population herd
        cdef Judge judge
        cdef Rules rules
        if (not 1 <= states <= self.size or jobs < 1 or nodes < 1
                or not 1 <= node_gpus <= MOST_GPUS or state__pjn.shape[1] != jobs
                or state__pjn.shape[2] != nodes or speedup__jsk.shape[0] != jobs or speedup__jsk.shape[1] != 2
                or speedup__jsk.shape[2] < 1 or keeping__j.shape[0] != jobs or share__j.shape[0] != jobs
                or most__j.shape[0] != jobs or least__j.shape[0] != jobs):
            raise ValueError("the shape of a search")
        judge.jobs, judge.nodes, judge.node_gpus, judge.power = jobs, nodes, node_gpus, power
        judge.most = <int> speedup__jsk.shape[2] - 1
        judge.base__jn, judge.speedup__jsk = &base__jn[0, 0], &speedup__jsk[0, 0, 0]
        judge.keeping__j, judge.share__j = &keeping__j[0], &share__j[0]
        rules.most__j, rules.least__j = &most__j[0], &least__j[0]
        try:
            with nogil:
                genetic_reserve(&herd, self.size, jobs * nodes)
                memcpy(herd.child__pjn, &state__pjn[0, 0, 0], states * herd.cells)
                flow_begin(&self.flow, flow_upto(&self.flow, LARGEST_SEED))
                genetic_searched(&self.flow, &herd, &judge, &rules, states, generations)
            return self.first(&herd, jobs, nodes)
        finally:
            genetic_free(&herd)

    cdef object first(self, Population* herd, int jobs, int nodes):
        """The states on the first front with their values."""
        import numpy as np
        cdef int at, count = 0
        cdef int8_t[:, :, ::1] state__pjn
        cdef double[::1] mean__p, utility__p
        for at in range(herd.alive):
            count += herd.rank__p[at] == 0
        state__pjn = np.empty((count, jobs, nodes), np.int8)
        mean__p, utility__p, count = np.empty(count), np.empty(count), 0
        for at in range(herd.alive):
            if herd.rank__p[at] == 0:
                memcpy(&state__pjn[count, 0, 0], herd.state__pjn + at * herd.cells, herd.cells)
                mean__p[count], utility__p[count] = -herd.loss__p[at], -herd.waste__p[at]
                count += 1
        return state__pjn.base, mean__p.base, utility__p.base

    def stream_state(self):
        """The stream as numpy knows it: key, and words of it that are used."""
        return [self.flow.source.word[i] for i in range(WORDS)], self.flow.source.used

    def go_on(self, key, int used):
        """Take over the state of a stream."""
        cdef int i
        if len(key) != WORDS or not 0 <= used <= WORDS:
            raise ValueError("the state of a stream")
        for i in range(WORDS):
            self.flow.source.word[i] = key[i]
        self.flow.source.used = used
        flow_ready(&self.flow)
