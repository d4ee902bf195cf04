"""Random numbers without state: a number is a function of (seed, stream, counter).

No draw depends on how many were made before it, so runs can be split, resumed or spread over
workers without changing a bit.
"""

from libc.stdint cimport uint64_t


cdef uint64_t draw_bits(uint64_t seed, uint64_t stream, uint64_t counter) noexcept nogil:
    """64 well-mixed bits: two rounds of the splitmix64 finaliser over the three keys."""
    cdef uint64_t z = (seed * <uint64_t> 0x9E3779B97F4A7C15 + stream * <uint64_t> 0xBF58476D1CE4E5B9
                       + counter * <uint64_t> 0x94D049BB133111EB)
    cdef int _turn
    for _turn in range(2):
        z ^= z >> 30
        z *= <uint64_t> 0xBF58476D1CE4E5B9
        z ^= z >> 27
        z *= <uint64_t> 0x94D049BB133111EB
        z ^= z >> 31
    return z


cdef int draw_below(int bound, uint64_t seed, uint64_t stream, uint64_t counter) noexcept nogil:
    """A number in [0, bound); the bias is below bound / 2**32."""
    return <int> (((draw_bits(seed, stream, counter) >> 32) * <uint64_t> bound) >> 32)
