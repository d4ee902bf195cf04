"""The published solver's way to the optimum of a program of blocks: where it ends inside the face of all optima.

The method is that of ``self_dual_embedding.pyx`` (A. Domahidi, E. Chu and S. Boyd, ECC 2013), here with its
second-order cones: their scaling is Nesterov's and Todd's, W = eta * (hyperbolic rotation by a direction), with
W z = s / W. The slow twin is ``tests/reference/rounds/block_path.py``.
"""

cimport cython
from libc.math cimport hypot, isfinite, sqrt
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from fastsim_ext.solvers.block_equations cimport (
    Blocks, blocks_balance, blocks_place, blocks_prices, blocks_solve, blocks_space, blocks_used, blocks_weigh,
)

# These are the numbers of self_dual_embedding.pyx: variables shared by modules are no constants to the compiler.
cdef double TOLERANCE = 1e-8

cdef int STEPS = 100

cdef double KEEP = 0.99

cdef double SHORTEST = 1e-6

cdef double LONGEST = 0.999

cdef double LEAST_AIM = 1e-4

cdef double MOST_KAPPA = 1e6

cdef double MOST_NUMBERS = 1e15  # that any memory may hold; their count is exact


cdef int64_t path_space(const Blocks* of) noexcept nogil:
    """Numbers that the iterates need."""
    return 5 * (of.jobs * of.width + 1) + 12 * (of.linear + 3 * of.cones) + 15 * of.cones


cdef void path_place(BlockPath* path, Blocks* of, double* space) noexcept nogil:
    """Give each array its part of ``space``."""
    cdef int64_t n = of.jobs * of.width + 1, m = of.linear + 3 * of.cones
    path.of, path.columns, path.entries = of, n, m
    path.x, path.miss_x, path.one_x, path.two_x = space, space + n, space + 2 * n, space + 3 * n
    path.rise = space + 4 * n
    space += 5 * n
    path.s, path.z, path.miss_z, path.one_z = space, space + m, space + 2 * m, space + 3 * m
    path.two_z, path.middle, path.linear, path.weight = space + 4 * m, space + 5 * m, space + 6 * m, space + 7 * m
    path.left, path.fall, path.ds, path.dz = space + 8 * m, space + 9 * m, space + 10 * m, space + 11 * m
    path.axes__jab = space + 12 * m
    path.value__ja = path.axes__jab + 9 * of.cones
    path.square__ja = path.value__ja + 3 * of.cones


@cython.cdivision(True)
cdef bint path_optimum(BlockPath* path, double* found__jv) noexcept nogil:
    """Whether the method ends, and if so the columns where it does."""
    cdef int64_t i
    if not path_begin(path):
        return False
    while not path_ended(path):
        if path.steps == STEPS or not path_advance(path):
            return False
    for i in range(path.columns - 1):
        found__jv[i] = path.x[i] / path.of.column__jv[i] / path.tau
    return True


cdef bint path_begin(BlockPath* path) noexcept nogil:
    """Choose the first point; False if the equations are singular."""
    cdef Blocks* of = path.of
    cdef int64_t n = path.columns, m = path.entries, i
    path.steps, path.tau, path.kappa = 0, 1.0, 1.0
    for i in range(of.linear):
        path.weight[i] = 1.0
    memset(path.axes__jab, 0, 9 * of.cones * sizeof(double))
    for i in range(3 * of.cones):
        path.axes__jab[3 * i + i % 3] = path.square__ja[i] = 1.0
    if not blocks_weigh(of, path.weight, path.axes__jab, path.square__ja):
        return False
    memset(path.rise, 0, n * sizeof(double))
    blocks_solve(of, path.rise, of.room, path.x, path.s)
    for i in range(m):
        path.s[i] = -path.s[i]
        path.fall[i] = 0.0
    cones_inside(of, path.s)
    for i in range(n):
        path.rise[i] = -of.cost[i]
    blocks_solve(of, path.rise, path.fall, path.two_x, path.z)
    cones_inside(of, path.z)
    path_update(path)
    return True


@cython.cdivision(True)
cdef void path_update(BlockPath* path) noexcept nogil:
    """Residuals, gap and complementarity of the present point."""
    cdef const Blocks* of = path.of
    cdef int64_t n = path.columns, m = path.entries, i
    blocks_prices(of, path.z, path.miss_x)
    blocks_used(of, path.x, path.miss_z)
    for i in range(n):
        path.miss_x[i] = -path.miss_x[i] - path.tau * of.cost[i]
    for i in range(m):
        path.miss_z[i] = path.s[i] + path.miss_z[i] - path.tau * of.room[i]
    path.worth, path.paid = inner_product(of.cost, path.x, n), inner_product(of.room, path.z, m)
    path.miss_tau = path.kappa + path.worth + path.paid
    path.gap = inner_product(path.s, path.z, m)
    path.mu = (path.gap + path.kappa * path.tau) / <double> (of.linear + of.cones + 1)


