# Programs of shares in which pairs may share GPUs; the slow twin is fastsim/policies/programs/interior_paired.py.
from libc.stdint cimport int64_t

cdef struct Paired:
    int groups
    int classes
    int models
    int held
    double gain
    const int64_t* member__mr  # class of the first members, then of the second
    const double* hold__mr     # how many of that class one column holds; 0 without a second member
    const double* rate__mrg
    const double* number__r    # columns of the program written out
    const double* use__r       # GPUs
    const int64_t* place__c    # row of a class's rate among the held ones; -1 without a promise
    const double* level_weight__h
    const double* weigh        # rows of the program written out
    const double* lift         # what the level adds to each row
    const double* weight       # of the equations, see self_dual_embedding.pxd
    const double* damping
    double level_damping
    double rise
    double* own__rg            # and what follows from it
    double* slope
    double* matrix
    double* transposed__rg
    double* spare_rise         # what an answer misses
    double* spare_x
    double* spare_fall
    double* spare_z
