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

cdef struct Predicted:   # of one configuration
    double turn_s
    double network_s
    double turn_power    # both to the power of gamma, and their sum
    double network_power
    double total
    double log_turn_s
    double log_total
    double by_turn       # slope of the loss in each of both times
    double by_network

cdef struct Fit:
    int64_t count
    Measured* measured
    Predicted* predicted
    double* term         # room for sums

cdef double fit_loss(const Fit* fit, const double* perf, double* slope) noexcept nogil