@cython.cdivision(True)
cdef bint path_ended(const BlockPath* path) noexcept nogil:
    """Whether residuals and gap are small enough."""
    cdef const Blocks* of = path.of
    cdef int64_t n = path.columns, m = path.entries
    cdef double size_z = max(1.0, norm(of.room, m)) + norm(path.x, n) + norm(path.s, m)
    cdef double size_x = max(1.0, norm(of.cost, n)) + norm(path.z, m)
    cdef double bound = max(max(-path.worth, -path.paid), path.tau) / path.tau
    return (
        path.gap < TOLERANCE * bound
        and norm(path.miss_z, m) < TOLERANCE * size_z * path.tau
        and norm(path.miss_x, n) < TOLERANCE * size_x * path.tau
    )


@cython.cdivision(True)
cdef bint path_advance(BlockPath* path) noexcept nogil:
    """One predictor-corrector step; the predictor's length sets the centring. False if none is possible."""
    cdef Blocks* of = path.of
    cdef int64_t n = path.columns, m = path.entries, i
    cdef double tau = path.tau, kappa = path.kappa, bend, dtau, dkappa, aim, rest, kappa_left, share
    cones_scale(path)
    if not blocks_weigh(of, path.weight, path.axes__jab, path.square__ja):
        return False
    for i in range(n):
        path.rise[i] = -of.cost[i]
    blocks_solve(of, path.rise, of.room, path.one_x, path.one_z)
    bend = kappa / tau - path_worth(of, path.one_x, path.one_z)
    for i in range(m):
        path.fall[i] = path.s[i] - path.miss_z[i]
    blocks_solve(of, path.miss_x, path.fall, path.two_x, path.two_z)
    dtau = (path.miss_tau - kappa + path_worth(of, path.two_x, path.two_z)) / bend
    path_multipliers(path, dtau)
    for i in range(m):
        path.ds[i] = -path.dz[i] - path.middle[i]
    dkappa = -kappa - kappa / tau * dtau
    aim = 1.0 - path_reach(path, dtau, dkappa)
    aim = min(max(aim * aim * aim, LEAST_AIM), 1.0)

    rest = 1.0 - aim
    cones_left(path, aim * path.mu)
    cones_times(path, path.left, path.fall)
    for i in range(m):
        path.fall[i] -= rest * path.miss_z[i]
    for i in range(n):
        path.rise[i] = rest * path.miss_x[i]
    blocks_solve(of, path.rise, path.fall, path.two_x, path.two_z)
    kappa_left = kappa * tau + dkappa * dtau - aim * path.mu
    dtau = (rest * path.miss_tau - kappa_left / tau + path_worth(of, path.two_x, path.two_z)) / bend
    path_multipliers(path, dtau)
    for i in range(m):
        path.ds[i] = -path.left[i] - path.dz[i]
    dkappa = -(kappa_left + kappa * dtau) / tau
    share = KEEP * path_reach(path, dtau, dkappa)
    cones_times(path, path.ds, path.fall)
    for i in range(n):
        path.x[i] += share * (path.two_x[i] + dtau * path.one_x[i])
    for i in range(m):
        path.z[i] += share * path.two_z[i]
        path.s[i] += share * path.fall[i]
    path.tau, path.kappa = tau + share * dtau, kappa + share * dkappa
    path.steps += 1
    path_update(path)
    return isfinite(path.mu) and share > SHORTEST and path.kappa < MOST_KAPPA * path.tau


cdef void path_multipliers(BlockPath* path, double dtau) noexcept nogil:
    """The change of the multipliers in ``two_z``, and scaled in ``dz``."""
    cdef int64_t i
    for i in range(path.entries):
        path.two_z[i] += dtau * path.one_z[i]
    cones_times(path, path.two_z, path.dz)


cdef double path_worth(const Blocks* of, const double* x, const double* z) noexcept nogil:
    """Cost of the columns, and room of the rows priced at these multipliers."""
    return inner_product(of.cost, x, of.jobs * of.width + 1) + inner_product(of.room, z, of.linear + 3 * of.cones)


@cython.cdivision(True)
cdef double path_reach(const BlockPath* path, double dtau, double dkappa) noexcept nogil:
    """Largest step before a slack, a multiplier or a scalar leaves its cone."""
    cdef double fall = max(cones_fall(path, path.ds), cones_fall(path, path.dz))
    fall = max(fall, max(-dtau / path.tau, -dkappa / path.kappa))
    return min(max(1.0 / fall if fall > 0 else LONGEST, SHORTEST), LONGEST)


