"""The order in which a round's work is credited: the last to finish first, single jobs before pairs, then ids.

Sums of seconds depend on it in their last bits, and there is one sum for each GPU model; so tasks on different models
need no order between them.
"""

from libc.stdint cimport int32_t
from libc.string cimport memcpy

cdef enum:
    SHORT = 8            # tasks that are sorted by insertion


cdef inline bint earlier(const Task* tasks, const Completion* a, const Completion* b) noexcept nogil:
    cdef const Task* x
    cdef const Task* y
    if a.finish_s != b.finish_s:
        return a.finish_s > b.finish_s
    x, y = &tasks[a.task], &tasks[b.task]
    if (x.mate_id < 0) != (y.mate_id < 0):
        return x.mate_id < 0
    if x.id != y.id:
        return x.id < y.id
    return x.mate_id < y.mate_id


cdef void completions_sorted(const Task* tasks, Completion* completions, Completion* spare, int32_t n,
                             bint mixed) noexcept nogil:
    """Fill ``completions``; unless tasks of all models are ``mixed``, those of one model stand together."""
    cdef int32_t low = 0
    cdef int32_t high, i
    for i in range(n):
        completions[i].finish_s, completions[i].task = tasks[i].finish_s, i
    while low < n:
        high = n if mixed else low + 1
        while high < n and tasks[high].model == tasks[low].model:
            high += 1
        completions_of_model(tasks, &completions[low], &spare[low], high - low)
        low = high


cdef void completions_of_model(const Task* tasks, Completion* completions, Completion* spare, int32_t n) noexcept nogil:
    """Sort them all: short runs by insertion, then merges of ever longer runs."""
    cdef Completion* source = completions
    cdef Completion* target = spare
    cdef int32_t width = SHORT
    cdef int32_t low = 0
    while low < n:
        completions_inserted(tasks, source, low, min(low + width, n))
        low += width
    while width < n:
        low = 0
        while low < n:
            completions_merged(tasks, source, target, low, min(low + width, n), min(low + 2 * width, n))
            low += 2 * width
        source, target = target, source
        width *= 2
    if source != completions:
        memcpy(completions, source, n * sizeof(Completion))


cdef inline void completions_inserted(const Task* tasks, Completion* items, int32_t low, int32_t high) noexcept nogil:
    cdef int32_t i, j
    cdef Completion moving
    for i in range(low + 1, high):
        j, moving = i, items[i]
        while j > low and earlier(tasks, &moving, &items[j - 1]):
            items[j] = items[j - 1]
            j -= 1
        items[j] = moving


cdef inline void completions_merged(const Task* tasks, const Completion* source, Completion* target, int32_t low,
                                    int32_t middle,
                                    int32_t high) noexcept nogil:
    cdef int32_t i = low
    cdef int32_t j = middle
    cdef int32_t k
    for k in range(low, high):
        if j >= high or (i < middle and not earlier(tasks, &source[j], &source[i])):
            target[k] = source[i]
            i += 1
        else:
            target[k] = source[j]
            j += 1
