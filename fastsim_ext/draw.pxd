# Random numbers without state: a number is a function of (seed, stream, counter).
from libc.stdint cimport uint64_t

cdef enum:  # Stream
    STREAM_SCORE = 1     # which feasible node the random scorer favours
    STREAM_GPU = 2       # which fitting device a random pick takes

cdef uint64_t draw_bits(uint64_t seed, uint64_t stream, uint64_t counter) noexcept nogil
cdef int draw_below(int bound, uint64_t seed, uint64_t stream, uint64_t counter) noexcept nogil
