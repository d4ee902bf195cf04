# Fitness of allocations of a cluster to jobs; a state is a matrix of GPUs by job and node.
from libc.stdint cimport int8_t, int32_t

cdef struct FitnessInputs:
    int jobs
    int nodes
    int most                 # GPUs a speedup is known for
    int node_gpus
    double power             # of the mean over jobs; 0 = geometric
    const int8_t* base__jn  # what jobs have
    const double* speedup__jsk   # of so many GPUs, on one node (s = 0) or several
    const double* keeping__j     # factor of a change
    const double* share__j   # part of the cluster that a replica takes

cdef struct FitnessRoom:
    int8_t* used__n
    int32_t* gpus__j
    double* term__j
    double* each__j          # speedup of a GPU

cdef double fitness_sum(const double* value, int count) noexcept nogil
cdef void fitness_of(const FitnessInputs* inputs, const int8_t* state__jn, FitnessRoom* room, double* mean,
                     double* utility) noexcept nogil
cdef int fitness_reserve(FitnessRoom* room, int jobs, int nodes) except -1 nogil
cdef void fitness_free(FitnessRoom* room) noexcept nogil
