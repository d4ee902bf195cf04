# One job that trains: where it is, what it knows, what it has used.
cimport cython
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.adaptive.goodput cimport Noise
from fastsim_ext.adaptive.ground_truth cimport PlacedStepTimes, TrainingCurveTable
from fastsim_ext.adaptive.learned_performance cimport LearnedPerformance


@cython.final
cdef class TrainingJob:
    cdef readonly int64_t id
    cdef TrainingCurveTable course
    cdef LearnedPerformance lessons
    cdef readonly PlacedStepTimes site                        # None = no GPUs
    cdef readonly int32_t[::1] lesson__g           # what it has learned of each group of nodes
    cdef readonly int64_t batch, gpus_asked        # what its user asked for, samples and GPUs
    cdef readonly bint tuned, merged, noisy
    cdef Noise noise                               # of the batch it trained last, if noisy
    cdef readonly double submit_s, restart_s, speed
    cdef readonly int64_t atomic, accum, epoch, restarts, rounds, present, crowd, samples
    cdef readonly int64_t stays, preemptions       # on the same GPUs; those that a time without any followed
    cdef readonly double gpu_s, paused_s           # GPU seconds held until it was done; seconds between its stays
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
    cdef void move(self, PlacedStepTimes site, double now_s) noexcept
