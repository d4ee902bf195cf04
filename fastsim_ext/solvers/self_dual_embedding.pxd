# A linear program by the homogeneous self-dual embedding; the slow twin is fastsim/policies/solvers/interior_point.py.
# Vectors s, z, room, count and weight have an entry per column, then one per row.
from libc.stdint cimport int64_t

cdef struct Program:
    int columns
    int rows
    double gain
    const double* cost
    const double* room   # of the rows only
    const double* count  # how many columns or rows of the program written out each entry stands for
    void* of             # what the five functions need
    void (*used)(const void* of, const double* x, double level, double* rows) noexcept nogil
    double (*prices)(const void* of, const double* z, double* x) noexcept nogil
    double (*largest)(const void* of, const double* column, double level, const double* row,
                      double* by_column, double* by_row) noexcept nogil
    void (*weigh)(void* of, const double* weight, const double* damping, double level_damping) noexcept nogil
    double (*solve)(const void* of, const double* rise, double rise_level, const double* fall,
                    double* x, double* z) noexcept nogil

cdef struct Path:
    const Program* of
    int steps
    double tau
    double kappa
    double level
    double level_scale
    double degree
    double cost_size
    double room_size
    double worth
    double price
    double gap
    double mu
    double miss_level
    double miss_tau
    double one_level
    bint aims
    double* column       # scales
    double* damping
    double* x
    double* miss_x
    double* one_x
    double* two_x
    double* rise
    double* row          # scales
    double* s
    double* z
    double* miss_z
    double* weight
    double* one_z
    double* two_z
    double* left
    double* fall
    double* room

cdef int embedding_space(int columns, int rows) noexcept nogil
cdef bint embedding_optimum(const Program* of, double* space, double* x, double* level) noexcept nogil
cdef void dense_factor(double* a, int n) noexcept nogil
cdef void dense_solve(const double* a, int n, double* b) noexcept nogil
cdef bint dense_inverse(double* a, int64_t n, double* left) noexcept nogil
cdef void dense_product(const double* a, int64_t rows, int64_t columns, const double* b,
                        double* product) noexcept nogil
