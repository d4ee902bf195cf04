"""Power draw of a node and the score that comes from it; all in integer milliwatts."""

cimport cython
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint64_t
from fastsim_ext.scores.device cimport device_idle
from fastsim_ext.types cimport FULL, MAX_GPUS, Node, Pod

cdef enum:
    BATCH = 32           # pods computed together
    MOST_SOCKETS = 8     # of a node for which that pays


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


cdef void power_savings(const Node* node, const int32_t* cpu__c, const int32_t* milli__c, const int32_t* num__c,
                        int first, int last, const int32_t* skip__c, int32_t* out__c) noexcept nogil:
    """``power_saved`` for many pods side by side, where ``skip`` is 0; a ``num`` of 0 means one device."""
    cdef int64_t cores = (node.cpu_cap + 1999) // 2000
    cdef int64_t most = ((cores + node.cores - 1) // node.cores * (node.cpu_peak_mw - node.cpu_idle_mw)
                         + MAX_GPUS * (node.gpu_peak_mw - node.gpu_idle_mw))
    cdef int32_t fullest = 0         # of the devices in use
    cdef int c, g
    for g in range(node.num_gpu):
        if node.gpu_left[g] < FULL:
            fullest = max(fullest, node.gpu_left[g])
    if not 0 <= most <= INT32_MAX or node.cpu_peak_mw < node.cpu_idle_mw or cores > MOST_SOCKETS * node.cores:
        for c in range(first, last):
            if skip__c[c] == 0:
                out__c[c] = saved_one(node, cpu__c[c], milli__c[c], num__c[c], fullest)
        return
    while first < last:
        saved_batch(node, cores, cpu__c + first, milli__c + first, num__c + first, min(last - first, BATCH),
                    fullest, out__c + first)
        first += BATCH


@cython.cdivision(True)
cdef inline void saved_batch(const Node* node, int64_t cores, const int32_t* cpu__c, const int32_t* milli__c,
                             const int32_t* num__c, int count, int32_t fullest, int32_t* out__c) noexcept nogil:
    """The same where milliwatts fit 32 bits, without branches, so that compilers can process several pods at a time."""
    cdef int32_t[BATCH] saved
    cdef int32_t step = <int32_t> (node.gpu_peak_mw - node.gpu_idle_mw)
    cdef int32_t socket = <int32_t> (node.cpu_peak_mw - node.cpu_idle_mw)
    cdef int32_t full = FULL, watt = 1000, one = 1, gpus = MAX_GPUS     # as wide as the other numbers
    cdef int32_t milli, woken, shared, either, least, num, c
    cdef bint idle = node.idle > 0
    cdef int64_t busy = (cores - node.cpu_left // 2000 + node.cores - 1) // node.cores * node.cores
    for c in range(count):
        saved[c] = 0
    while busy < cores:              # one more socket wakes where less is left than the cores of the others
        least = <int32_t> max(min(node.cpu_left - 2000 * (cores - busy), INT32_MAX), -1)
        for c in range(count):
            saved[c] -= socket if cpu__c[c] > least else 0
        busy += node.cores
    for c in range(count):
        milli = milli__c[c]
        num = num__c[c]
        num = num if num > one else one
        num = num if num < gpus else gpus
        shared = saved[c] / watt
        woken = (saved[c] - step * num) / watt
        either = woken if idle and woken > shared else shared
        either = woken if fullest < milli else either
        either = woken if milli == full else either
        out__c[c] = either if milli > 0 else shared


cdef int32_t saved_one(const Node* node, int64_t cpu, int32_t milli, int32_t num, int32_t fullest) noexcept nogil:
    """The same for one pod."""
    cdef int64_t step = node.gpu_peak_mw - node.gpu_idle_mw
    cdef int64_t saved = power_cpu(node, node.cpu_left) - power_cpu(node, node.cpu_left - cpu)
    cdef int64_t woken = truncated_watts(saved - step * max(num, 1))
    saved = truncated_watts(saved)
    if milli == 0:
        return <int32_t> saved
    if milli == FULL or fullest < milli:
        return <int32_t> woken
    return <int32_t> (max(saved, woken) if node.idle > 0 else saved)


cdef int64_t power_points(const Node* node, const Pod* pod) noexcept nogil:
    """The points of ``power_saved`` without the devices, for a node that can host the pod."""
    cdef int64_t cores = (node.cpu_cap + 1999) // 2000
    cdef int64_t left = node.cpu_left - pod.cpu
    cdef int64_t woken = 0
    cdef int32_t awake = (<int32_t> (cores - node.cpu_left // 2000) + node.cores - 1) // node.cores * node.cores
    cdef int32_t fullest = 0
    cdef int g
    # One more socket wakes where less is left than the cores of the others: seldom, so nothing is divided for it.
    while left < 2000 * (cores - awake):
        woken += node.cpu_peak_mw - node.cpu_idle_mw
        awake += node.cores
    if pod.num_gpu > 0 and (pod.num_gpu > 1 or pod.milli == FULL):
        return truncated_watts(-woken - (node.gpu_peak_mw - node.gpu_idle_mw) * pod.num_gpu)
    if pod.num_gpu == 1:
        for g in range(node.num_gpu):
            fullest = node.gpu_left[g] if fullest < node.gpu_left[g] < FULL else fullest
        if fullest < pod.milli or (node.idle > 0 and node.gpu_peak_mw < node.gpu_idle_mw):
            woken += node.gpu_peak_mw - node.gpu_idle_mw
    return truncated_watts(-woken)


@cython.cdivision(True)
cdef inline int64_t truncated_watts(int64_t milliwatts) noexcept nogil:
    """Whole watts, towards 0."""
    return milliwatts / 1000


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
    cdef bint any_fits = False
    cdef int g
    gpus[0] = 0
    if pod.num_gpu != 1 or pod.milli == FULL:
        gpus[0] = device_idle(node, pod.num_gpu)
        return (before - after - step * pod.num_gpu) / 1000
    for g in range(node.num_gpu):
        if node.gpu_left[g] < pod.milli:
            continue
        raw = (before - after - (step if node.gpu_left[g] == FULL else 0)) / 1000
        if not any_fits or raw > best:
            any_fits = True
            best = raw
            gpus[0] = (<uint64_t> 1) << g
    return best
