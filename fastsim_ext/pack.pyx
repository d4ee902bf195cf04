"""Packing scores and device choice: integer points from what is free on one node."""

cimport cython
from libc.math cimport floor
from libc.stdint cimport int64_t, uint64_t
from fastsim_ext.types cimport FULL, Node, Pod

cdef double CPU_SPEC = 128000.0   # milli-CPU and milli-GPU of the largest node the formulas know
cdef double GPU_SPEC = 8000.0


cdef uint64_t idle_devices(const Node* node, int count) noexcept nogil:
    """The ``count`` lowest-index devices that are fully free."""
    cdef uint64_t gpus = 0
    cdef int g
    for g in range(node.num_gpu):
        if count == 0:
            break
        if node.gpu_left[g] == FULL:
            gpus |= (<uint64_t> 1) << g
            count -= 1
    return gpus


cdef int idle_count(const Node* node) noexcept nogil:
    """Devices that are fully free."""
    return fitting_devices(node, FULL)


cdef int64_t free_milli(const Node* node) noexcept nogil:
    """Milli-GPU left on the node."""
    cdef int64_t free = 0
    cdef int g
    for g in range(node.num_gpu):
        free += node.gpu_left[g]
    return free


cdef uint64_t tightest_device(const Node* node, int milli) noexcept nogil:
    """The device with least left that still has ``milli``; lowest index on ties."""
    cdef int g, best = -1
    for g in range(node.num_gpu):
        if node.gpu_left[g] >= milli and (best < 0 or node.gpu_left[g] < node.gpu_left[best]):
            best = g
    return (<uint64_t> 1) << best if best >= 0 else 0


cdef uint64_t loosest_device(const Node* node, int milli) noexcept nogil:
    """The device with most left, if that is at least ``milli``; lowest index on ties."""
    cdef int g, best = -1
    for g in range(node.num_gpu):
        if node.gpu_left[g] >= milli and (best < 0 or node.gpu_left[g] > node.gpu_left[best]):
            best = g
    return (<uint64_t> 1) << best if best >= 0 else 0


cdef int fitting_devices(const Node* node, int milli) noexcept nogil:
    """Devices with at least ``milli`` left."""
    cdef int g, fit = 0
    for g in range(node.num_gpu):
        fit += node.gpu_left[g] >= milli
    return fit


cdef uint64_t nth_fitting_device(const Node* node, int milli, int nth) noexcept nogil:
    """The ``nth`` (from 0) device, in index order, with at least ``milli`` left."""
    cdef int g
    for g in range(node.num_gpu):
        if node.gpu_left[g] >= milli:
            if nth == 0:
                return (<uint64_t> 1) << g
            nth -= 1
    return 0


cdef int64_t pack_best_fit(const Node* node, const Pod* pod) noexcept nogil:
    """Best fit: the less is left afterwards, the more points; CPU and GPU count half each."""
    cdef double cpu = <double> (node.cpu_left - pod.cpu) / CPU_SPEC * 0.5
    cdef double gpu = <double> (free_milli(node) - pod.num_gpu * pod.milli) / GPU_SPEC * 0.5
    return <int64_t> ((1.0 - (cpu + gpu)) * 100.0)


@cython.cdivision(True)
cdef int64_t pack_gpus(const Node* node, const Pod* pod) noexcept nogil:
    """GPU packing: devices in use first, then free devices of a node in use, then a free node."""
    cdef int idle = idle_count(node)
    cdef int g = 0
    cdef uint64_t device
    if pod.milli <= 0:
        return 0
    if idle == node.num_gpu:
        return max(33 - idle, idle)
    if pod.milli == FULL:
        return max(50 - pod.num_gpu, 33)
    device = tightest_device(node, pod.milli)
    while (device >> g) > 1:
        g += 1
    if node.gpu_left[g] == FULL:
        return max(50 - 1, 33)
    return max(100 - node.gpu_left[g] * 100 / FULL / 10, 50)


@cython.cdivision(True)
cdef int64_t pack_clusters(const Node* node, const Pod* pod) noexcept nogil:
    """GPU clustering: pods of one GPU shape together, preferably on nodes already busy."""
    cdef int64_t base
    cdef int tag, t, kinds = 0
    if pod.num_gpu == 0:
        return 0
    base = 25 * (8000 - free_milli(node)) / 8000
    tag = 0 if pod.num_gpu == 1 and pod.milli < FULL else pod.num_gpu
    for t in range(node.n_tags):
        kinds += node.tags[t] > 0
    if node.tags[tag] > 0:
        return base + (75 if kinds == 1 else 50)
    return base + (25 if kinds == 0 else 0)


cdef inline double simon_share(double request, double rest) noexcept nogil:
    """Request over what the node would keep of its capacity."""
    if rest == 0:
        return 0.0 if request == 0 else 1.0
    return request / rest


cdef int64_t pack_simon(const Node* node, const Pod* pod) noexcept nogil:
    """Simon: the largest share of CPU or memory the pod would take of the node's capacity."""
    cdef double cpu, mem
    if pod.cpu == 0 and pod.mem == 0 and pod.num_gpu == 0:
        return 100
    cpu = simon_share(<double> pod.cpu, <double> (node.cpu_cap - pod.cpu))
    mem = simon_share(<double> pod.mem, <double> (node.mem_cap - pod.mem))
    return <int64_t> floor(100.0 * max(cpu, mem) + 0.5)
