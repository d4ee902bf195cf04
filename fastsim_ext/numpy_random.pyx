"""Random numbers as ``numpy.random.RandomState`` draws them: the words of the Mersenne Twister, a generation at a time.

``flow_uniform`` is a number in [0, 1) of 53 bits, ``flow_upto`` a whole number from 0 to ``most``: low bits are drawn
until they fit, and even for 0 one word is gone. ``flow_skip`` passes words over that nobody wants to know.
"""

from libc.stdint cimport uint32_t
from fastsim_ext.random cimport WORDS, mersenne_renew

cdef enum:
    AT_ONCE = 64             # words that are prepared together


cdef void flow_begin(Flow* flow, uint32_t seed) noexcept nogil:
    """Begin with one number."""
    cdef int i
    flow.source.word[0] = seed
    for i in range(1, WORDS):
        seed = 1812433253U * (seed ^ (seed >> 30)) + i
        flow.source.word[i] = seed
    flow.source.used = flow.clear = WORDS


cdef void flow_ready(Flow* flow) noexcept nogil:
    """Begin with what is left of a generation, after the source was told where it is."""
    flow.clear = 0


cdef void flow_renew(Flow* flow) noexcept nogil:
    """The next generation."""
    mersenne_renew(&flow.source)
    flow.clear = 0


cdef void flow_tempered(Flow* flow, int words) noexcept nogil:
    """Prepare the next words of this generation, and some more; what was skipped stays as it is."""
    cdef int first = max(flow.clear, flow.source.used), i
    cdef uint32_t y
    flow.clear = min(WORDS, flow.source.used + max(words, AT_ONCE))
    for i in range(first, flow.clear):
        y = flow.source.word[i]
        y ^= y >> 11
        y ^= (y << 7) & <uint32_t> 0x9d2c5680
        y ^= (y << 15) & <uint32_t> 0xefc60000
        flow.word[i] = y ^ (y >> 18)


def drawn(uint32_t seed, uint32_t most, int draws, int skipped):
    """For tests: words are skipped, whole numbers up to ``most`` drawn, then numbers in [0, 1)."""
    cdef Flow flow
    flow_begin(&flow, seed)
    flow_skip(&flow, skipped)
    return [flow_upto(&flow, most) for _ in range(draws)], [flow_uniform(&flow) for _ in range(draws)]
