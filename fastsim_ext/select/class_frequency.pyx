"""How often something is asked for, and what it costs to have no column for it.

A column costs its upkeep at every change of a node and saves its toll at every question. Both are
counted in nanoseconds; they decide how fast an answer is found and never which one.
"""

from libc.math cimport exp2
from libc.stdint cimport int64_t
from libc.stdlib cimport realloc

cdef enum:
    QUESTIONS = 3        # so many questions are the least that make a habit


cdef void habit_charge(ClassFrequency* habit, int64_t now, double window, double cost) noexcept nogil:
    """One more question at node change ``now``, which cost so much without a column; 0 if there was one."""
    if cost > 0.0:
        habit.toll = <float> (cost if habit.toll == 0.0 else 0.75 * habit.toll + 0.25 * cost)
    habit.heat = <float> (habit.heat * exp2(<double> (habit.seen - now) / window) + habit.toll)
    habit.seen = now


cdef double habit_rate(const ClassFrequency* habit, int64_t now, double window) noexcept nogil:
    """Nanoseconds a column saves (or would save) for each change of a node; ln 2 is 0.69."""
    cdef double heat = habit.heat * exp2(<double> (habit.seen - now) / window)
    return 0.69 * heat / (window * (1.0 - exp2(-<double> (now + 1) / window)))


cdef bint habit_settled(const ClassFrequency* habit) noexcept nogil:
    """Whether there were questions enough to believe in it."""
    return habit.heat > (QUESTIONS - 0.5) * habit.toll


cdef int habit_room(ClassFrequency** habits, int had, int wanted) except -1 nogil:
    """Room for more habits than there are and than are wanted, of which nothing is known; for how many."""
    cdef int room = max(2 * had, wanted + 64)
    cdef ClassFrequency* grown = <ClassFrequency*> realloc(habits[0], room * sizeof(ClassFrequency))
    cdef int k
    if grown == NULL:
        with gil:
            raise MemoryError()
    for k in range(had, room):
        grown[k].column = grown[k].lane = -1
        grown[k].heat = grown[k].toll = 0.0
        grown[k].seen = 0
    habits[0] = grown
    return room


cdef class FrequencyTable:
    """One habit, for eyes in Python."""

    def charge(self, int64_t now, double window, double cost):
        """One more question, see ``habit_charge``."""
        habit_charge(&self.habit, now, window, cost)

    def rate(self, int64_t now, double window):
        """Nanoseconds for each change of a node, see ``habit_rate``."""
        return habit_rate(&self.habit, now, window)

    @property
    def settled(self):
        """Whether there were questions enough."""
        return bool(habit_settled(&self.habit))
