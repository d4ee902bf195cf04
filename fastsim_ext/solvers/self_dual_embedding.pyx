"""A linear program by the homogeneous self-dual embedding, and arithmetic of small dense matrices.

The steps are those of ``fastsim/policies/solvers/interior_point.py``, without numpy; that module explains the numbers.
"""

cimport cython
from libc.math cimport fabs, isfinite, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

cdef double TOLERANCE = 1e-8

cdef int STEPS = 100

cdef double KEEP = 0.99

cdef double SHORTEST = 1e-6

cdef double LONGEST = 0.999

cdef double LEAST_AIM = 1e-4

cdef double MOST_KAPPA = 1e6

cdef double DAMPING = 7e-8

cdef int BALANCINGS = 3

cdef double EVEN = 1e-6


cdef int embedding_space(int columns, int rows) noexcept nogil:
    """Numbers that ``embedding_optimum`` works in."""
    return 7 * columns + 10 * (columns + rows)


@cython.cdivision(True)
cdef bint embedding_optimum(const Program* of, double* space, double* x, double* level) noexcept nogil:
    """Whether the method ends, and if so the columns and the level where it does."""
    cdef Path path
    cdef int i
    embedding_begin(&path, of, space)
    while not embedding_ended(&path):
        if path.steps == STEPS or not embedding_advance(&path):
            return False
    for i in range(of.columns):
        x[i] = path.x[i] / path.tau
    level[0] = path.level / path.tau
    return True


@cython.cdivision(True)
cdef void embedding_begin(Path* path, const Program* of, double* space) noexcept nogil:
    """Choose scales and the first point."""
    cdef int n = of.columns, m = of.columns + of.rows, i
    cdef double size = 0.0
    path.of, path.steps, path.tau, path.kappa = of, 0, 1.0, 1.0
    path.column, path.damping, path.x = space, space + n, space + 2 * n
    path.miss_x, path.one_x, path.two_x, path.rise = space + 3 * n, space + 4 * n, space + 5 * n, space + 6 * n
    space += 7 * n
    path.row, path.s, path.z, path.miss_z = space, space + m, space + 2 * m, space + 3 * m
    path.weight, path.one_z, path.two_z = space + 4 * m, space + 5 * m, space + 6 * m
    path.left, path.fall, path.room = space + 7 * m, space + 8 * m, space + 9 * m
    path.degree = 1.0
    for i in range(m):
        path.degree += of.count[i]
        path.room[i] = of.room[i - n] if i >= n else 0.0
    embedding_balance(path)
    for i in range(n):
        path.damping[i] = DAMPING * path.column[i] * path.column[i]
        path.rise[i] = 0.0
    for i in range(m):
        path.left[i] = path.row[i] * path.row[i]
    embedding_weigh(path, path.left)
    path.level = of.solve(of.of, path.rise, 0.0, path.room, path.x, path.one_z)
    for i in range(m):
        path.s[i] = -path.one_z[i] * path.row[i]
    embedding_inside(path.s, m)
    for i in range(m):
        path.s[i] *= path.row[i]
        path.left[i] = 0.0
    of.solve(of.of, of.cost, of.gain, path.left, path.two_x, path.z)
    for i in range(m):
        path.z[i] *= path.row[i]
    embedding_inside(path.z, m)
    path.aims = of.gain != 0
    for i in range(n):
        path.aims = path.aims or of.cost[i] != 0
        size += of.count[i] * (of.cost[i] / path.column[i]) * (of.cost[i] / path.column[i])
    path.cost_size = max(1.0, sqrt(size + of.gain / path.level_scale * (of.gain / path.level_scale)))
    size = 0.0
    for i in range(m):
        path.z[i] /= path.row[i]
        size += of.count[i] * (path.room[i] / path.row[i]) * (path.room[i] / path.row[i])
    path.room_size = max(1.0, sqrt(size))
    embedding_update(path)


