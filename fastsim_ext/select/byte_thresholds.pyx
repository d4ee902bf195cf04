"""What many pod classes ask of a node as numbers of one byte: the higher a hurdle, the more is asked for.

Only the order of amounts decides who fits, so amounts are numbered in rising order, and sixteen classes are judged
in the time of one. What is worked out for a class that fits is known to be above every reason of one that does not:
the smaller of the two is what the node is worth.
"""

from libc.stdlib cimport calloc
from fastsim_ext.select.class_demands cimport SMALL_UNFIT
from fastsim_ext.select.max_tree cimport ROW
from fastsim_ext.state.pod_outcomes cimport NO_CPU, NO_GPU, NO_GPU_MODEL, NO_MEMORY, NO_POD_SLOT


cdef bint raised(ThresholdLevels* heights, const int32_t* amount__c) noexcept nogil:
    """Number the amounts that classes ask for; whether a byte is enough."""
    cdef int32_t* amounts = &heights.amounts[0]
    cdef int c, i, k
    heights.count, amounts[0] = 1, 0
    for c in range(ROOM):
        k = level(heights, amount__c[c])
        if amount__c[c] > amounts[k]:
            if heights.count == HEIGHTS - 1:
                return False
            for i in range(heights.count, k + 1, -1):
                amounts[i] = amounts[i - 1]
            amounts[k + 1] = amount__c[c]
            heights.count += 1
    for c in range(ROOM):
        heights.of_class[c] = <int8_t> (level(heights, amount__c[c]) - 128)
    return True


cdef inline int level(const ThresholdLevels* heights, int64_t amount) noexcept nogil:
    """The number of the largest amount that ``amount`` covers; no branch, because which it is cannot be foreseen."""
    cdef int low = 0
    cdef int count = heights.count
    cdef int half
    while count > 1:
        half = count // 2
        low = low + half if heights.amounts[low + half] <= amount else low
        count -= half
    return low


cdef int hurdles_make(ByteThresholds* hurdles, const Needs* needs) except -1 nogil:
    """Number what classes ask for anew."""
    cdef int64_t i
    hurdles.changes = needs.changes
    if hurdles.closed == NULL:
        hurdles.closed = <int8_t*> calloc(<size_t> (needs.n_models + 1) * ROOM, 1)
        if hurdles.closed == NULL:
            with gil:
                raise MemoryError()
    for i in range((needs.n_models + 1) * ROOM):
        hurdles.closed[i] = SMALL_UNFIT + NO_GPU_MODEL if needs.closed[i] != 0 else CLEAR
    for i in range(ROOM):
        hurdles.idle[i] = <int8_t> min(needs.idle[i], CLEAR)
    hurdles.told = (raised(&hurdles.cpu, &needs.cpu[0]) and raised(&hurdles.mem, &needs.mem[0])
                    and raised(&hurdles.most, &needs.most[0]))
    return 0


cdef inline int8_t lower(int8_t a, int8_t b) noexcept nogil:
    return a if a < b else b


cdef inline int8_t met(int8_t asked, int8_t there, int8_t reason) noexcept nogil:
    """CLEAR where what is asked for is there, else the reason."""
    return reason if asked > there else <int8_t> CLEAR


cdef bint hurdles_row(const ByteThresholds* hurdles, int count, const Node* node, bint full, const int8_t* figure__c,
                      int8_t* out__c) noexcept nogil:
    """The figure of each class that the node can host, else why it cannot; whether one is not known.

    Whole rows of ROW classes. Reasons rise with how far a node gets, so the least one is the first check it fails.
    """
    cdef int8_t cpu = <int8_t> (level(&hurdles.cpu, node.cpu_left) - 128)
    cdef int8_t mem = <int8_t> (level(&hurdles.mem, node.mem_left) - 128)
    cdef int8_t most = <int8_t> (level(&hurdles.most, node.most) - 128)
    cdef int8_t idle = <int8_t> min(node.idle, CLEAR)
    cdef int8_t slot = SMALL_UNFIT + NO_POD_SLOT if full else CLEAR
    cdef const int8_t* closed = hurdles.closed + <int64_t> (node.model + 1) * ROOM
    cdef const int8_t* cpus = &hurdles.cpu.of_class[0]
    cdef const int8_t* mems = &hurdles.mem.of_class[0]
    cdef const int8_t* mosts = &hurdles.most.of_class[0]
    cdef const int8_t* idles = &hurdles.idle[0]
    cdef int8_t worth
    cdef int8_t unknown = 0
    cdef int c
    for c in range((count + ROW - 1) // ROW * ROW):
        worth = lower(lower(figure__c[c], closed[c]), slot)
        worth = lower(worth, met(cpus[c], cpu, SMALL_UNFIT + NO_CPU))
        worth = lower(worth, met(mems[c], mem, SMALL_UNFIT + NO_MEMORY))
        worth = lower(worth, met(mosts[c], most, SMALL_UNFIT + NO_GPU))
        worth = lower(worth, met(idles[c], idle, SMALL_UNFIT + NO_GPU))
        out__c[c] = worth
        unknown |= worth == CLEAR
    return unknown
