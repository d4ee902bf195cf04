# The order in which a round's work is credited.
from libc.stdint cimport int32_t
from fastsim_ext.rounds.leases cimport Task

cdef struct Completion:
    double finish_s
    int32_t task

cdef void completions_sorted(const Task* tasks, Completion* completions, Completion* spare, int32_t n,
                             bint mixed) noexcept nogil