cdef void embedding_balance(Path* path) noexcept nogil:
    """Scales of columns, level and rows that bring the largest entries of all of them towards 1."""
    cdef const Program* of = path.of
    cdef int n = of.columns, m = of.columns + of.rows, i, _step
    cdef double by_level
    path.level_scale = 1.0
    for i in range(n):
        path.column[i] = 1.0
    for i in range(m):
        path.row[i] = 1.0
    for _step in range(BALANCINGS):
        by_level = of.largest(of.of, path.column, path.level_scale, path.row, path.one_x, path.one_z)
        for i in range(n):
            if path.one_x[i] >= EVEN:
                path.column[i] *= sqrt(path.one_x[i])
        for i in range(m):
            if path.one_z[i] >= EVEN:
                path.row[i] *= sqrt(path.one_z[i])
        if by_level >= EVEN:
            path.level_scale *= sqrt(by_level)


cdef void embedding_inside(double* values, int n) noexcept nogil:
    """Move the values by one constant, so that the least is 1, or by little if all are positive."""
    cdef double lowest = values[0]
    cdef int i
    for i in range(n):
        lowest = min(lowest, values[i])
    for i in range(n):
        values[i] += 1.0 - lowest if lowest <= 0 else 1.0 - KEEP


cdef void embedding_weigh(Path* path, const double* ratio) noexcept nogil:
    """Make Newton's equations with these ratios of slack to multiplier ready."""
    cdef int i
    for i in range(path.of.columns + path.of.rows):
        path.weight[i] = ratio[i] + DAMPING * path.row[i] * path.row[i]
    path.of.weigh(path.of.of, path.weight, path.damping, DAMPING * path.level_scale * path.level_scale)


@cython.cdivision(True)
cdef void embedding_update(Path* path) noexcept nogil:
    """Residuals, both objectives, and the complementarity gap of the present point."""
    cdef const Program* of = path.of
    cdef int n = of.columns, m = of.columns + of.rows, i
    cdef double price_level = of.prices(of.of, path.z, path.miss_x)
    of.used(of.of, path.x, path.level, path.miss_z + n)
    path.worth = embedding_worth(path, path.x, path.level)
    path.price = embedding_price(path, path.z)
    path.miss_level = of.gain * path.tau - price_level
    path.miss_tau = path.kappa - path.worth + path.price
    path.gap = 0.0
    for i in range(n):
        path.miss_x[i] = of.cost[i] * path.tau - path.miss_x[i]
        path.miss_z[i] = -path.x[i]
    for i in range(m):
        path.miss_z[i] += path.s[i] - path.room[i] * path.tau
        path.gap += of.count[i] * (path.s[i] * path.z[i])
    path.mu = (path.gap + path.kappa * path.tau) / path.degree


cdef double embedding_worth(const Path* path, const double* x, double level) noexcept nogil:
    """Primal objective: cost of the columns and gain of the level."""
    cdef double worth = path.of.gain * level
    cdef int i
    for i in range(path.of.columns):
        worth += path.of.count[i] * path.of.cost[i] * x[i]
    return worth


cdef double embedding_price(const Path* path, const double* z) noexcept nogil:
    """Dual objective: room of the rows, priced at these multipliers."""
    cdef double price = 0.0
    cdef int i
    for i in range(path.of.columns, path.of.columns + path.of.rows):
        price += path.of.count[i] * path.room[i] * z[i]
    return price


