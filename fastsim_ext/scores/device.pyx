"""Which devices of a node are free, fit a share, or fit it best; sets of devices are 64-bit masks."""

from libc.stdint cimport int64_t, uint64_t
from fastsim_ext.types cimport FULL, Node


cdef uint64_t device_idle(const Node* node, int count) noexcept nogil:
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


cdef int device_idle_count(const Node* node) noexcept nogil:
    """Devices that are fully free."""
    return device_fit_count(node, FULL)


cdef int device_most(const Node* node) noexcept nogil:
    """Milli-GPU left on the device with most."""
    cdef int g, most = 0
    for g in range(node.num_gpu):
        most = max(most, node.gpu_left[g])
    return most


cdef int64_t device_free_milli(const Node* node) noexcept nogil:
    """Milli-GPU left on the node."""
    cdef int64_t free = 0
    cdef int g
    for g in range(node.num_gpu):
        free += node.gpu_left[g]
    return free


cdef uint64_t device_tightest(const Node* node, int milli) noexcept nogil:
    """The device with least left that still has ``milli``; lowest index on ties."""
    cdef int g, best = -1
    for g in range(node.num_gpu):
        if node.gpu_left[g] >= milli and (best < 0 or node.gpu_left[g] < node.gpu_left[best]):
            best = g
    return (<uint64_t> 1) << best if best >= 0 else 0


cdef uint64_t device_loosest(const Node* node, int milli) noexcept nogil:
    """The device with most left, if that is at least ``milli``; lowest index on ties."""
    cdef int g, best = -1
    for g in range(node.num_gpu):
        if node.gpu_left[g] >= milli and (best < 0 or node.gpu_left[g] > node.gpu_left[best]):
            best = g
    return (<uint64_t> 1) << best if best >= 0 else 0


cdef int device_fit_count(const Node* node, int milli) noexcept nogil:
    """Devices with at least ``milli`` left."""
    cdef int g, fit = 0
    for g in range(node.num_gpu):
        fit += node.gpu_left[g] >= milli
    return fit


cdef uint64_t device_nth_fit(const Node* node, int milli, int nth) noexcept nogil:
    """The ``nth`` (from 0) device, in index order, with at least ``milli`` left."""
    cdef int g
    for g in range(node.num_gpu):
        if node.gpu_left[g] >= milli:
            if nth == 0:
                return (<uint64_t> 1) << g
            nth -= 1
    return 0


cdef bint device_all_free(uint64_t gpus, uint64_t free, int count) noexcept nogil:
    """Whether a set has ``count`` devices, all of them free."""
    cdef int n = 0
    cdef uint64_t left = gpus
    while left:
        left &= left - 1
        n += 1
    return n == count and gpus & ~free == 0
