"""Request frequency of each pod class, and the cost of answering it without a score column.

A column costs upkeep at every change of a node and saves ``miss_cost`` at every request. Both are in
nanoseconds; they decide how fast a node is found and never which one.
"""

from libc.math cimport exp2
from libc.stdint cimport int64_t
from libc.stdlib cimport realloc

cdef enum:
    LEAST_REQUESTS = 3   # fewer give no reliable rate


cdef void frequency_charge(ClassFrequency* frequency, int64_t now, double window, double cost) noexcept nogil:
    """Count a request at node change ``now``; ``cost`` is its nanoseconds without a column, 0 with one."""
    if cost > 0.0:
        frequency.miss_cost = <float> (cost if frequency.miss_cost == 0.0 else 0.75 * frequency.miss_cost + 0.25 * cost)
    frequency.recent_cost = <float> (
        frequency.recent_cost * exp2(<double> (frequency.last_request - now) / window) + frequency.miss_cost)
    frequency.last_request = now


cdef double frequency_rate(const ClassFrequency* frequency, int64_t now, double window) noexcept nogil:
    """Nanoseconds that a column saves, or would save, for each change of a node; 0.69 is ln 2."""
    cdef double recent_cost = frequency.recent_cost * exp2(<double> (frequency.last_request - now) / window)
    return 0.69 * recent_cost / (window * (1.0 - exp2(-<double> (now + 1) / window)))


cdef bint frequency_reliable(const ClassFrequency* frequency) noexcept nogil:
    """Whether there were enough recent requests for a reliable rate."""
    return frequency.recent_cost > (LEAST_REQUESTS - 0.5) * frequency.miss_cost


cdef int frequency_room(ClassFrequency** frequencies, int had, int wanted) except -1 nogil:
    """Grow the table to more than ``wanted`` records, the new ones empty; returns its size."""
    cdef int room = max(2 * had, wanted + 64)
    cdef ClassFrequency* grown = <ClassFrequency*> realloc(frequencies[0], room * sizeof(ClassFrequency))
    cdef int k
    if grown == NULL:
        with gil:
            raise MemoryError()
    for k in range(had, room):
        grown[k].column = grown[k].lane = -1
        grown[k].recent_cost = grown[k].miss_cost = 0.0
        grown[k].last_request = 0
    frequencies[0] = grown
    return room


cdef class FrequencyTable:
    """One record, for tests in Python."""

    def charge(self, int64_t now, double window, double cost):
        """Count a request, see ``frequency_charge``."""
        frequency_charge(&self.frequency, now, window, cost)

    def rate(self, int64_t now, double window):
        """Nanoseconds for each change of a node, see ``frequency_rate``."""
        return frequency_rate(&self.frequency, now, window)

    @property
    def reliable(self):
        """Whether there were enough recent requests, see ``frequency_reliable``."""
        return bool(frequency_reliable(&self.frequency))