@cython.cdivision(True)
cdef bint embedding_ended(const Path* path) noexcept nogil:
    """Whether residuals and gap are small enough, relative to the balanced program's numbers."""
    cdef const Program* of = path.of
    cdef int n = of.columns, i
    cdef double size_x = path.level * path.level_scale, size_s = 0.0, size_z = 0.0
    cdef double primal = 0.0, dual = path.miss_level / path.level_scale, entry
    # Without an objective there is nothing to be relative to.
    if path.gap >= TOLERANCE * (path.worth / path.tau if path.aims else 1.0) or path.kappa >= path.tau:
        return False
    size_x, dual = size_x * size_x, dual * dual
    for i in range(n):
        entry = path.x[i] * path.column[i]
        size_x += of.count[i] * entry * entry
        entry = path.miss_x[i] / path.column[i]
        dual += of.count[i] * entry * entry
    for i in range(n + of.rows):
        entry = path.s[i] / path.row[i]
        size_s += of.count[i] * entry * entry
        entry = path.z[i] * path.row[i]
        size_z += of.count[i] * entry * entry
        entry = path.miss_z[i] / path.row[i]
        primal += of.count[i] * entry * entry
    primal = sqrt(primal) / (path.room_size + sqrt(size_x) + sqrt(size_s)) / path.tau
    dual = sqrt(dual) / (path.cost_size + sqrt(size_z)) / path.tau
    return primal < TOLERANCE and dual < TOLERANCE


@cython.cdivision(True)
cdef double embedding_reach(double fall, double dtau, double dkappa) noexcept nogil:
    """Largest step, where ``fall`` is the steepest relative fall of a slack or multiplier."""
    fall = max(fall, -dtau, -dkappa)
    return min(max(1.0 / fall if fall > 0 else LONGEST, SHORTEST), LONGEST)


@cython.cdivision(True)
cdef bint embedding_advance(Path* path) noexcept nogil:
    """One predictor-corrector step; the predictor's length sets the centring. False if the method gets stuck."""
    cdef const Program* of = path.of
    cdef int n = of.columns, m = of.columns + of.rows, i
    cdef double tau = path.tau, kappa = path.kappa, fall = 0.0, two_level, bend, dtau, dkappa, dz, ds
    cdef double aim, rest, kappa_left, step
    for i in range(m):
        path.left[i] = path.s[i] / path.z[i]
    embedding_weigh(path, path.left)
    path.one_level = of.solve(of.of, of.cost, of.gain, path.room, path.one_x, path.one_z)
    bend = kappa / tau + embedding_worth(path, path.one_x, path.one_level) - embedding_price(path, path.one_z)
    for i in range(m):
        path.left[i] = path.s[i] - path.miss_z[i]
    two_level = of.solve(of.of, path.miss_x, path.miss_level, path.left, path.two_x, path.two_z)
    dtau = path.miss_tau - kappa - embedding_worth(path, path.two_x, two_level) + embedding_price(path, path.two_z)
    dtau /= bend
    for i in range(m):
        dz = (path.two_z[i] + dtau * path.one_z[i]) / path.z[i]
        fall = max(fall, 1.0 + dz, -dz)
        path.left[i] = dz
    dkappa = -kappa - kappa / tau * dtau
    aim = 1.0 - embedding_reach(fall, dtau / tau, dkappa / kappa)
    aim = min(max(aim * aim * aim, LEAST_AIM), 1.0)

    rest = 1.0 - aim
    for i in range(n):
        path.rise[i] = rest * path.miss_x[i]
    for i in range(m):
        dz = path.left[i]
        path.left[i] = path.s[i] + path.s[i] * (-dz - 1.0) * dz - aim * path.mu / path.z[i]
        path.fall[i] = path.left[i] - rest * path.miss_z[i]
    kappa_left = kappa * tau + dkappa * dtau - aim * path.mu
    two_level = of.solve(of.of, path.rise, rest * path.miss_level, path.fall, path.two_x, path.two_z)
    dtau = rest * path.miss_tau - kappa_left / tau
    dtau -= embedding_worth(path, path.two_x, two_level) - embedding_price(path, path.two_z)
    dtau /= bend
    dkappa = -(kappa_left + kappa * dtau) / tau
    fall = 0.0
    for i in range(m):
        dz = path.two_z[i] + dtau * path.one_z[i]
        ds = -path.left[i] - path.s[i] / path.z[i] * dz
        fall = max(fall, -ds / path.s[i], -dz / path.z[i])
        path.two_z[i], path.left[i] = dz, ds
    step = KEEP * embedding_reach(fall, dtau / tau, dkappa / kappa)
    for i in range(n):
        path.x[i] += step * (path.two_x[i] + dtau * path.one_x[i])
    for i in range(m):
        path.s[i] += step * path.left[i]
        path.z[i] += step * path.two_z[i]
    path.level += step * (two_level + dtau * path.one_level)
    path.tau, path.kappa = tau + step * dtau, kappa + step * dkappa
    path.steps += 1
    embedding_update(path)
    return isfinite(path.mu) and step > SHORTEST and path.kappa < MOST_KAPPA * path.tau


