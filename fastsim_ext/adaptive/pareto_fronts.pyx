"""Pareto fronts of points with two values, both to be minimised.

A point beats another one that is not smaller in any value and larger in one. The first front holds the points that
no point beats, the next one those that no point beats once the first is removed, and so on. Within a front:

    crowding = mean over both values of (next larger value - next smaller value) / (largest - smallest)

infinite at both ends, and 0 for a point equal to another one. Orders and ties are those of NSGA-II in pymoo 0.4,
since random numbers go to points in this order.
"""

cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

cdef enum:
    SHORT = 15           # ends that are not further apart enclose what is sorted by insertion


cdef int fronts_reserve(FrontRoom* room, int points) except -1 nogil:
    """Make room; ``fronts_free`` gives it back, also after a failure."""
    room.order__p = <int32_t*> malloc(7 * points * sizeof(int32_t))
    room.gap__p = <double*> malloc(points * sizeof(double))
    if room.order__p == NULL or room.gap__p == NULL:
        with gil:
            raise MemoryError
    room.end__f = room.order__p + points
    room.rank__p = room.end__f + points
    room.by_first__p = room.rank__p + points
    room.rising__p = room.by_first__p + points
    room.falling__p = room.rising__p + points
    room.spare__p = room.falling__p + points
    return 0


cdef void fronts_free(FrontRoom* room) noexcept nogil:
    """Give the room back."""
    free(room.order__p)
    free(room.gap__p)


cdef void fronts_merged(const double* value, const double* then, int32_t* index, int32_t* spare,
                        int count) noexcept nogil:
    """Sort indices by their values, and equal ones by a second value; those equal in both stay in order.

    Choices are sums and not branches, which would often be mispredicted.
    """
    cdef int width = 1, low, middle, high, left, right, at
    cdef int32_t one, other
    cdef bint later
    while width < count:
        low = 0
        while low < count:
            middle, high = min(low + width, count), min(low + 2 * width, count)
            left, right, at = low, middle, low
            while left < middle and right < high:
                one, other = index[left], index[right]
                later = (value[other] < value[one]) | ((value[other] == value[one]) & (then[other] < then[one]))
                spare[at] = one ^ ((one ^ other) & -<int32_t> later)
                left += not later
                right += later
                at += 1
            memcpy(spare + at, index + left, (middle - left) * sizeof(int32_t))
            memcpy(spare + at + middle - left, index + right, (high - right) * sizeof(int32_t))
            low = high
        memcpy(index, spare, count * sizeof(int32_t))
        width *= 2


cdef int fronts_ranked(const double* first__p, const double* second__p, int points, FrontRoom* room) noexcept nogil:
    """Write the number of each point's front to ``rank``; returns the number of fronts.

    In order of the first value, some point of a front beats the next point if the smallest second value in the front
    so far is not larger; these values rise from front to front. Equal points share a front.
    """
    cdef int32_t* order = room.by_first__p
    cdef int at, low, high, middle, fronts = 0
    cdef int32_t p, before = -1
    for p in range(points):
        order[p] = p
    fronts_merged(first__p, second__p, order, room.spare__p, points)
    for at in range(points):
        p = order[at]
        if before >= 0 and first__p[p] == first__p[before] and second__p[p] == second__p[before]:
            room.rank__p[p] = room.rank__p[before]
            continue
        low, high = 0, fronts
        while low < high:
            middle = (low + high) // 2
            if room.gap__p[middle] <= second__p[p]:
                low = middle + 1
            else:
                high = middle
        room.gap__p[low] = second__p[p]
        room.rank__p[p], before = low, p
        fronts = max(fronts, low + 1)
    return fronts


cdef int fronts_sorted(const double* first__p, const double* second__p, int points, int enough,
                       FrontRoom* room) noexcept nogil:
    """Fill ``order`` and ``end`` with fronts until they have ``enough`` points; how many fronts there are.

    Points of a front stand in the order in which the last one that beats them stands in the front before, and in
    ``rising`` in that of their values.
    """
    cdef int fronts = fronts_ranked(first__p, second__p, points, room)
    cdef int front, start, stop, at, last
    cdef int32_t p
    memset(room.end__f, 0, points * sizeof(int32_t))
    for p in range(points):
        room.end__f[room.rank__p[p]] += 1
    stop = 0
    for front in range(fronts):              # first where each front starts
        stop += room.end__f[front]
        room.end__f[front] = stop - room.end__f[front]
        room.spare__p[front] = room.end__f[front]
    for p in range(points):
        room.order__p[room.end__f[room.rank__p[p]]] = p
        room.end__f[room.rank__p[p]] += 1
        front = room.rank__p[room.by_first__p[p]]
        room.rising__p[room.spare__p[front]] = room.by_first__p[p]
        room.spare__p[front] += 1
    for front in range(fronts):
        start = room.end__f[front - 1] if front else 0
        stop = room.end__f[front]
        if front:
            for at in range(start, stop):
                p, last = room.order__p[at], start - 1
                while (first__p[room.order__p[last]] > first__p[p]
                        or second__p[room.order__p[last]] > second__p[p]):
                    last -= 1
                room.gap__p[p] = last
            fronts_merged(room.gap__p, room.gap__p, room.order__p + start, room.spare__p, stop - start)
        if stop >= enough:
            return front + 1
    return fronts


