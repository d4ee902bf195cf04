# One step of a search in a box: where it first bends, and the least of a quadratic among variables that stay free.
from fastsim_ext.solvers.lbfgsb_curvature cimport PAIRS, VARIABLES, Curvature

cdef struct Box:             # bounds of each variable, and where it is
    double[VARIABLES] low
    double[VARIABLES] high   # may be infinite
    double[VARIABLES] at
    double[VARIABLES] slope

cdef enum Where:             # of a variable at the end of the bent path
    FREE, UNMOVED, LOWEST, HIGHEST, FIXED

cdef struct Subspace:
    int free                 # variables that are not at a bound
    int entering             # variables that became free since the last time
    int leaving              # and how many are at a bound now
    int[VARIABLES] order     # the free ones, then the others backwards
    int[VARIABLES] entered
    int[VARIABLES] left      # backwards
    int[VARIABLES] where
    double[2 * PAIRS] reach  # W' (target - at)
    double[VARIABLES] target
    double[PAIRS][PAIRS] turns__pp        # change by change of slope over free variables, below the diagonal
    double[PAIRS][PAIRS] steps__pp        # step by step over the others, below the diagonal
    double[PAIRS][PAIRS] mixed__pp        # step by change: below the diagonal over the others, else over free ones
    double[2 * PAIRS][2 * PAIRS] root     # triangular factors of all three, column after column

cdef void subspace_begin(Subspace* part, const Box* box, int variables) noexcept nogil
cdef bint subspace_bend(Subspace* part, const Curvature* known, const Box* box) noexcept nogil
cdef bint subspace_changed(Subspace* part, int variables, bint compared) noexcept nogil
cdef bint subspace_factor(Subspace* part, const Curvature* known, bint learnt, bint dropped) noexcept nogil
cdef bint subspace_least(Subspace* part, const Curvature* known, const Box* box) noexcept nogil
