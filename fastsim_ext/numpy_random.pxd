# Random numbers as numpy's RandomState draws them, many at a time.
from libc.stdint cimport int64_t, uint32_t
from fastsim_ext.random cimport WORDS, Mersenne

cdef struct Flow:
    Mersenne source
    int clear                # where words end that are as they are handed out; those before `used` are gone
    uint32_t word[WORDS]     # of the source's generation

cdef void flow_begin(Flow* flow, uint32_t seed) noexcept nogil
cdef void flow_ready(Flow* flow) noexcept nogil
cdef void flow_renew(Flow* flow) noexcept nogil
cdef void flow_tempered(Flow* flow, int words) noexcept nogil

cdef inline void flow_clear(Flow* flow, int words) noexcept nogil:
    if flow.source.used + words > flow.clear:
        flow_tempered(flow, words)

cdef inline uint32_t flow_word(Flow* flow) noexcept nogil:
    if flow.source.used >= WORDS:
        flow_renew(flow)
    flow_clear(flow, 1)
    flow.source.used += 1
    return flow.word[flow.source.used - 1]

cdef inline void flow_skip(Flow* flow, int words) noexcept nogil:
    words += flow.source.used
    while words > WORDS:
        flow_renew(flow)
        words -= WORDS
    flow.source.used = words

cdef inline int64_t flow_steps(Flow* flow) noexcept nogil:
    cdef int64_t high = flow_word(flow) >> 5
    return high << 26 | flow_word(flow) >> 6

cdef inline double flow_uniform(Flow* flow) noexcept nogil:
    return flow_steps(flow) * (1.0 / 9007199254740992.0)

cdef inline uint32_t flow_mask(uint32_t most) noexcept nogil:
    most |= most >> 1
    most |= most >> 2
    most |= most >> 4
    most |= most >> 8
    return most | most >> 16

cdef inline uint32_t flow_upto(Flow* flow, uint32_t most) noexcept nogil:
    cdef uint32_t mask = flow_mask(most)
    cdef uint32_t drawn = flow_word(flow) & mask
    while drawn > most:
        drawn = flow_word(flow) & mask
    return drawn
