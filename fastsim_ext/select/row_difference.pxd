# Where two rows of numbers differ, as bits: what has changed is little, so that only it is looked at one by one.
from libc.stdint cimport int32_t, uint32_t

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
