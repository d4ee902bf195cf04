# What training really comes to: recorded epochs, and step times where a job stands.
cimport cython
from libc.stdint cimport int64_t
from fastsim_ext.adaptive.goodput cimport Grid


@cython.final
cdef class TrainingCurveTable:
    cdef readonly object curve
    cdef const double[::1] progress__e             # after so many epochs, iterations of the initial batch size
    cdef const double[::1] batch__b                # recorded batch sizes, samples
    cdef const double[:, ::1] sqr__eb, var__eb
    cdef readonly int64_t epochs
    cdef readonly double init_batch, max_batch
    cdef int noise_at(self, double batch, int64_t epoch, double* sqr, double* var) except -1


@cython.final
cdef class PlacedStepTimes:
    cdef readonly object times, ring
    cdef readonly int64_t group, nodes, gpus, replicas, stages
    cdef readonly int64_t low, high                # samples that a GPU takes at once here
    cdef readonly int64_t seen                     # most of them ever measured on so many GPUs
    cdef double[::1] step_s, sync_s                # by samples of a turn; NaN = not asked yet
    cdef Grid grid                                 # of the batch sizes that are tried here
    cdef int seconds(self, int64_t atomic, double* step_s, double* sync_s) except -1
