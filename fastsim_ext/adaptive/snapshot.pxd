# State of a run of adaptive jobs between two rounds.
from libc.stdint cimport int64_t

cdef struct Trained:     # a job that has come; seconds, samples
    int64_t id, atomic, accum, epoch, restarts, rounds, present, crowd, samples, noisy, stays, preemptions
    double sqr, var, progress, clock_s, first_s, finish_s, restart_left_s, service_s, wasted_s, used_s, held_s
    double gpu_s, paused_s, delayed_s, left_s
