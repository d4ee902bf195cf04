# A multiset of numbers in a known range, with its smallest and its largest; comparison of rows of 32 numbers.
from libc.stdint cimport int32_t, uint32_t

cdef enum:
    LOWEST = -7168       # smallest number with a counter of its own
    SPAN = 8192          # numbers with a counter; all others share ``beyond``
    BLOCK = 6            # log2 of the numbers in a block

cdef struct ValueCounts:
    int32_t[SPAN] count              # how often each occurs, from LOWEST on
    int32_t[SPAN >> BLOCK] block     # sums of the counters, by block
    int32_t beyond       # how many numbers are outside the span
    int32_t low, high    # bounds of the counters that are not 0, perhaps too wide

cdef inline void counts_add(ValueCounts* counts, int32_t value) noexcept nogil:
    """Add a number."""
    cdef int32_t at
    if not LOWEST <= value < LOWEST + SPAN:
        counts.beyond += 1
        return
    at = value - LOWEST
    counts.count[at] += 1
    counts.block[at >> BLOCK] += 1
    counts.low = min(counts.low, at)
    counts.high = max(counts.high, at)

cdef inline void counts_remove(ValueCounts* counts, int32_t value) noexcept nogil:
    """Remove a number, which must be there."""
    cdef int32_t at
    if not LOWEST <= value < LOWEST + SPAN:
        counts.beyond -= 1
        return
    at = value - LOWEST
    counts.count[at] -= 1
    counts.block[at >> BLOCK] -= 1

cdef void counts_clear(ValueCounts* counts) noexcept nogil
cdef bint counts_ends(ValueCounts* counts, int32_t* least, int32_t* most) noexcept nogil

cdef extern from *:
    """
    #include <stdint.h>
    #if defined(__SSE2__)
    #include <emmintrin.h>
    #endif

    /* Bit i is set where a[i] and b[i] differ, for 32 numbers. */
    static inline uint32_t fastsim_differing(const int32_t *a, const int32_t *b) {
        uint32_t differing = 0;
        int i;
    #if defined(__SSE2__)
        for (i = 0; i < 32; i += 4) {
            __m128i same = _mm_cmpeq_epi32(_mm_loadu_si128((const __m128i *) (a + i)),
                                           _mm_loadu_si128((const __m128i *) (b + i)));
            differing |= (uint32_t) (_mm_movemask_ps(_mm_castsi128_ps(same)) ^ 15) << i;
        }
    #else
        for (i = 0; i < 32; i++)
            differing |= (uint32_t) (a[i] != b[i]) << i;
    #endif
        return differing;
    }

    /* The place of the lowest bit that is set; there must be one. */
    static inline int fastsim_lowest(uint32_t bits) {
    #if defined(__GNUC__)
        return __builtin_ctz(bits);
    #else
        int at = 0;
        while (!((bits >> at) & 1))
            at++;
        return at;
    #endif
    }
    """
    uint32_t differing "fastsim_differing"(const int32_t* a, const int32_t* b) noexcept nogil
    int lowest_bit "fastsim_lowest"(uint32_t bits) noexcept nogil
