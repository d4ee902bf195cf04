"""What many pod classes ask of a node, side by side, and how far one node gets with each of them.

One pass over plain numbers without branches, so that a compiler can take several classes at a time.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc
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
