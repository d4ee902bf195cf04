# How often something is asked for, and what it costs to have no column for it.
from libc.stdint cimport int32_t, int64_t

cdef struct ClassFrequency:
    int32_t column       # its column, or -1
    int32_t lane         # of a class, in the memo: -1 = not asked for, -3 = none
    float toll           # what a question costs without a column, in nanoseconds, about
    float heat           # such costs of all questions, each worth half after every window of node changes
    int64_t seen         # node changes up to the last question

cdef void habit_charge(ClassFrequency* habit, int64_t now, double window, double cost) noexcept nogil
cdef double habit_rate(const ClassFrequency* habit, int64_t now, double window) noexcept nogil
cdef bint habit_settled(const ClassFrequency* habit) noexcept nogil
cdef int habit_room(ClassFrequency** habits, int had, int wanted) except -1 nogil

cdef class FrequencyTable:
    cdef ClassFrequency habit
