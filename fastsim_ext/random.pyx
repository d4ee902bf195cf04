"""Random numbers: streams of the Mersenne Twister MT19937, keyed numbers, and rows drawn without putting back.

The streams are drawn from as CPython's ``random`` and as numpy draw, so that a run can go on from a seeded stream.
``draw_bits`` and ``draw_below`` hold no state: they mix their three keys.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

cdef enum:
    MIDDLE = 397         # distance of the second word that makes a new one
    UPPER = 0x80000000
    LOWER = 0x7fffffff
    MATRIX = 0x9908b0df

cdef enum:
    AT_ONCE = 64             # words that are prepared together

# Both loops over words are compiled twice, and the wider one runs where the CPU has AVX2. The choice is made when the
# module is loaded, which needs glibc and does not go with a sanitizer.
cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__)
    #define FASTSIM_WIDE __attribute__((target_clones("avx2", "default")))
    #else
    #define FASTSIM_WIDE
    #endif
    FASTSIM_WIDE static void fastsim_words_renewed(uint32_t *);
    FASTSIM_WIDE static void fastsim_words_tempered(const uint32_t *, uint32_t *, int);
    """


cdef inline uint32_t twisted(uint32_t high, uint32_t low, uint32_t middle) noexcept nogil:
    cdef uint32_t both = (high & <uint32_t> UPPER) | (low & <uint32_t> LOWER)
    return middle ^ (both >> 1) ^ ((0 - (both & 1)) & <uint32_t> MATRIX)


cdef void words_renewed "fastsim_words_renewed"(uint32_t* w) noexcept nogil:
    """The next generation of words."""
    cdef int i
    for i in range(WORDS - MIDDLE):
        w[i] = twisted(w[i], w[i + 1], w[i + MIDDLE])
    for i in range(WORDS - MIDDLE, WORDS - 1):
        w[i] = twisted(w[i], w[i + 1], w[i + MIDDLE - WORDS])
    w[WORDS - 1] = twisted(w[WORDS - 1], w[0], w[MIDDLE - 1])


cdef void words_tempered "fastsim_words_tempered"(const uint32_t* word, uint32_t* out, int count) noexcept nogil:
    """Words as they are handed out."""
    cdef uint32_t y
    cdef int i
    for i in range(count):
        y = word[i]
        y ^= y >> 11
        y ^= (y << 7) & <uint32_t> 0x9d2c5680
        y ^= (y << 15) & <uint32_t> 0xefc60000
        out[i] = y ^ (y >> 18)


cdef void mersenne_renew(Mersenne* stream) noexcept nogil:
    """The next generation of words, none of which is used."""
    words_renewed(stream.word)
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


cdef int64_t row_taken(int32_t* counts, int64_t rows, int64_t place) noexcept nogil:
    """Take the row at a place among those left out of a Fenwick tree of counts; its number."""
    cdef int64_t row = 0, step = 1, node
    while step <= rows >> 1:
        step <<= 1
    while step:
        node = row + step
        if node <= rows and counts[node] <= place:
            place -= counts[node]
            row = node
        elif node <= rows:
            counts[node] -= 1
        step >>= 1
    return row


def rows_taken(int32_t[::1] counts, const int64_t[::1] places, int64_t[::1] taken):
    """Take the row at each place among those left out of the tree, one after the other, and put its number down."""
    cdef Py_ssize_t draw
    for draw in range(places.shape[0]):
        taken[draw] = row_taken(&counts[0], counts.shape[0] - 1, places[draw])


def exchange(int64_t[::1] items, const int64_t[::1] others, int64_t last):
    """Exchange the item at ``last`` with that at the first other place, the one before with the second, and so on."""
    cdef Py_ssize_t k
    for k in range(others.shape[0]):
        items[last - k], items[others[k]] = items[others[k]], items[last - k]


def drawn(state, int draws, int limit):
    """For tests: numbers below ``limit`` (and 32-bit words if it is 0) after ``random.Random.getstate()[1]``."""
    cdef Mersenne stream
    cdef int i
    for i in range(WORDS):
        stream.word[i] = state[i]
    stream.used = state[WORDS]
    return [mersenne_below(&stream, limit) if limit else mersenne_bits(&stream, 32) for _ in range(draws)]


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


cdef void numpy_begin(NumpyStream* stream, uint32_t seed) noexcept nogil:
    """Begin with one number."""
    cdef int i
    stream.source.word[0] = seed
    for i in range(1, WORDS):
        seed = 1812433253U * (seed ^ (seed >> 30)) + i
        stream.source.word[i] = seed
    stream.source.used = stream.clear = WORDS


cdef void numpy_ready(NumpyStream* stream) noexcept nogil:
    """Begin within a generation, after the state of the source was set."""
    stream.clear = 0


cdef void numpy_renew(NumpyStream* stream) noexcept nogil:
    """The next generation."""
    mersenne_renew(&stream.source)
    stream.clear = 0


cdef void numpy_tempered(NumpyStream* stream, int words) noexcept nogil:
    """Prepare the next words of this generation, and some more; skipped words stay as they are."""
    cdef int first = max(stream.clear, stream.source.used)
    stream.clear = min(WORDS, stream.source.used + max(words, AT_ONCE))
    words_tempered(stream.source.word + first, stream.word + first, stream.clear - first)


def drawn_as_numpy(uint32_t seed, uint32_t most, int draws, int skipped):
    """For tests: words are skipped, whole numbers up to ``most`` drawn, then numbers in [0, 1)."""
    cdef NumpyStream stream
    numpy_begin(&stream, seed)
    numpy_skip(&stream, skipped)
    return [numpy_upto(&stream, most) for _ in range(draws)], [numpy_uniform(&stream) for _ in range(draws)]
