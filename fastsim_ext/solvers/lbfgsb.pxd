# Downhill in a box, with the curvature learnt on the way.
from fastsim_ext.solvers.lbfgsb_subspace cimport Box

ctypedef double (*Slope)(const void* of, const double* at, double* slope) noexcept nogil

cdef double lbfgsb_end(
    Slope loss, const void* of, Box* box, int variables, double flat, double stop
) noexcept nogil
