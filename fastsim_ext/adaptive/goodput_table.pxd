# Normalised goodput of every configuration for many jobs; the slow twin is goodput_row in goodput_by_hand.py.
cimport cython
from libc.stdint cimport int64_t, uint8_t
from fastsim_ext.adaptive.goodput cimport Grid, Noise, Perf

cdef struct JobView:       # a job, as far as it matters here
    const Perf* perf__g
    const uint8_t* known__g  # whether it has run there
    const int64_t* most__g   # replicas
    Noise noise
    int64_t app, batch
    bint tuned


@cython.final
cdef class GoodputKernel:
    cdef readonly int columns, groups
    cdef const int64_t[::1] group__q, nodes__q, gpus__q, per_node__g
    cdef const int64_t[:, ::1] low__ag, high__ag, stages__ag
    cdef const double[:, :, ::1] ratio__agg
    cdef double worth(self, const JobView* job, int source, int64_t nodes, int64_t replicas, Grid* grid) noexcept nogil
    cdef void fill(self, const JobView* job, float* row) noexcept nogil
    cdef bint fill_group(self, const JobView* job, int group, int source, float* row) noexcept nogil
    cdef bint seeded(self, const JobView* job, int group, int teacher) noexcept nogil
    cdef bint allowed(self, const JobView* job, int q) noexcept nogil
