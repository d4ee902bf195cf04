# The Mersenne Twister as CPython's random module draws from it.
from libc.stdint cimport int32_t, uint32_t

cdef enum:
    WORDS = 624

cdef struct Mersenne:
    uint32_t word[WORDS]
    int32_t used         # words of this generation that are gone

cdef uint32_t mersenne_bits(Mersenne* stream, int bits) noexcept nogil
cdef uint32_t mersenne_below(Mersenne* stream, uint32_t limit) noexcept nogil
cdef void mersenne_shuffle(Mersenne* stream, int32_t* items, int count) noexcept nogil
