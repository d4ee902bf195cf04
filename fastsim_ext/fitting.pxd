# How far predicted step times are from measured ones.
from libc.stdint cimport int64_t

cdef enum:
    PARAMETERS = 7       # fields of a Perf

cdef struct Measured:    # one measured configuration
    double atomic        # samples a GPU takes at once
    double beyond        # GPUs beyond two, a tiny number if there are none
    int64_t link         # which network: 0 none, 1 between nodes, 2 inside a node
    double log_turn_s    # logarithms of the seconds of a turn and of a whole step
    double log_step_s

cdef double fitting_loss(const Measured* measured, int64_t count, const double* perf, double* slope) noexcept nogil
