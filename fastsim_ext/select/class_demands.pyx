"""Demands of many pod classes, side by side, and the first check that one node fails for each.

A check is one pass without branches, so that compilers can process several classes at a time.
``ClassDemands`` holds the demands as numbers; ``ByteThresholds`` holds their ranks, which take one byte each.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc
from fastsim_ext.select.max_tree cimport ROW
from fastsim_ext.state.pod_outcomes cimport NO_CPU, NO_GPU, NO_GPU_MODEL, NO_MEMORY, NO_POD_SLOT
from fastsim_ext.types cimport FULL, Node, Pod


cdef int demands_alloc(ClassDemands* demands, int n_models) except -1 nogil:
    """Allocate room for ROOM classes, all unused."""
    cdef int c
    demands.n_models = n_models
    demands.closed = <int32_t*> calloc(<size_t> (n_models + 1) * ROOM, sizeof(int32_t))
    if demands.closed == NULL:
        with gil:
            raise MemoryError()
    for c in range(ROOM):
        demands_drop(demands, c)
    return 0


cdef bint demands_expressible(const Pod* pod) noexcept nogil:
    """Whether the numbers of ClassDemands can express a request."""
    return (pod.cpu <= LARGEST and pod.mem <= LARGEST
            and (pod.num_gpu == 0 or pod.milli == FULL or (pod.num_gpu == 1 and pod.milli > 0)))


cdef void demands_set(ClassDemands* demands, int c, const Pod* pod) noexcept nogil:
    """Enter the demands of class ``c``."""
    cdef int m
    demands.changes += 1
    demands.cpu[c], demands.mem[c] = <int32_t> pod.cpu, <int32_t> pod.mem
    demands.most[c] = pod.milli if pod.num_gpu > 0 else 0
    demands.idle[c] = pod.num_gpu if pod.num_gpu > 1 else 0
    for m in range(demands.n_models + 1):
        demands.closed[m * ROOM + c] = pod.num_gpu > 0 and pod.models != 0 and (
            m == 0 or not (pod.models >> (m - 1)) & 1)


cdef void demands_drop(ClassDemands* demands, int c) noexcept nogil:
    """Remove class ``c``: it fits nowhere."""
    demands.changes += 1
    demands.cpu[c], demands.mem[c], demands.most[c], demands.idle[c] = 0, 0, LARGEST, 0


cdef int32_t demands_check_one(const ClassDemands* demands, int c, const Node* node, bint full,
                               int32_t unfit) noexcept nogil:
    """0 where the node can host one class, else ``unfit`` plus the first check it fails; see demands_check."""
    cdef int32_t stage = unfit + NO_POD_SLOT if full else 0
    # No branches: which check a node fails is unpredictable.
    stage = unfit + NO_MEMORY if node.mem_left < demands.mem[c] else stage
    stage = unfit + NO_CPU if node.cpu_left < demands.cpu[c] else stage
    stage = unfit + NO_GPU if (node.most < demands.most[c]) | (node.idle < demands.idle[c]) else stage
    return unfit + NO_GPU_MODEL if demands.closed[<int64_t> (node.model + 1) * ROOM + c] != 0 else stage


cdef void demands_check(const ClassDemands* demands, int first, int last, const Node* node, bint full, int32_t unfit,
                        int32_t* out) noexcept nogil:
    """For each class 0 where the node can host it, else ``unfit`` plus the first check it fails."""
    cdef const int32_t* closed = demands.closed + <int64_t> (node.model + 1) * ROOM
    cdef int32_t cpu = <int32_t> min(node.cpu_left, LARGEST)
    cdef int32_t mem = <int32_t> min(node.mem_left, LARGEST)
    cdef int32_t most = node.most
    cdef int32_t idle = node.idle
    cdef int32_t slot = unfit + NO_POD_SLOT if full else 0
    cdef int32_t stage
    cdef int c
    for c in range(first, last):
        stage = slot
        stage = unfit + NO_MEMORY if mem < demands.mem[c] else stage
        stage = unfit + NO_CPU if cpu < demands.cpu[c] else stage
        stage = unfit + NO_GPU if most < demands.most[c] else stage
        stage = unfit + NO_GPU if idle < demands.idle[c] else stage
        stage = unfit + NO_GPU_MODEL if closed[c] != 0 else stage
        out[c] = stage


cdef bint levels_build(ThresholdLevels* levels, const int32_t* amount__c) noexcept nogil:
    """Rank the distinct amounts of one resource; whether a byte is enough for the ranks."""
    cdef int32_t* amounts = &levels.amounts[0]
    cdef int c, i, k
    levels.count, amounts[0] = 1, 0
    for c in range(ROOM):
        k = level_of(levels, amount__c[c])
        if amount__c[c] > amounts[k]:
            if levels.count == LEVELS - 1:
                return False
            for i in range(levels.count, k + 1, -1):
                amounts[i] = amounts[i - 1]
            amounts[k + 1] = amount__c[c]
            levels.count += 1
    for c in range(ROOM):
        levels.of_class[c] = <int8_t> (level_of(levels, amount__c[c]) - 128)
    return True


cdef inline int level_of(const ThresholdLevels* levels, int64_t amount) noexcept nogil:
    """The rank of the largest level not above ``amount``; no branch, because none could be predicted."""
    cdef int low = 0
    cdef int count = levels.count
    cdef int half
    while count > 1:
        half = count // 2
        low = low + half if levels.amounts[low + half] <= amount else low
        count -= half
    return low


cdef int thresholds_build(ByteThresholds* thresholds, const ClassDemands* demands) except -1 nogil:
    """Rank the demands again after classes changed."""
    cdef int64_t i
    thresholds.changes = demands.changes
    if thresholds.closed == NULL:
        thresholds.closed = <int8_t*> calloc(<size_t> (demands.n_models + 1) * ROOM, 1)
        if thresholds.closed == NULL:
            with gil:
                raise MemoryError()
    for i in range((demands.n_models + 1) * ROOM):
        thresholds.closed[i] = SMALL_UNFIT + NO_GPU_MODEL if demands.closed[i] != 0 else CLEAR
    for i in range(ROOM):
        thresholds.idle[i] = <int8_t> min(demands.idle[i], CLEAR)
    thresholds.exact = (levels_build(&thresholds.cpu, &demands.cpu[0])
                        and levels_build(&thresholds.mem, &demands.mem[0])
                        and levels_build(&thresholds.most, &demands.most[0]))
    return 0


cdef inline int8_t lower(int8_t a, int8_t b) noexcept nogil:
    return a if a < b else b


cdef inline int8_t checked(int8_t demand, int8_t left, int8_t reason) noexcept nogil:
    """CLEAR if what is left meets the demand, else the reason."""
    return reason if demand > left else <int8_t> CLEAR


cdef bint thresholds_row(const ByteThresholds* thresholds, int count, const Node* node, bint full,
                         const int8_t* figure__c, int8_t* out__c) noexcept nogil:
    """The figure of each class that the node can host, else the reason; whether a figure is missing.

    Writes whole rows of ROW classes. Later checks have larger reasons, so the least is the first check that failed.
    """
    cdef int8_t cpu = <int8_t> (level_of(&thresholds.cpu, node.cpu_left) - 128)
    cdef int8_t mem = <int8_t> (level_of(&thresholds.mem, node.mem_left) - 128)
    cdef int8_t most = <int8_t> (level_of(&thresholds.most, node.most) - 128)
    cdef int8_t idle = <int8_t> min(node.idle, CLEAR)
    cdef int8_t slot = SMALL_UNFIT + NO_POD_SLOT if full else CLEAR
    cdef const int8_t* closed = thresholds.closed + <int64_t> (node.model + 1) * ROOM
    cdef const int8_t* cpus = &thresholds.cpu.of_class[0]
    cdef const int8_t* mems = &thresholds.mem.of_class[0]
    cdef const int8_t* mosts = &thresholds.most.of_class[0]
    cdef const int8_t* idles = &thresholds.idle[0]
    cdef int8_t worth
    cdef int8_t unknown = 0
    cdef int c
    for c in range((count + ROW - 1) // ROW * ROW):
        worth = lower(lower(figure__c[c], closed[c]), slot)
        worth = lower(worth, checked(cpus[c], cpu, SMALL_UNFIT + NO_CPU))
        worth = lower(worth, checked(mems[c], mem, SMALL_UNFIT + NO_MEMORY))
        worth = lower(worth, checked(mosts[c], most, SMALL_UNFIT + NO_GPU))
        worth = lower(worth, checked(idles[c], idle, SMALL_UNFIT + NO_GPU))
        out__c[c] = worth
        unknown |= worth == CLEAR
    return unknown
