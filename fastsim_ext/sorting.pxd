# A stable sort of rows by keys of several terms.
from libc.stdint cimport int32_t

cdef enum:
    MOST_TERMS = 4       # parts of a sort key

cdef enum:  # Term: order of fastsim.scenario.sort_keys.TERMS
    ARRIVAL, PRIORITY, REMAINING, SERVICE, ATTAINED, FINISH_RATIO, DOMINANT, PACKING, SERVICE_LEFT, LEVEL, WEIGHT, GPUS,
    LAST, COLUMN         # COLUMN: of the workload, whose values the caller has

cdef bint merge_after(const double* a, const double* b, int32_t terms) noexcept nogil
cdef bint merge_sorted(int32_t* rows, int32_t* spare, int32_t n, const double* keys, int32_t terms) noexcept nogil

cdef struct KeyInputs:
    double submit_s, last_s              # arrival; when it last ran, its arrival before that
    double left_s, total_s               # seconds it still takes; seconds it takes in all at its fair share
    double attained_s                    # running time so far, not times GPUs
    double gpus, cpu_milli, memory_mib   # of the whole gang
    double weight
    int32_t priority

cdef struct OrderContext:        # what keys are measured by
    double now_s
    double gpus, cpu_milli, memory_mib   # of the whole cluster
    bint plain           # speedups do not count
    const double* value  # of columns of the workload, by id of the job, MOST_TERMS each

cdef double key_term(int32_t term, const KeyInputs* inputs, const OrderContext* context,
                     const double[::1] level_s) noexcept nogil
