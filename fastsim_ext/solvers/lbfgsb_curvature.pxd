# Curvature of a function, from the last steps of a search and the changes of slopes along them.

cdef enum:
    VARIABLES = 8            # most that a function may have
    PAIRS = 10               # most steps that are kept

cdef struct Curvature:
    int variables
    int pairs                # kept so far, the oldest first
    double scale             # curvature where nothing is known
    double[PAIRS][VARIABLES] step__pv
    double[PAIRS][VARIABLES] turn__pv        # change of the slope along each step
    double[PAIRS][PAIRS] across__pp          # step by change of slope, at and below the diagonal
    double[PAIRS][PAIRS] along__pp           # step by step, at and above the diagonal
    double[PAIRS][PAIRS] root__pp            # triangular factor of the middle matrix, column after column

cdef double curvature_dot(const double* a, const double* b, int count) noexcept nogil
cdef void curvature_add(double factor, const double* a, double* b, int count) noexcept nogil
cdef bint curvature_factor(double* a, int stride, int count) noexcept nogil
cdef bint curvature_forward(const double* a, int stride, int count, double* b) noexcept nogil
cdef bint curvature_backward(const double* a, int stride, int count, double* b) noexcept nogil
cdef void curvature_forget(Curvature* known) noexcept nogil
cdef bint curvature_learn(Curvature* known, const double* step, const double* turn, double across,
                          double along) noexcept nogil
cdef bint curvature_middle(const Curvature* known, const double* value, double* product) noexcept nogil
