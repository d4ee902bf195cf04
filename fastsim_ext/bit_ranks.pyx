"""Ranks of many values by their leading bits: each 64-bit float as an unsigned integer in the same order.

-0.0 counts as 0.0. Sixteen bits make a digit: ``shift`` (48, 32, 16 or 0) says how many bits follow it.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy


cdef inline uint64_t digits_key(double value) noexcept nogil:
    """An unsigned integer in the order of the values."""
    cdef uint64_t bits
    value += 0.0   # -0.0 equals 0.0, so it must not come before it
    memcpy(&bits, &value, sizeof(bits))
    return ~bits if bits >> 63 else bits | (<uint64_t> 1 << 63)


def counted(const double[::1] values, int shift, const uint64_t[::1] prefixes, int64_t[:, ::1] counts):
    """Add to ``counts`` how many values have each digit behind each prefix; before the first digit it is 0."""
    cdef int64_t i, p
    cdef int64_t n = prefixes.shape[0]
    cdef uint64_t key
    if shift not in (0, 16, 32, 48) or counts.shape[0] != n or counts.shape[1] != 1 << 16:
        raise ValueError(f"counts of {counts.shape[0]} by {counts.shape[1]} for {n} prefixes before {shift} bits")
    with nogil:
        for i in range(values.shape[0]):
            key = digits_key(values[i]) >> shift
            for p in range(n):
                if key >> 16 == prefixes[p]:
                    counts[p, key & 0xFFFF] += 1
                    break


def gathered(const double[::1] values, int shift, uint64_t prefix, uint64_t[::1] keys, int64_t at):
    """Put the keys of all values with this prefix, the bits above ``shift``, from ``at`` on; where the next go."""
    cdef int64_t i
    cdef uint64_t key
    if shift not in (16, 32, 48) or at < 0:
        raise ValueError(f"no keys before {shift} bits from {at} on")
    with nogil:
        for i in range(values.shape[0]):
            key = digits_key(values[i])
            if key >> shift == prefix:
                if at == keys.shape[0]:
                    with gil:
                        raise ValueError(f"more than {at} keys of prefix {prefix}")
                keys[at] = key
                at += 1
    return at
