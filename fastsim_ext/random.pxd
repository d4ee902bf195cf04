# The Mersenne Twister as CPython's random module draws from it.
from libc.stdint cimport int32_t, uint32_t

cdef enum:
    WORDS = 624

cdef struct Mersenne:
    uint32_t word[WORDS]
    int32_t used         # words of this generation that are gone

cdef void mersenne_renew(Mersenne* stream) noexcept nogil

cdef inline uint32_t mersenne_word(Mersenne* stream) noexcept nogil:
    cdef uint32_t y
    if stream.used >= WORDS:
        mersenne_renew(stream)
    y = stream.word[stream.used]
    stream.used += 1
    y ^= y >> 11
    y ^= (y << 7) & <uint32_t> 0x9d2c5680
    y ^= (y << 15) & <uint32_t> 0xefc60000
    return y ^ (y >> 18)

cdef uint32_t mersenne_bits(Mersenne* stream, int bits) noexcept nogil
cdef uint32_t mersenne_below(Mersenne* stream, uint32_t limit) noexcept nogil
cdef void mersenne_shuffle(Mersenne* stream, int32_t* items, int count) noexcept nogil
