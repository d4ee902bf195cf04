"""What many pod classes ask of a node, side by side, and how far one node gets with each of them.

One pass over plain numbers without branches, so that a compiler can take several classes at a time.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc
from fastsim_ext.select.max_tree cimport ROW
from fastsim_ext.state.pod_outcomes cimport NO_CPU, NO_GPU, NO_GPU_MODEL, NO_MEMORY, NO_POD_SLOT
from fastsim_ext.types cimport FULL, Node, Pod


cdef int needs_plan(Needs* needs, int n_models) except -1 nogil:
    """Room for every class, none of which fits."""
    cdef int c
    needs.n_models = n_models
    needs.closed = <int32_t*> calloc(<size_t> (n_models + 1) * ROOM, sizeof(int32_t))
    if needs.closed == NULL:
        with gil:
            raise MemoryError()
    for c in range(ROOM):
        needs_drop(needs, c)
    return 0


cdef bint needs_known(const Pod* pod) noexcept nogil:
    """Whether what a class asks for can be put this way."""
    return (pod.cpu <= LARGEST and pod.mem <= LARGEST
            and (pod.num_gpu == 0 or pod.milli == FULL or (pod.num_gpu == 1 and pod.milli > 0)))


cdef void needs_set(Needs* needs, int c, const Pod* pod) noexcept nogil:
    """What class ``c`` asks for."""
    cdef int m
    needs.changes += 1
    needs.cpu[c], needs.mem[c] = <int32_t> pod.cpu, <int32_t> pod.mem
    needs.most[c] = pod.milli if pod.num_gpu > 0 else 0
    needs.idle[c] = pod.num_gpu if pod.num_gpu > 1 else 0
    for m in range(needs.n_models + 1):
        needs.closed[m * ROOM + c] = pod.num_gpu > 0 and pod.models != 0 and (
            m == 0 or not (pod.models >> (m - 1)) & 1)


cdef void needs_drop(Needs* needs, int c) noexcept nogil:
    """There is no class ``c`` any more."""
    needs.changes += 1
    needs.cpu[c], needs.mem[c], needs.most[c], needs.idle[c] = 0, 0, LARGEST, 0


cdef int32_t needs_one(const Needs* needs, int c, const Node* node, bint full, int32_t unfit) noexcept nogil:
    """0 where the node can host one class, else ``unfit`` plus the first check it fails, as needs_judge says."""
    cdef int32_t stage = unfit + NO_POD_SLOT if full else 0
    # No branches: of many nodes, which check each of them fails cannot be foreseen.
    stage = unfit + NO_MEMORY if node.mem_left < needs.mem[c] else stage
    stage = unfit + NO_CPU if node.cpu_left < needs.cpu[c] else stage
    stage = unfit + NO_GPU if (node.most < needs.most[c]) | (node.idle < needs.idle[c]) else stage
    return unfit + NO_GPU_MODEL if needs.closed[<int64_t> (node.model + 1) * ROOM + c] != 0 else stage


cdef void needs_judge(const Needs* needs, int first, int last, const Node* node, bint full, int32_t unfit,
                      int32_t* out) noexcept nogil:
    """For each class 0 where the node can host it, else ``unfit`` plus the first check it fails."""
    cdef const int32_t* closed = needs.closed + <int64_t> (node.model + 1) * ROOM
    cdef int32_t cpu = <int32_t> min(node.cpu_left, LARGEST)
    cdef int32_t mem = <int32_t> min(node.mem_left, LARGEST)
    cdef int32_t most = node.most
    cdef int32_t idle = node.idle
    cdef int32_t slot = unfit + NO_POD_SLOT if full else 0
    cdef int32_t stage
    cdef int c
    for c in range(first, last):
        stage = slot
        stage = unfit + NO_MEMORY if mem < needs.mem[c] else stage
        stage = unfit + NO_CPU if cpu < needs.cpu[c] else stage
        stage = unfit + NO_GPU if most < needs.most[c] else stage
        stage = unfit + NO_GPU if idle < needs.idle[c] else stage
        stage = unfit + NO_GPU_MODEL if closed[c] != 0 else stage
        out[c] = stage


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
