# Streams of the Mersenne Twister, and numbers keyed by seed, stream and counter.
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

cdef enum:
    WORDS = 624          # of a generation of the Mersenne Twister
    STREAM_SCORE = 1     # which feasible node the random scorer favours
    STREAM_GPU = 2       # which fitting device a random pick takes

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
cdef uint64_t draw_bits(uint64_t seed, uint64_t stream, uint64_t counter) noexcept nogil
cdef int draw_below(int bound, uint64_t seed, uint64_t stream, uint64_t counter) noexcept nogil

cdef struct NumpyStream:
    Mersenne source
    int clear                # where words end that are as they are handed out; those before `used` are gone
    uint32_t word[WORDS]     # of the source's generation

cdef void numpy_begin(NumpyStream* stream, uint32_t seed) noexcept nogil
cdef void numpy_ready(NumpyStream* stream) noexcept nogil
cdef void numpy_renew(NumpyStream* stream) noexcept nogil
cdef void numpy_tempered(NumpyStream* stream, int words) noexcept nogil

cdef inline void numpy_clear(NumpyStream* stream, int words) noexcept nogil:
    if stream.source.used + words > stream.clear:
        numpy_tempered(stream, words)

cdef inline uint32_t numpy_word(NumpyStream* stream) noexcept nogil:
    if stream.source.used >= WORDS:
        numpy_renew(stream)
    numpy_clear(stream, 1)
    stream.source.used += 1
    return stream.word[stream.source.used - 1]

cdef inline void numpy_skip(NumpyStream* stream, int words) noexcept nogil:
    words += stream.source.used
    while words > WORDS:
        numpy_renew(stream)
        words -= WORDS
    stream.source.used = words

cdef inline int64_t numpy_steps(NumpyStream* stream) noexcept nogil:
    cdef int64_t high = numpy_word(stream) >> 5
    return high << 26 | numpy_word(stream) >> 6

cdef inline double numpy_uniform(NumpyStream* stream) noexcept nogil:
    return numpy_steps(stream) * (1.0 / 9007199254740992.0)

cdef inline uint32_t numpy_mask(uint32_t most) noexcept nogil:
    most |= most >> 1
    most |= most >> 2
    most |= most >> 4
    most |= most >> 8
    return most | most >> 16

cdef inline uint32_t numpy_upto(NumpyStream* stream, uint32_t most) noexcept nogil:
    cdef uint32_t mask = numpy_mask(most)
    cdef uint32_t drawn = numpy_word(stream) & mask
    while drawn > most:
        drawn = numpy_word(stream) & mask
    return drawn
