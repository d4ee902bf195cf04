"""The Mersenne Twister MT19937 as CPython's ``random`` draws from it, so that a run can go on from a seeded stream."""

from libc.stdint cimport int32_t, uint32_t

cdef enum:
    MIDDLE = 397         # distance of the second word that makes a new one
    UPPER = 0x80000000
    LOWER = 0x7fffffff
    MATRIX = 0x9908b0df


cdef inline uint32_t twisted(uint32_t high, uint32_t low, uint32_t middle) noexcept nogil:
    cdef uint32_t both = (high & <uint32_t> UPPER) | (low & <uint32_t> LOWER)
    return middle ^ (both >> 1) ^ ((0 - (both & 1)) & <uint32_t> MATRIX)


cdef void mersenne_renew(Mersenne* stream) noexcept nogil:
    """The next generation of words."""
    cdef uint32_t* w = stream.word
    cdef int i
    for i in range(WORDS - MIDDLE):
        w[i] = twisted(w[i], w[i + 1], w[i + MIDDLE])
    for i in range(WORDS - MIDDLE, WORDS - 1):
        w[i] = twisted(w[i], w[i + 1], w[i + MIDDLE - WORDS])
    w[WORDS - 1] = twisted(w[WORDS - 1], w[0], w[MIDDLE - 1])
    stream.used = 0


cdef uint32_t mersenne_bits(Mersenne* stream, int bits) noexcept nogil:
    """A number of ``bits`` random bits, 1 to 32."""
    return mersenne_word(stream) >> (32 - bits)


cdef uint32_t mersenne_below(Mersenne* stream, uint32_t limit) noexcept nogil:
    """A number from 0 to ``limit`` - 1: bits are drawn until they are small enough."""
    cdef int bits = 0
    cdef uint32_t drawn
    while bits < 32 and limit >> bits:
        bits += 1
    drawn = mersenne_bits(stream, bits)
    while drawn >= limit:
        drawn = mersenne_bits(stream, bits)
    return drawn


cdef void mersenne_shuffle(Mersenne* stream, int32_t* items, int count) noexcept nogil:
    """Exchange items from the last to the second with one at or before them."""
    cdef int i
    cdef uint32_t j
    for i in range(count - 1, 0, -1):
        j = mersenne_below(stream, i + 1)
        items[i], items[j] = items[j], items[i]


def drawn(state, int draws, int limit):
    """For tests: numbers below ``limit`` (and 32-bit words if it is 0) after ``random.Random.getstate()[1]``."""
    cdef Mersenne stream
    cdef int i
    for i in range(WORDS):
        stream.word[i] = state[i]
    stream.used = state[WORDS]
    return [mersenne_below(&stream, limit) if limit else mersenne_bits(&stream, 32) for _ in range(draws)]
