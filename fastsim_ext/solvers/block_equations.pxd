# Newton's equations of programs of small blocks per job; the slow twin is tests/reference/rounds/block_equations.py.
# Vectors of x have an entry for each column of each job, then the level; those of s and z one for every x_jg, every
# row, every GPU model, then three for every cone.
from libc.stdint cimport int64_t

cdef struct Blocks:
    int64_t jobs
    int64_t models
    int64_t width        # columns of a job
    int64_t rows
    int64_t cones        # as many as jobs, or none
    int64_t slots        # rows of a job at most
    int64_t size         # of a block: columns, slots, and three with cones
    int64_t linear       # entries of s and z that belong to no cone
    const int64_t* job__r
    int64_t* place__r    # of a row among the rows of all blocks
    double level         # scales
    double* column__jv
    double* own__jg      # the balanced program
    double* row__rv
    double* lift__r
    double* gpus__jg
    double* rate__jg
    double* time__j
    double* cost
    double* room
    double* linear_by    # one over the weights; its root for rows
    double* axes__jab
    double* inverse__jss
    double* reach__jsk   # k: GPU models, then the level
    double* middle__kk
    double* side__js
    double* inner__js
    double* even__s
    double* end__k
    double* spare__ss

cdef int64_t blocks_space(const Blocks* of) noexcept nogil
cdef void blocks_place(Blocks* of, double* space) noexcept nogil
cdef void blocks_balance(Blocks* of) noexcept nogil
cdef void blocks_used(const Blocks* of, const double* x, double* rows) noexcept nogil
cdef void blocks_prices(const Blocks* of, const double* z, double* x) noexcept nogil
cdef bint blocks_weigh(Blocks* of, const double* weight, const double* axes__jab,
                       const double* value__ja) noexcept nogil
cdef void blocks_solve(Blocks* of, const double* rise, const double* fall, double* x, double* z) noexcept nogil
