# Crossover, mutation and repair of allocations; a state is a matrix of GPUs by job and node.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t
from fastsim_ext.random cimport NumpyStream

cdef enum:
    MOST_GPUS = 32           # of a node: cells are bytes

cdef struct Room:            # for one node or job each
    int16_t* load__n         # GPUs
    int16_t* few__n          # jobs that are there
    int32_t* away__n         # chance to grow, of a job that is not there: high bits of its steps
    int32_t* more__n         # what differs in it for one that is
    int64_t* chance__k       # steps, of any job and of one of k that are there
    unsigned char* rare__n
    int8_t* one__n           # whether a job on several nodes is there
    int8_t* two__n           # whether two of them were
    int8_t* left__n          # GPUs
    int8_t* keep__n          # GPUs of a job
    int32_t* order__n
    int64_t* draw__n

cdef int genetic_reserve(Room* room, int jobs, int nodes) except -1 nogil
cdef void genetic_free(Room* room) noexcept nogil
cdef void genetic_crossover(NumpyStream* stream, int8_t* first__mjn, int8_t* second__mjn,
                            const unsigned char* crossed__m, int matings, int jobs, int nodes) noexcept nogil
cdef void genetic_mutation(NumpyStream* stream, int8_t* state__pjn, const int8_t* base__jn, int states, int jobs,
                           int nodes, int node_gpus, unsigned char* flag__pjn, Room* room) noexcept nogil
cdef void genetic_repair(NumpyStream* stream, int8_t* state__pjn, const int32_t* most__j, const int32_t* least__j,
                         int states, int jobs, int nodes, int node_gpus, bint apart, Room* room) noexcept nogil
