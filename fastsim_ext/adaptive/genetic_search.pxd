# Pollux's genetic search for the best allocation of a cluster: a population whose best states survive each generation.
cimport cython
from libc.stdint cimport int8_t, int32_t, uint64_t
from fastsim_ext.adaptive.fitness cimport FitnessRoom, FitnessInputs
from fastsim_ext.adaptive.genetic_operators cimport Room
from fastsim_ext.adaptive.pareto_fronts cimport FrontRoom
from fastsim_ext.random cimport NumpyStream

cdef struct Population:
    int size                 # states that live on
    int cells                # of a state
    int alive                # states of the herd, which come first
    int born                 # states after them that are new
    int8_t* state__pjn       # room for twice the size
    int8_t* next__pjn
    int8_t* child__pjn       # size + 2
    double* loss__p          # minus the mean speedup
    double* waste__p         # minus the utility
    double* crowding__p
    int32_t* rank__p
    uint64_t* mark__p        # hash of the state
    int32_t* known__h        # states by their hashes, -1 where there is none
    int slots                # of it, a power of two
    int32_t* order__p
    int32_t* turn__p         # size + 2: parents of the children to come
    int32_t* draw__p         # permutations, at least twice as many
    unsigned char* flag__pjn

cdef struct Rules:           # what a state may be
    const int32_t* most__j   # GPUs
    const int32_t* least__j  # unless there are none
    bint apart               # no two jobs of several nodes share a node


@cython.final
cdef class GeneticSearch:
    cdef NumpyStream stream
    cdef readonly int size
    cdef object first(self, Population* pool, int jobs, int nodes)

cdef void search_offspring(NumpyStream* stream, Population* pool, const FitnessInputs* inputs, const Rules* rules,
                           Room* operators, FitnessRoom* fit) noexcept nogil
cdef void search_survive(NumpyStream* stream, Population* pool, FrontRoom* fronts, int size) noexcept nogil
