"""One pool of interchangeable devices under strict FIFO: the cluster in which position does not matter.

Jobs start in order of arrival, so the only state is a heap of their ends. Devices return to the pool only when a job
needs them, which saves work; until then the count of free devices is a lower bound.
"""

from libc.math cimport INFINITY, NAN
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

cdef struct Held:        # devices that come back at an end
    double end           # seconds
    int32_t devices


def fifo_starts(const double[::1] submit, const double[::1] duration, const int32_t[::1] devices, int32_t capacity,
                double[::1] start):
    """Start of every job in seconds, NaN if it never starts; returns how many start.

    ``submit`` rises; a ``duration`` of NaN never ends; no job requests more ``devices`` than ``capacity``.
    """
    cdef int64_t n = submit.shape[0]
    if not n == duration.shape[0] == devices.shape[0] == start.shape[0]:
        raise ValueError("the columns have different lengths")
    with nogil:
        n = play(submit, duration, devices, capacity, start)
    return n


cdef int64_t play(const double[::1] submit, const double[::1] duration, const int32_t[::1] devices, int32_t capacity,
                  double[::1] start) except -1 nogil:
    """Start the jobs one after another; returns how many start."""
    # Jobs that hold a device are at most as many as there are devices; the others hold nothing.
    cdef Held* heap = <Held*> malloc((<size_t> capacity + 1) * sizeof(Held))
    cdef int64_t i
    cdef int64_t n = submit.shape[0]
    cdef int32_t size = 0
    cdef int32_t left = capacity
    cdef double t = -INFINITY
    if heap == NULL:
        with gil:
            raise MemoryError()
    for i in range(n):
        t = max(t, submit[i])
        while left < devices[i] and heap[0].end < INFINITY:
            t = max(t, heap[0].end)
            left += heap[0].devices
            size -= 1
            rise(heap, hollow(heap, size), heap[size].end, heap[size].devices)
        if left < devices[i]:
            break
        start[i] = t
        if devices[i] > 0:
            left -= devices[i]
            rise(heap, size, t + duration[i] if duration[i] == duration[i] else INFINITY, devices[i])
            size += 1
    else:
        i = n
    n = i
    for i in range(n, submit.shape[0]):
        start[i] = NAN
    free(heap)
    return n


cdef inline void rise(Held* heap, int32_t at, double end, int32_t devices) noexcept nogil:
    """Let an entry rise from the empty place ``at`` to where it belongs."""
    cdef int32_t parent
    while at > 0:
        parent = (at - 1) // 2
        if heap[parent].end <= end:
            break
        heap[at] = heap[parent]
        at = parent
    heap[at].end, heap[at].devices = end, devices


cdef inline int32_t hollow(Held* heap, int32_t size) noexcept nogil:
    """Fill the first place of a heap of ``size`` from below; answers the place that is empty then.

    Going down to a leaf costs one comparison a level, and the entry that is put there seldom rises far.
    """
    cdef int32_t at = 0
    cdef int32_t child = 1
    while child + 1 < size:
        child += heap[child + 1].end < heap[child].end
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    if child < size:
        heap[at] = heap[child]
        at = child
    return at
