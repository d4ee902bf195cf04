# How allocations are crossed, changed and made possible again; a state is a matrix of GPUs by job and node.
from libc.stdint cimport int32_t, uint64_t
from fastsim_ext.flow cimport Flow

cdef struct Room:            # for one node or job each
    int32_t* load__n         # GPUs
    int32_t* many__n         # eligible jobs, jobs on several nodes
    int32_t* few__n          # eligible jobs that are there already
    int32_t* order__n
    double* draw__n
    uint64_t* chance__n      # to grow, of a job that is not there and of one that is, in steps of random numbers

cdef int breed_reserve(Room* room, int nodes) except -1 nogil
cdef void breed_free(Room* room) noexcept nogil
cdef void breed_crossover(Flow* flow, int32_t* first__mjn, int32_t* second__mjn,
                          const unsigned char* crossed__m, int matings, int jobs, int nodes) noexcept nogil
cdef void breed_mutation(Flow* flow, int32_t* state__pjn, const int32_t* base__jn, int states, int jobs,
                         int nodes, int node_gpus, unsigned char* flag__pjn, Room* room) noexcept nogil
cdef void breed_repair(Flow* flow, int32_t* state__pjn, const int32_t* most__j, const int32_t* least__j,
                       int states, int jobs, int nodes, int node_gpus, Room* room) noexcept nogil
