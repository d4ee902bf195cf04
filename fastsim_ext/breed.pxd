# How allocations are crossed, changed and made possible again; a state is a matrix of GPUs by job and node.
from libc.stdint cimport int32_t
from fastsim_ext.mersenne cimport Mersenne

cdef struct Room:            # for one node or job each
    int32_t* load__n         # GPUs
    int32_t* many__n         # eligible jobs, jobs on several nodes
    int32_t* few__n          # eligible jobs that are there already
    int32_t* order__n
    double* draw__n

cdef void breed_crossover(Mersenne* stream, int32_t* first__mjn, int32_t* second__mjn, int matings, int jobs,
                          int nodes) noexcept nogil
cdef void breed_mutation(Mersenne* stream, int32_t* state__pjn, const int32_t* base__jn, int states, int jobs,
                         int nodes, int node_gpus, unsigned char* flag__pjn, Room* room) noexcept nogil
cdef void breed_repair(Mersenne* stream, int32_t* state__pjn, const int32_t* most__j, const int32_t* least__j,
                       int states, int jobs, int nodes, int node_gpus, Room* room) noexcept nogil
