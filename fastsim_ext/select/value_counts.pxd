# How often each number occurs in a changing collection: the largest and the smallest of them.
from libc.stdint cimport int32_t, uint32_t

cdef enum:
    LOWEST = -7168       # numbers from here on are counted each by itself,
    SPAN = 8192          # so many of them; of others it is only known how many there are
    BLOCK = 6            # bits of the numbers of one block

cdef struct ValueCounts:
    int32_t[SPAN] count              # how often each occurs, from LOWEST on
    int32_t[SPAN >> BLOCK] block     # the same by blocks of them
    int32_t beyond       # numbers outside the span
    int32_t low, high    # places; no number that occurs is outside them

cdef inline void tally_add(ValueCounts* tally, int32_t value) noexcept nogil:
    """One more of a number."""
    cdef int32_t at
    if not LOWEST <= value < LOWEST + SPAN:
        tally.beyond += 1
        return
    at = value - LOWEST
    tally.count[at] += 1
    tally.block[at >> BLOCK] += 1
    tally.low = min(tally.low, at)
    tally.high = max(tally.high, at)

cdef inline void tally_remove(ValueCounts* tally, int32_t value) noexcept nogil:
    """One less of a number that is there."""
    cdef int32_t at
    if not LOWEST <= value < LOWEST + SPAN:
        tally.beyond -= 1
        return
    at = value - LOWEST
    tally.count[at] -= 1
    tally.block[at >> BLOCK] -= 1

cdef void tally_clear(ValueCounts* tally) noexcept nogil
cdef bint tally_ends(ValueCounts* tally, int32_t* least, int32_t* most) noexcept nogil

cdef extern from *:
    """
    #include <stdint.h>
    #if defined(__SSE2__)
    #include <emmintrin.h>
    #endif

    /* Bit i is set where a[i] and b[i] differ, for 32 numbers. */
    static inline uint32_t fastsim_unlike(const int32_t *a, const int32_t *b) {
        uint32_t unlike = 0;
        int i;
    #if defined(__SSE2__)
        for (i = 0; i < 32; i += 4) {
            __m128i same = _mm_cmpeq_epi32(_mm_loadu_si128((const __m128i *) (a + i)),
                                           _mm_loadu_si128((const __m128i *) (b + i)));
            unlike |= (uint32_t) (_mm_movemask_ps(_mm_castsi128_ps(same)) ^ 15) << i;
        }
    #else
        for (i = 0; i < 32; i++)
            unlike |= (uint32_t) (a[i] != b[i]) << i;
    #endif
        return unlike;
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
    uint32_t unlike_row "fastsim_unlike"(const int32_t* a, const int32_t* b) noexcept nogil
    int unlike_first "fastsim_lowest"(uint32_t bits) noexcept nogil