cdef void cones_inside(const Blocks* of, double* values) noexcept nogil:
    """Move the values along the identity until they are inside, or by little if all are."""
    cdef double lowest = values[0]
    cdef int64_t m = of.linear + 3 * of.cones, i
    for i in range(of.linear):
        lowest = min(lowest, values[i])
    for i in range(of.linear, m, 3):
        lowest = min(lowest, values[i] - hypot(values[i + 1], values[i + 2]))
    lowest = 1.0 - lowest if lowest <= 0 else 1.0 - KEEP
    for i in range(of.linear):
        values[i] += lowest
    for i in range(of.linear, m, 3):
        values[i] += lowest


@cython.cdivision(True)
cdef void cones_scale(BlockPath* path) noexcept nogil:
    """The scaling by slacks and multipliers, and in ``middle`` the vector that both become."""
    cdef const double* s = path.s + path.of.linear
    cdef const double* z = path.z + path.of.linear
    cdef double* axes = path.axes__jab
    cdef double half = sqrt(0.5), size_s, size_z, twice, lead, far, eta
    cdef double turn[2]
    cdef int64_t i, j
    for i in range(path.of.linear):
        path.linear[i] = sqrt(path.s[i] / path.z[i])
        path.weight[i] = path.linear[i] * path.linear[i]
    for j in range(path.of.cones):
        size_s, size_z = cone_size(s), cone_size(z)
        twice = s[0] / size_s * (z[0] / size_z) + s[1] / size_s * (z[1] / size_z) + s[2] / size_s * (z[2] / size_z)
        twice = 2.0 * sqrt(0.5 * (1.0 + twice))
        lead = (s[0] / size_s + z[0] / size_z) / twice
        turn[0], turn[1] = (s[1] / size_s - z[1] / size_z) / twice, (s[2] / size_s - z[2] / size_z) / twice
        far = hypot(turn[0], turn[1])
        # Written as one over the other, the short axis keeps all its digits.
        eta = sqrt(size_s / size_z)
        path.value__ja[3 * j], path.value__ja[3 * j + 1] = eta * (lead + far), eta * (1.0 / (lead + far))
        path.value__ja[3 * j + 2] = eta
        for i in range(3 * j, 3 * j + 3):
            path.square__ja[i] = path.value__ja[i] * path.value__ja[i]
        turn[0], turn[1] = (turn[0] / far, turn[1] / far) if far > 0 else (1.0, 0.0)
        axes[0], axes[1], axes[2] = half, half * turn[0], half * turn[1]
        axes[3], axes[4], axes[5] = half, -half * turn[0], -half * turn[1]
        axes[6], axes[7], axes[8] = 0.0, -turn[1], turn[0]
        axes, s, z = axes + 9, s + 3, z + 3
    cones_times(path, path.z, path.middle)


cdef void cones_times(const BlockPath* path, const double* values, double* scaled) noexcept nogil:
    """The scaling applied."""
    cdef int64_t linear = path.of.linear, i, j, a, b
    cdef const double* axis = path.axes__jab
    cdef double turned
    for i in range(linear):
        scaled[i] = path.linear[i] * values[i]
    memset(scaled + linear, 0, 3 * path.of.cones * sizeof(double))
    for j in range(path.of.cones):
        i = linear + 3 * j
        for a in range(3):
            turned = path.value__ja[3 * j + a]
            turned *= axis[0] * values[i] + axis[1] * values[i + 1] + axis[2] * values[i + 2]
            for b in range(3):
                scaled[i + b] += axis[b] * turned
            axis += 3


@cython.cdivision(True)
cdef void cones_left(BlockPath* path, double aim) noexcept nogil:
    """What, multiplied with ``middle``, is its square and the product of both changes less ``aim``."""
    cdef int64_t i, k
    cdef double middle, both, square
    cdef double by[3]
    cdef const double* a
    cdef const double* b
    cdef const double* c
    for i in range(path.of.linear):
        middle = path.middle[i]
        path.left[i] = (middle * middle + path.ds[i] * path.dz[i] - aim) / middle
    for i in range(path.of.linear, path.entries, 3):
        a, b, c = path.middle + i, path.ds + i, path.dz + i
        by[0] = a[0] * a[0] + a[1] * a[1] + a[2] * a[2] + (b[0] * c[0] + b[1] * c[1] + b[2] * c[2]) - aim
        for k in range(1, 3):
            by[k] = 2.0 * a[0] * a[k] + (b[0] * c[k] + c[0] * b[k])
        both = a[1] * by[1] + a[2] * by[2]
        square = cone_size(a)
        square *= square
        path.left[i] = (a[0] * by[0] - both) / square
        for k in range(1, 3):
            path.left[i + k] = by[k] / a[0] + (both / a[0] - by[0]) / square * a[k]


