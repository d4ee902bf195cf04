# A training job, its training curve, the step times of its placement, and the measurements of all jobs.
cimport cython
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.adaptive.goodput cimport Grid, Noise, Perf


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
    cdef double[::1] step_s, sync_s                # by samples of a turn; NaN = not computed yet
    cdef Grid grid                                 # of the batch sizes that are tried here
    cdef int seconds(self, int64_t atomic, double* step_s, double* sync_s) except -1

cdef struct Measurements:      # all measurements from the root to here
    int32_t parent       # the same without the last one; the root is its own
    int32_t most_replicas
    int64_t nodes, replicas, atomic    # of the last measurement
    double turn_s, step_s
    Perf perf            # parameters fitted to all of them


@cython.final
cdef class LearnedPerformance:
    cdef object fit
    cdef dict known
    cdef Measurements* rows
    cdef readonly int32_t n
    cdef int32_t room
    cdef bint has(self, int32_t history, int64_t nodes, int64_t replicas, int64_t atomic) noexcept
    cdef int32_t after(self, int32_t history, int64_t nodes, int64_t replicas, int64_t atomic, double turn_s,
                       double step_s) except -1
    cdef int32_t extended(self, int32_t history, int64_t nodes, int64_t replicas, int64_t atomic, double turn_s,
                          double step_s, bint fitted) except -1


@cython.final
cdef class TrainingJob:
    cdef readonly int64_t id
    cdef TrainingCurveTable curve
    cdef LearnedPerformance learned
    cdef readonly PlacedStepTimes placement                        # None = no GPUs
    cdef readonly int32_t[::1] history__g           # by group of nodes: its row in ``learned``
    cdef readonly int64_t batch, gpus_requested        # requested by its user: samples and GPUs
    cdef readonly bint tuned, merged, noisy
    cdef Noise noise                               # of the batch it trained last, if noisy
    cdef readonly double submit_s, restart_s, speed
    cdef double undisturbed
    cdef readonly int64_t atomic, accum, epoch, restarts, rounds, present, crowd, samples
    cdef readonly int64_t stays, preemptions       # on the same GPUs; those that a time without any followed
    cdef readonly double gpu_s, paused_s           # GPU seconds held until it was done; seconds between its stays
    cdef readonly double delayed_s                 # seconds of restart delays while it held GPUs
    cdef readonly double left_s                    # when it last lost its GPUs without being done; NaN = it has some
    cdef readonly double progress, clock_s, first_s, finish_s, restart_left_s, service_s, wasted_s, used_s, held_s
    cdef int step(self, double seconds) except -1
    cdef double train(self, double seconds) except? -1
    cdef int learn(self, double turn_s, double step_s) except -1
    cdef void pick(self) noexcept
    cdef void fix(self, double batch) noexcept
    cdef void hold(self, double seconds) noexcept
    cdef void stay(self, double now_s) noexcept
    cdef void wait(self, double now_s) noexcept
    cdef void move(self, PlacedStepTimes placement, double now_s) noexcept
