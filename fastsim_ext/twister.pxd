# The Mersenne Twister as CPython's random module draws from it.
from libc.stdint cimport int32_t, uint32_t

cdef enum:
    WORDS = 624

cdef struct Twister:
    uint32_t word[WORDS]
    int32_t used         # words of this generation that are gone

cdef uint32_t twister_bits(Twister* stream, int bits) noexcept nogil
cdef uint32_t twister_below(Twister* stream, uint32_t limit) noexcept nogil
cdef void twister_shuffle(Twister* stream, int32_t* items, int count) noexcept nogil