@cython.cdivision(True)
cdef void fronts_gaps(const double* value, const int32_t* index, int count, double* gap) noexcept nogil:
    """Add to each point's gap that between its neighbours in one value, relative to the spread of all."""
    cdef double spread = value[index[count - 1]] - value[index[0]]
    cdef int at
    if spread == 0:
        return
    for at in range(count):
        if at == 0 or at == count - 1:
            gap[index[at]] += INFINITY
        else:
            gap[index[at]] += ((value[index[at]] - value[index[at - 1]]) / spread
                               + (value[index[at + 1]] - value[index[at]]) / spread)


cdef void fronts_crowding(const double* first__p, const double* second__p, int start, int count,
                          double* crowding__p, FrontRoom* room) noexcept nogil:
    """The crowding of the ``count`` members of the front that starts there; the first of equal ones stands for them.

    Where the first value rises within a front, the second one falls.
    """
    cdef const int32_t* member = room.rising__p + start
    cdef int32_t* rising = room.spare__p
    cdef int32_t p
    cdef int at, unique = 0
    if count <= 2:
        for at in range(count):
            crowding__p[member[at]] = INFINITY
        return
    for at in range(count):
        p = member[at]
        crowding__p[p] = room.gap__p[p] = 0.0
        if not unique or first__p[p] != first__p[rising[unique - 1]] or second__p[p] != second__p[rising[unique - 1]]:
            rising[unique] = p
            unique += 1
    for at in range(unique):
        room.falling__p[at] = rising[unique - 1 - at]
    fronts_gaps(first__p, rising, unique, room.gap__p)
    fronts_gaps(second__p, room.falling__p, unique, room.gap__p)
    for at in range(unique):
        crowding__p[rising[at]] = room.gap__p[rising[at]] / 2


cdef void fronts_ascending(const double* value, int32_t* index, int low, int high) noexcept nogil:
    """Sort indices by their values from ``low`` to ``high``; equal ones end in the order of numpy's quicksort."""
    cdef int middle, left, right
    cdef int32_t moved
    cdef double pivot
    while high - low > SHORT:
        middle = low + (high - low) // 2
        fronts_swap_if(value, index, low, middle)
        fronts_swap_if(value, index, middle, high)
        fronts_swap_if(value, index, low, middle)
        pivot, left, right = value[index[middle]], low, high - 1
        index[middle], index[right] = index[right], index[middle]
        while True:
            left += 1
            while value[index[left]] < pivot:
                left += 1
            right -= 1
            while pivot < value[index[right]]:
                right -= 1
            if left >= right:
                break
            index[left], index[right] = index[right], index[left]
        index[left], index[high - 1] = index[high - 1], index[left]
        fronts_ascending(value, index, low, left - 1)
        low = left + 1
    for left in range(low + 1, high + 1):
        moved, right = index[left], left
        while right > low and value[moved] < value[index[right - 1]]:
            index[right] = index[right - 1]
            right -= 1
        index[right] = moved


cdef inline void fronts_swap_if(const double* value, int32_t* index, int left, int right) noexcept nogil:
    if value[index[right]] < value[index[left]]:
        index[left], index[right] = index[right], index[left]


def sorted_fronts(const double[::1] first__p, const double[::1] second__p, int enough):
    """The fronts as lists of points, until they have ``enough``; and the crowding of these points, 0 of others."""
    import numpy as np
    cdef int points = <int> first__p.shape[0], at, count, start = 0
    cdef double[::1] crowding__p = np.zeros(points)
    cdef FrontRoom room
    fronts = []
    if not points:
        return fronts, crowding__p.base
    try:
        fronts_reserve(&room, points)
        count = fronts_sorted(&first__p[0], &second__p[0], points, enough, &room)
        for at in range(count):
            fronts.append([room.order__p[i] for i in range(start, room.end__f[at])])
            fronts_crowding(&first__p[0], &second__p[0], start, room.end__f[at] - start, &crowding__p[0], &room)
            start = room.end__f[at]
    finally:
        fronts_free(&room)
    return fronts, crowding__p.base


def ascending(const double[::1] value):
    """For tests: positions in ascending order of their values, ties as in numpy's quicksort."""
    import numpy as np
    cdef int32_t[::1] index = np.arange(value.shape[0], dtype=np.int32)
    if value.shape[0]:
        fronts_ascending(&value[0], &index[0], 0, <int> value.shape[0] - 1)
    return index.base
