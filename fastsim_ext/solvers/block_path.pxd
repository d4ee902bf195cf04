# The way to the optimum of a program of blocks; the slow twin is tests/reference/rounds/block_path.py.
from libc.stdint cimport int64_t
from fastsim_ext.solvers.block_equations cimport Blocks

cdef struct BlockPath:
    Blocks* of
    int64_t columns      # of all jobs, and the level
    int64_t entries      # of s and z
    int steps
    double tau
    double kappa
    double worth
    double paid
    double miss_tau
    double gap
    double mu
    double* x
    double* miss_x
    double* one_x
    double* two_x
    double* rise
    double* s
    double* z
    double* miss_z
    double* one_z
    double* two_z
    double* middle       # what slacks and multipliers become when they are scaled
    double* linear       # the scaling of entries without a cone; its squares
    double* weight
    double* left
    double* fall
    double* ds
    double* dz
    double* axes__jab    # the scaling of cones: principal axes (a row each), values on them and their squares
    double* value__ja
    double* square__ja
