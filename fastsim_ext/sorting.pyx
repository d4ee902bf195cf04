"""A stable sort of rows by keys of several terms, the terms themselves, and counts of values by their leading bits.

The sort takes linear time if the rows are sorted already. ``key_term`` computes one term of a job or pod for an ordered
queue. ``counted`` and ``gathered`` are the passes of a selection that finds order statistics without sorting.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.math cimport INFINITY
from libc.stdlib cimport free
from libc.string cimport memcpy
from fastsim_ext.memory cimport memory_grown

cdef enum:
    SHORT = 12           # rows that are sorted by insertion


cdef bint merge_after(const double* a, const double* b, int32_t terms) noexcept nogil:
    """Whether one key comes after another; False for equal keys."""
    cdef int32_t k
    for k in range(terms):
        if a[k] != b[k]:
            return a[k] > b[k]
    return False


cdef inline bint after(int32_t row, int32_t other, const double* keys, int32_t terms) noexcept nogil:
    return merge_after(&keys[row * <Py_ssize_t> MOST_TERMS], &keys[other * <Py_ssize_t> MOST_TERMS], terms)


cdef bint merge_sorted(int32_t* rows, int32_t* spare, int32_t n, const double* keys, int32_t terms) noexcept nogil:
    """Sort ``n`` rows, whose keys stand ``MOST_TERMS`` apart; returns whether the result stands in ``spare``."""
    cdef int32_t* other
    cdef int32_t* begun = rows
    cdef int32_t width = SHORT
    cdef int32_t a = 0
    cdef int32_t i = 1
    while i < n and not after(rows[i - 1], rows[i], keys, terms):
        i += 1
    if i >= n:
        return False
    while a < n:
        insert(rows, a, min(a + SHORT, n), keys, terms)
        a += SHORT
    while width < n:
        a = 0
        while a < n:
            join(rows, spare, a, min(a + width, n), min(a + 2 * width, n), keys, terms)
            a += 2 * width
        other = rows
        rows, spare = spare, other
        width *= 2
    return rows != begun


cdef void insert(int32_t* rows, int32_t a, int32_t b, const double* keys, int32_t terms) noexcept nogil:
    """Sort the places from ``a`` to ``b`` by insertion."""
    cdef int32_t i, j, row
    for i in range(a + 1, b):
        row = rows[i]
        j = i
        while j > a and after(rows[j - 1], row, keys, terms):
            rows[j] = rows[j - 1]
            j -= 1
        rows[j] = row


cdef void join(const int32_t* source, int32_t* target, int32_t a, int32_t b, int32_t c, const double* keys,
               int32_t terms) noexcept nogil:
    """Merge two sorted parts, from ``a`` and from ``b`` to ``c``; of equal keys those of the first part come first."""
    cdef int32_t i = a
    cdef int32_t j = b
    cdef int32_t at
    for at in range(a, c):
        if i < b and (j >= c or not after(source[i], source[j], keys, terms)):
            target[at] = source[i]
            i += 1
        else:
            target[at] = source[j]
            j += 1


def in_order(const double[::1] keys, int32_t terms):
    """Numbers of the rows in the order of the first ``terms`` of their keys, MOST_TERMS each."""
    cdef int32_t i, n = <int32_t> (keys.shape[0] // MOST_TERMS)
    cdef int32_t* rows = <int32_t*> memory_grown(NULL, 2 * n, sizeof(int32_t)) if n else NULL
    cdef int32_t* found = rows
    for i in range(n):
        rows[i] = i
    if n and merge_sorted(rows, &rows[n], n, &keys[0], terms):
        found = &rows[n]
    numbers = [found[i] for i in range(n)]
    free(rows)
    return numbers


cdef inline double ratio(double part, double whole) noexcept nogil:
    return part / whole if whole > 0 else 0.0


cdef double key_term(int32_t term, const KeyInputs* inputs, const OrderContext* context,
                     const double[::1] level_s) noexcept nogil:
    """One term of a key; ``level_s`` are the steps of the term LEVEL, GPU seconds."""
    cdef double gpus, cpu, memory, sum_of_parts
    cdef int32_t i
    if term == ARRIVAL:
        return inputs.submit_s
    if term == PRIORITY:
        return inputs.priority
    if term == REMAINING:
        return inputs.left_s
    if term == SERVICE:
        return inputs.attained_s * inputs.gpus
    if term == ATTAINED:
        return inputs.attained_s
    if term == FINISH_RATIO:
        if not inputs.total_s > 0:
            return INFINITY
        if inputs.total_s == INFINITY:    # an endless job never falls behind
            return 1.0
        return (context.now_s - inputs.submit_s + inputs.left_s) / inputs.total_s
    if term == SERVICE_LEFT:
        return inputs.left_s * inputs.gpus if inputs.gpus > 0 else 0.0
    if term == LEVEL:
        for i in range(level_s.shape[0]):
            if inputs.attained_s * inputs.gpus < level_s[i]:
                return i
        return level_s.shape[0]
    if term == WEIGHT:
        return inputs.weight
    if term == GPUS:
        return inputs.gpus
    if term == LAST:
        return inputs.last_s
    gpus = ratio(inputs.gpus, context.gpus)
    cpu, memory = ratio(inputs.cpu_milli, context.cpu_milli), ratio(inputs.memory_mib, context.memory_mib)
    if term == DOMINANT:
        return max(gpus, max(cpu, memory))
    sum_of_parts = gpus + cpu + memory
    return sum_of_parts * inputs.left_s if sum_of_parts > 0 else 0.0


def terms(numbers, const double[::1] inputs, const double[::1] context, const double[::1] level_s):
    """These terms of one job or pod; fields of ``KeyInputs`` and ``OrderContext`` in their order."""
    cdef KeyInputs c = KeyInputs(inputs[0], inputs[1], inputs[2], inputs[3], inputs[4], inputs[5], inputs[6], inputs[7],
                                 inputs[8], <int32_t> inputs[9])
    cdef OrderContext y = OrderContext(context[0], context[1], context[2], context[3], False, NULL)
    return [key_term(number, &c, &y, level_s) for number in numbers]


cdef inline uint64_t bits_key(double value) noexcept nogil:
    """An unsigned integer in the order of the values."""
    cdef uint64_t bits
    value += 0.0   # -0.0 equals 0.0, so it must not come before it
    memcpy(&bits, &value, sizeof(bits))
    return ~bits if bits >> 63 else bits | (<uint64_t> 1 << 63)


def counted(const double[::1] values, int shift, const uint64_t[::1] prefixes, int64_t[:, ::1] counts):
    """Add to ``counts`` how many values have each digit behind each prefix; the prefix of the first digit is 0."""
    cdef int64_t i, p
    cdef int64_t n = prefixes.shape[0]
    cdef uint64_t key
    if shift not in (0, 16, 32, 48) or counts.shape[0] != n or counts.shape[1] != 1 << 16:
        raise ValueError(f"counts of {counts.shape[0]} by {counts.shape[1]} for {n} prefixes before {shift} bits")
    with nogil:
        for i in range(values.shape[0]):
            key = bits_key(values[i]) >> shift
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
            key = bits_key(values[i])
            if key >> shift == prefix:
                if at == keys.shape[0]:
                    with gil:
                        raise ValueError(f"more than {at} keys of prefix {prefix}")
                keys[at] = key
                at += 1
    return at
