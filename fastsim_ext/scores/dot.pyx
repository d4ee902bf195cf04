"""Dot-product scores: alignment of a node's free resources with a pod's request.

A node offers one or more match groups (a free CPU and GPU vector and the devices behind it); each
group's score is one minus the mean product of the normalised vectors, and the first best wins.
"""

from libc.math cimport INFINITY, tanh
from libc.stdint cimport int64_t, uint64_t
from fastsim_ext.scores.device cimport device_free_milli, device_idle_count, device_idle
from fastsim_ext.types cimport BY_NODE, BY_POD, CPU_SPEC, DIVIDE, EXTEND, FULL, GPU_SPEC, MERGE, Node, Pod


cdef struct Scale:
    double cpu, gpu          # what a vector's components are divided by
    int norm


cdef struct Best:
    double score
    uint64_t gpus


cdef inline double scaled(double value, double by) noexcept nogil:
    return value / by if by > 0 else 0.0


cdef inline Scale scale_of(const Node* node, const Pod* pod, int norm) noexcept nogil:
    cdef Scale scale
    scale.norm = norm
    if norm == BY_NODE:
        scale.cpu, scale.gpu = <double> node.cpu_cap, <double> (node.num_gpu * FULL)
    elif norm == BY_POD:
        scale.cpu, scale.gpu = <double> pod.cpu, <double> (pod.num_gpu * pod.milli)
    else:
        scale.cpu, scale.gpu = <double> CPU_SPEC, <double> GPU_SPEC
    return scale


cdef inline void offer(Best* best, const Scale* scale, const Pod* pod, double cpu, double gpu, int length,
                       uint64_t gpus) noexcept nogil:
    """Make the group (free ``cpu``, free ``gpu`` milli, vectors of ``length``) the best if its score is larger."""
    cdef double need = <double> (pod.num_gpu * pod.milli)
    cdef double x = scaled(cpu, scale.cpu) * scaled(<double> pod.cpu, scale.cpu)
    x = (x + scaled(gpu, scale.gpu) * scaled(need, scale.gpu)) / length
    if scale.norm == BY_POD:
        x = tanh(x / 10.0)
    x = 1.0 - x
    if x > best.score:
        best.score = x
        best.gpus = gpus


cdef void offer_devices(Best* best, const Scale* scale, const Node* node, const Pod* pod, bint divide) noexcept nogil:
    """Share and divide: one group for each device in use that fits, one for all idle devices."""
    cdef int64_t need = pod.num_gpu * pod.milli
    cdef int64_t idle = device_idle_count(node) * FULL
    cdef double free = <double> device_free_milli(node)
    cdef double cpu = <double> node.cpu_left
    cdef int g
    if divide and free == 0:   # CPU in proportion to no GPU at all is no group
        return
    if need < FULL:
        for g in range(node.num_gpu):
            if node.gpu_left[g] >= FULL or node.gpu_left[g] < need:
                continue
            if divide:
                cpu = <double> (node.cpu_left * node.gpu_left[g]) / free
            offer(best, scale, pod, cpu, <double> node.gpu_left[g], 2, (<uint64_t> 1) << g)
    if need <= idle:
        if divide:
            cpu = <double> (node.cpu_left * idle) / free
        offer(best, scale, pod, cpu, <double> idle, 2, device_idle(node, pod.num_gpu))


cdef void offer_extended(Best* best, const Scale* scale, const Node* node, const Pod* pod) noexcept nogil:
    """Extend: every device in use is a dimension of its own, all idle devices together one more."""
    cdef int64_t need = pod.num_gpu * pod.milli
    cdef int64_t idle = device_idle_count(node) * FULL
    cdef double cpu = <double> node.cpu_left
    cdef int g, length = 1 + (idle > 0)
    for g in range(node.num_gpu):
        length += 0 < node.gpu_left[g] < FULL
    for g in range(node.num_gpu):
        if 0 < node.gpu_left[g] < FULL and node.gpu_left[g] >= need:
            offer(best, scale, pod, cpu, <double> node.gpu_left[g], length, (<uint64_t> 1) << g)
    if idle > 0 and idle >= need:
        offer(best, scale, pod, cpu, <double> idle, length, device_idle(node, pod.num_gpu))


cdef int dot_points(const Node* node, const Pod* pod, int dim, int norm, uint64_t* gpus) noexcept nogil:
    """Dot-product points (0 if no group fits) and the devices of the best group (0 for merge)."""
    cdef Scale scale = scale_of(node, pod, norm)
    cdef Best best
    best.score = -INFINITY
    best.gpus = 0
    if node.cpu_left >= pod.cpu:
        if dim == MERGE:
            offer(&best, &scale, pod, <double> node.cpu_left, <double> device_free_milli(node), 2, 0)
        elif dim == EXTEND:
            offer_extended(&best, &scale, node, pod)
        else:
            offer_devices(&best, &scale, node, pod, dim == DIVIDE)
    gpus[0] = best.gpus if pod.num_gpu > 0 else 0
    return <int> (100.0 * best.score) if best.score > -INFINITY else 0
