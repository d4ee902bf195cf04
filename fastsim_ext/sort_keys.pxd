# What a job that stands in line claims, as numbers, and the terms that orders are made of.
from libc.stdint cimport int32_t

cdef enum:
    MOST_TERMS = 4       # parts of a sort key

cdef enum:  # Term: order of fastsim.scenario.sort_keys.TERMS
    ARRIVAL, PRIORITY, REMAINING, SERVICE, ATTAINED, FINISH_RATIO, DOMINANT, PACKING, SERVICE_LEFT, LEVEL, WEIGHT, GPUS,
    LAST

cdef struct Claim:
    double submit_s, last_s              # when it came; when it last was at work, or came
    double left_s, total_s               # seconds it still takes; seconds it takes in all at its fair share
    double attained_s                    # at work so far, not times GPUs
    double gpus, cpu_milli, memory_mib   # of the whole gang
    double weight
    int32_t priority

cdef struct OrderContext:        # what keys are measured by
    double now_s
    double gpus, cpu_milli, memory_mib   # of the whole cluster
    bint plain           # speedups do not count

cdef double claim_term(int32_t term, const Claim* claim, const OrderContext* yard,
                       const double[::1] level_s) noexcept nogil
