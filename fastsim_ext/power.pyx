"""Power draw of a node and the score that comes from it; all in integer milliwatts."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t
from fastsim_ext.types cimport FULL, Node, Pod
from fastsim_ext.device cimport device_idle


cdef int64_t power_cpu(const Node* node, int64_t cpu_left) noexcept nogil:
    """Milliwatts of the sockets: one with any busy core is fully on, the others idle.

    Two milli-CPU thousands share one physical core.
    """
    cdef int64_t cores = (node.cpu_cap + 1999) // 2000
    cdef int64_t busy = cores - cpu_left // 2000
    cdef int64_t sockets = (cores + node.cores - 1) // node.cores
    cdef int64_t active = (busy + node.cores - 1) // node.cores
    return node.cpu_peak_mw * active + node.cpu_idle_mw * (sockets - active)


cdef int64_t power_gpu(const Node* node) noexcept nogil:
    """Milliwatts of the devices: any use, however small, costs full power."""
    cdef int g
    cdef int64_t idle = 0
    for g in range(node.num_gpu):
        idle += node.gpu_left[g] == FULL
    return node.gpu_idle_mw * idle + node.gpu_peak_mw * (node.num_gpu - idle)


cdef int64_t power_mig(const Node* node, int64_t gpus, int64_t used) noexcept nogil:
    """Milliwatts of partitioned GPUs, ``used`` milli of which are in use: in proportion, from idle to peak."""
    return (node.gpu_idle_mw * (gpus * FULL - used) + node.gpu_peak_mw * used) // FULL


@cython.cdivision(True)
cdef void power_savings(const Node* node, const int32_t* cpu__c, const int32_t* milli__c, const int32_t* num__c,
                        int first, int last, const int32_t* skip__c, int32_t* out__c) noexcept nogil:
    """``power_saved`` for many pods side by side, where ``skip`` is 0; a ``num`` of 0 means one device."""
    cdef int64_t before = power_cpu(node, node.cpu_left)
    cdef int64_t step = node.gpu_peak_mw - node.gpu_idle_mw
    cdef int64_t saved, woken
    cdef int32_t fullest = 0         # of the devices in use
    cdef int g, c
    for g in range(node.num_gpu):
        if node.gpu_left[g] < FULL:
            fullest = max(fullest, node.gpu_left[g])
    for c in range(first, last):
        if skip__c[c] != 0:
            continue
        saved = before - power_cpu(node, node.cpu_left - cpu__c[c])
        if milli__c[c] > 0:
            woken = (saved - step * max(num__c[c], 1)) / 1000
            if milli__c[c] == FULL or fullest < milli__c[c]:
                out__c[c] = <int32_t> woken
                continue
            saved = saved / 1000
            out__c[c] = <int32_t> (max(saved, woken) if node.idle > 0 else saved)
        else:
            out__c[c] = <int32_t> (saved / 1000)


@cython.cdivision(True)
cdef int64_t power_saved(const Node* node, const Pod* pod, uint64_t* gpus) noexcept nogil:
    """Whole watts saved (never positive) by placing ``pod``, truncated, and the devices chosen.

    Power depends only on whether a device was fully free, so of a shared pod's devices the first
    one in use that fits is best, else the first free one.
    """
    cdef int64_t before = power_cpu(node, node.cpu_left)
    cdef int64_t after = power_cpu(node, node.cpu_left - pod.cpu)
    cdef int64_t step = node.gpu_peak_mw - node.gpu_idle_mw
    cdef int64_t raw, best = 0
    cdef bint found = False
    cdef int g
    gpus[0] = 0
    if pod.num_gpu != 1 or pod.milli == FULL:
        gpus[0] = device_idle(node, pod.num_gpu)
        return (before - after - step * pod.num_gpu) / 1000
    for g in range(node.num_gpu):
        if node.gpu_left[g] < pod.milli:
            continue
        raw = (before - after - (step if node.gpu_left[g] == FULL else 0)) / 1000
        if not found or raw > best:
            found = True
            best = raw
            gpus[0] = (<uint64_t> 1) << g
    return best
