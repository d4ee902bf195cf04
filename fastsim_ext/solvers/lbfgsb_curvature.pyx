"""Curvature of a function, from the last steps of a search, in the compact form of limited memory.

    B = scale I - W M W',  W = [changes of slope, scale * steps]

after R. H. Byrd, J. Nocedal and R. B. Schnabel, Mathematical Programming 63 (1994). M is never formed: its inverse has
triangular factors. Sums go in the order of the library that made the recordings of Sia: where a search ends early, last
bits decide where.
"""

from libc.math cimport fma, sqrt
from libc.string cimport memmove

cdef enum:
    BLOCK = 16           # sums of so many terms go in lanes


cdef double curvature_dot(const double* a, const double* b, int count) noexcept nogil:
    """The sum of products; sixteen of them in four groups of four, two lanes at a time."""
    cdef double total = 0.0
    cdef double[2] lane
    cdef double[4] group
    cdef int i = 0, k, side
    if count >= BLOCK:
        for side in range(2):
            for k in range(4):
                i = 4 * k + side
                group[k] = a[i] * b[i] + a[i + 2] * b[i + 2]
            lane[side] = (group[0] + group[1]) + (group[2] + group[3])
        total = lane[0] + lane[1]
        i = BLOCK
    while i < count:
        total += a[i] * b[i]
        i += 1
    return total


cdef void curvature_add(double factor, const double* a, double* b, int count) noexcept nogil:
    """Add ``factor * a`` to b; a block of sixteen is rounded once."""
    cdef int i = 0
    if count >= BLOCK:
        for i in range(BLOCK):
            b[i] = fma(factor, a[i], b[i])
        i = BLOCK
    while i < count:
        b[i] += factor * a[i]
        i += 1


cdef bint curvature_factor(double* a, int stride, int count) noexcept nogil:
    """Cholesky's factor in the place of the upper triangle, whose columns follow each other; False if there is none."""
    cdef double* column
    cdef double value, rest
    cdef int j, k
    for j in range(count):
        column = a + j * stride
        rest = 0.0
        for k in range(j):
            value = (column[k] - curvature_dot(a + k * stride, column, k)) / a[k * stride + k]
            column[k] = value
            rest += value * value
        rest = column[j] - rest
        if rest <= 0:
            return False
        column[j] = sqrt(rest)
    return True


cdef bint curvature_forward(const double* a, int stride, int count, double* b) noexcept nogil:
    """Solve ``A' x = b`` in place, A upper triangular; False if it cannot be."""
    cdef int j
    for j in range(count):
        if a[j * stride + j] == 0:
            return False
    for j in range(count):
        b[j] = (b[j] - curvature_dot(a + j * stride, b, j)) / a[j * stride + j]
    return True


cdef bint curvature_backward(const double* a, int stride, int count, double* b) noexcept nogil:
    """Solve ``A x = b`` in place, A upper triangular; False if it cannot be."""
    cdef int j
    for j in range(count):
        if a[j * stride + j] == 0:
            return False
    for j in range(count - 1, -1, -1):
        b[j] /= a[j * stride + j]
        curvature_add(-b[j], a + j * stride, b, j)
    return True


cdef void curvature_forget(Curvature* known) noexcept nogil:
    """Drop all steps: the curvature is the unit matrix."""
    known.pairs = 0
    known.scale = 1.0


cdef void curvature_drop_oldest(Curvature* known) noexcept nogil:
    cdef int j
    memmove(known.step__pv[0], known.step__pv[1], (PAIRS - 1) * sizeof(known.step__pv[0]))
    memmove(known.turn__pv[0], known.turn__pv[1], (PAIRS - 1) * sizeof(known.turn__pv[0]))
    for j in range(PAIRS - 1):
        memmove(known.across__pp[j], &known.across__pp[j + 1][1], (PAIRS - 1) * sizeof(double))
        memmove(known.along__pp[j], &known.along__pp[j + 1][1], (PAIRS - 1) * sizeof(double))
    known.pairs = PAIRS - 1


cdef bint curvature_learn(Curvature* known, const double* step, const double* turn, double across,
                          double along) noexcept nogil:
    """Add a step, the change of slopes along it, and two of their products; False if B is not positive definite."""
    cdef int n = known.variables, j, last
    if known.pairs == PAIRS:
        curvature_drop_oldest(known)
    last = known.pairs
    known.pairs += 1
    for j in range(n):
        known.step__pv[last][j] = step[j]
        known.turn__pv[last][j] = turn[j]
    known.scale = curvature_dot(turn, turn, n) / across
    for j in range(last):
        known.across__pp[last][j] = curvature_dot(step, known.turn__pv[j], n)
        known.along__pp[j][last] = curvature_dot(known.step__pv[j], step, n)
    known.along__pp[last][last] = along
    known.across__pp[last][last] = across
    return curvature_rooted(known)


cdef bint curvature_rooted(Curvature* known) noexcept nogil:
    cdef double total
    cdef int i, j, k
    for i in range(known.pairs):
        for j in range(i, known.pairs):
            total = 0.0
            for k in range(i):
                total += known.across__pp[i][k] * known.across__pp[j][k] / known.across__pp[k][k]
            known.root__pp[j][i] = total + known.scale * known.along__pp[i][j]
    return curvature_factor(known.root__pp[0], PAIRS, known.pairs)


cdef bint curvature_middle(const Curvature* known, const double* value, double* product) noexcept nogil:
    """M times a vector of two numbers for each pair: first those of changes of slope, then those of steps."""
    cdef int pairs = known.pairs, i, k
    cdef double total
    cdef double* steps = product + pairs
    for i in range(pairs):
        total = 0.0
        for k in range(i):
            total += known.across__pp[i][k] * value[k] / known.across__pp[k][k]
        steps[i] = value[pairs + i] + total
    if not curvature_forward(known.root__pp[0], PAIRS, pairs, steps):
        return False
    for i in range(pairs):
        product[i] = value[i] / sqrt(known.across__pp[i][i])
    if not curvature_backward(known.root__pp[0], PAIRS, pairs, steps):
        return False
    for i in range(pairs):
        product[i] = -product[i] / sqrt(known.across__pp[i][i])
    for i in range(pairs):
        total = 0.0
        for k in range(i + 1, pairs):
            total += known.across__pp[k][i] * steps[k] / known.across__pp[i][i]
        product[i] += total
    return True