@cython.cdivision(True)
cdef void dense_factor(double* a, int n) noexcept nogil:
    """Factor the symmetric ``a`` in place: the pivots, and right of each its row after elimination.

    Without square roots and without exchanges: the matrices are positive but for rounding. A pivot of 0 makes
    infinities, in the checked build too; ``embedding_advance`` then returns False.
    """
    cdef int k, i, j
    cdef double part
    cdef double* pivot
    cdef double* row
    for k in range(n):
        pivot = a + k * n
        for i in range(k + 1, n):
            part = pivot[i] / pivot[k]
            if part == 0:
                continue
            row = a + i * n
            for j in range(i, n):
                row[j] -= part * pivot[j]


@cython.cdivision(True)
cdef void dense_solve(const double* a, int n, double* b) noexcept nogil:
    """Replace ``b`` by the solution for a factored matrix."""
    cdef int k, j
    cdef double part
    cdef const double* row
    for k in range(n):
        row = a + k * n
        part = b[k] / row[k]
        for j in range(k + 1, n):
            b[j] -= part * row[j]
    for k in range(n - 1, -1, -1):
        row = a + k * n
        part = b[k]
        for j in range(k + 1, n):
            part -= row[j] * b[j]
        b[k] = part / row[k]


@cython.cdivision(True)
cdef bint dense_inverse(double* a, int64_t n, double* left) noexcept nogil:
    """Replace ``a`` by its inverse, by elimination with exchange of rows; False if a pivot is 0."""
    cdef int64_t k, i, j, best
    cdef double part
    memcpy(left, a, n * n * sizeof(double))
    memset(a, 0, n * n * sizeof(double))
    for k in range(n):
        a[k * n + k] = 1.0
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if fabs(left[i * n + k]) > fabs(left[best * n + k]):
                best = i
        if left[best * n + k] == 0:
            return False
        if best != k:
            for j in range(n):
                left[k * n + j], left[best * n + j] = left[best * n + j], left[k * n + j]
                a[k * n + j], a[best * n + j] = a[best * n + j], a[k * n + j]
        for i in range(k + 1, n):
            part = left[i * n + k] / left[k * n + k]
            if part == 0:  # many pairs of a row and a column have nothing in common
                continue
            for j in range(k + 1, n):
                left[i * n + j] -= part * left[k * n + j]
            for j in range(n):
                a[i * n + j] -= part * a[k * n + j]
    for k in range(n - 1, -1, -1):
        for i in range(k + 1, n):
            part = left[k * n + i]
            if part == 0:
                continue
            for j in range(n):
                a[k * n + j] -= part * a[i * n + j]
        for j in range(n):
            a[k * n + j] /= left[k * n + k]
    return True


cdef void dense_product(const double* a, int64_t rows, int64_t columns, const double* b,
                        double* product) noexcept nogil:
    """Product of a matrix and a vector."""
    cdef int64_t i, k
    cdef double part
    for i in range(rows):
        part = 0.0
        for k in range(columns):
            part += a[i * columns + k] * b[k]
        product[i] = part