@cython.cdivision(True)
cdef double cones_fall(const BlockPath* path, const double* change) noexcept nogil:
    """One over the largest step from ``middle`` along ``change`` that stays inside; 0 or less if all do."""
    cdef int64_t linear = path.of.linear, i
    cdef double fall = -change[0] / path.middle[0], size, first, share
    cdef const double* a
    cdef const double* d
    for i in range(linear):
        fall = max(fall, -change[i] / path.middle[i])
    for i in range(linear, path.entries, 3):
        a, d = path.middle + i, change + i
        size = cone_size(a)
        first = a[0] / size * d[0] - (a[1] / size * d[1] + a[2] / size * d[2])
        share = (first + d[0]) / (a[0] / size + 1.0)
        fall = max(fall, (hypot(d[1] - share * (a[1] / size), d[2] - share * (a[2] / size)) - first) / size)
    return fall


cdef double cone_size(const double* a) noexcept nogil:
    """Root of the first squared less the others squared, without cancellation of the squares."""
    cdef double far = hypot(a[1], a[2])
    return sqrt((a[0] - far) * (a[0] + far))


cdef double inner_product(const double* a, const double* b, int64_t n) noexcept nogil:
    """Sum of products."""
    cdef double found = 0.0
    cdef int64_t i
    for i in range(n):
        found += a[i] * b[i]
    return found


cdef double norm(const double* a, int64_t n) noexcept nogil:
    """Euclidean length."""
    return sqrt(inner_product(a, a, n))


def optimum(const double[::1] use__j, const double[::1] gpus__g, const int64_t[::1] job__r,
            const double[:, ::1] row__rv, const double[::1] lift__r, const double[::1] room__r,
            const double[:, ::1] cost__jv, double price, const double[:, ::1] rate__jg, double[:, ::1] found__jv):
    """Whether the method ends, and if so in ``found__jv`` the columns of each job where it does.

    ``job__r`` ascends; ``rate__jg`` has no rows without cones.
    """
    cdef Blocks of
    cdef BlockPath path
    cdef double* space
    cdef double numbers
    cdef bint ended
    cdef int64_t r, j, slot = 0
    of.jobs, of.models, of.rows, of.cones = use__j.shape[0], gpus__g.shape[0], job__r.shape[0], rate__jg.shape[0]
    of.width = of.models + (of.cones > 0)
    if not (
        of.jobs > 0 and of.models > 0 and of.rows > 0 and (of.cones == 0 or of.cones == of.jobs)
        and rate__jg.shape[1] == of.models and row__rv.shape[0] == lift__r.shape[0] == room__r.shape[0] == of.rows
        and cost__jv.shape[0] == found__jv.shape[0] == of.jobs
        and row__rv.shape[1] == cost__jv.shape[1] == found__jv.shape[1] == of.width
    ):
        raise ValueError("the arrays do not fit each other")
    of.slots, of.job__r = 0, &job__r[0]
    for r in range(of.rows):
        if not (0 if r == 0 else job__r[r - 1]) <= job__r[r] < of.jobs:
            raise ValueError("rows are not those of the jobs in their order")
        slot = slot + 1 if r > 0 and job__r[r] == job__r[r - 1] else 1
        of.slots = max(of.slots, slot)
    of.size = of.width + of.slots + (3 if of.cones else 0)
    of.linear = of.jobs * of.models + of.rows + of.models
    numbers = <double> of.jobs * <double> of.size * <double> of.size
    space = NULL
    if numbers < MOST_NUMBERS:
        space = <double*> malloc((blocks_space(&of) + path_space(&of)) * sizeof(double))
    if space == NULL:
        raise MemoryError()
    with nogil:
        blocks_place(&of, space)
        path_place(&path, &of, space + blocks_space(&of))
        memcpy(of.row__rv, &row__rv[0, 0], of.rows * of.width * sizeof(double))
        memcpy(of.lift__r, &lift__r[0], of.rows * sizeof(double))
        memcpy(of.cost, &cost__jv[0, 0], of.jobs * of.width * sizeof(double))
        of.cost[of.jobs * of.width] = price
        for j in range(of.jobs):
            for r in range(j * of.models, (j + 1) * of.models):
                of.own__jg[r], of.gpus__jg[r], of.room[r] = 1.0, use__j[j], 0.0
        memcpy(of.room + of.jobs * of.models, &room__r[0], of.rows * sizeof(double))
        memcpy(of.room + of.jobs * of.models + of.rows, &gpus__g[0], of.models * sizeof(double))
        if of.cones:
            memcpy(of.rate__jg, &rate__jg[0, 0], of.cones * of.models * sizeof(double))
        for r in range(of.cones):
            of.time__j[r] = 1.0
            of.room[of.linear + 3 * r] = of.room[of.linear + 3 * r + 1] = 0.0
            of.room[of.linear + 3 * r + 2] = 2.0
        blocks_balance(&of)
        ended = path_optimum(&path, &found__jv[0, 0])
        free(space)
    return ended
