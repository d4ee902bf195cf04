# Programs of shares without shared GPUs; the slow twin is fastsim/policies/programs/interior_unpaired.py.
from libc.stdint cimport int64_t

cdef struct Unpaired:
    int classes
    int models
    int held
    double gain
    const int64_t* holds   # classes with a least rate
    const double* size__c  # jobs
    const double* use__c   # GPUs of a job
    const double* rate__hg
    const double* level_weight__h
    const double* weight   # of the equations, see self_dual_embedding.pxd
    double* own__cg        # and what follows from it
    double* total__c
    double* mean__h
    double* share__h
    double* slope__hg
    double* lift__g
    double* matrix__gg
    double* rate__h
    double* time__c
    double rise
