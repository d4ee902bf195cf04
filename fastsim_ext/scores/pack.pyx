"""Packing scores: integer points from what is free on one node."""

cimport cython
from libc.math cimport floor
from libc.stdint cimport int64_t, uint64_t
from fastsim_ext.scores.device cimport device_free_milli, device_idle_count, device_tightest
from fastsim_ext.types cimport CPU_SPEC, FULL, GPU_SPEC, Node, Pod


cdef int64_t pack_best_fit(const Node* node, const Pod* pod) noexcept nogil:
    """Best fit: the less is left afterwards, the more points; CPU and GPU count half each."""
    cdef double cpu = <double> (node.cpu_left - pod.cpu) / <double> CPU_SPEC * 0.5
    cdef double gpu = <double> (device_free_milli(node) - pod.num_gpu * pod.milli) / <double> GPU_SPEC * 0.5
    return <int64_t> ((1.0 - (cpu + gpu)) * 100.0)


@cython.cdivision(True)
cdef int64_t pack_gpus(const Node* node, const Pod* pod) noexcept nogil:
    """GPU packing: devices in use first, then free devices of a node in use, then a free node."""
    cdef int idle = device_idle_count(node)
    cdef int g = 0
    cdef uint64_t device
    if pod.milli <= 0:
        return 0
    if idle == node.num_gpu:
        return max(33 - idle, idle)
    if pod.milli == FULL:
        return max(50 - pod.num_gpu, 33)
    device = device_tightest(node, pod.milli)
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
    base = 25 * (GPU_SPEC - device_free_milli(node)) / GPU_SPEC
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
