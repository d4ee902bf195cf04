"""Newton's equations of cone programs whose jobs meet only in the GPUs and in one level.

    minimise  cost . x + price * level   so that   x_jg >= 0,   sum over j of use_j * x_jg <= gpus_g
    row r:  coefficient_r . x_j(r) + lift_r * level <= room_r          cone of j:  (rate_j . x_j) * time_j >= 1

``time_j`` is one more column of a job with a cone, and the cone the second-order one of
(rate + time, rate - time, 2). The equations are a small matrix for each job and one of GPU models and level. Rows and
columns are divided by roots of their largest entries first. ``tests/reference/rounds/block_equations.py``, the slow
twin, explains the steps.
"""

cimport cython
from libc.math cimport fabs, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset
from fastsim_ext.solvers.self_dual_embedding cimport dense_inverse, dense_product

cdef double DAMPING = 7e-8

cdef int BALANCINGS = 3

cdef double EVEN = 1e-6


cdef int64_t blocks_space(const Blocks* of) noexcept nogil:
    """Numbers that the equations work in, those of the program included."""
    cdef int64_t ends = of.models + 1, cells = of.jobs * of.models
    return (
        2 * of.rows + of.rows * of.width + 2 * of.jobs * of.width + 1 + 2 * cells + of.cones * (of.models + 13)
        + 2 * of.linear + of.jobs * of.size * (of.size + ends + 2) + ends * ends + 2 * ends + of.size * (of.size + 1)
    )


cdef void blocks_place(Blocks* of, double* space) noexcept nogil:
    """Give each array its part of ``space``, and each row its place."""
    cdef int64_t ends = of.models + 1, r
    of.place__r = <int64_t*> space
    of.row__rv = space + of.rows
    of.lift__r = of.row__rv + of.rows * of.width
    of.column__jv = of.lift__r + of.rows
    of.cost = of.column__jv + of.jobs * of.width
    of.own__jg = of.cost + of.jobs * of.width + 1
    of.gpus__jg = of.own__jg + of.jobs * of.models
    of.rate__jg = of.gpus__jg + of.jobs * of.models
    of.time__j = of.rate__jg + of.cones * of.models
    of.axes__jab = of.time__j + of.cones
    of.room = of.axes__jab + 9 * of.cones
    of.linear_by = of.room + of.linear + 3 * of.cones
    of.inverse__jss = of.linear_by + of.linear
    of.reach__jsk = of.inverse__jss + of.jobs * of.size * of.size
    of.side__js = of.reach__jsk + of.jobs * of.size * ends
    of.inner__js = of.side__js + of.jobs * of.size
    of.middle__kk = of.inner__js + of.jobs * of.size
    of.end__k = of.middle__kk + ends * ends
    of.even__s = of.end__k + 2 * ends
    of.spare__ss = of.even__s + of.size
    for r in range(of.rows):
        if r > 0 and of.job__r[r] == of.job__r[r - 1]:
            of.place__r[r] = of.place__r[r - 1] + 1
        else:
            of.place__r[r] = of.job__r[r] * of.size + of.width


cdef inline double entry_root(double largest) noexcept nogil:
    """Root of a largest entry; 1 where there is as good as none."""
    return 1.0 if largest < EVEN else sqrt(largest)


cdef void blocks_largest(const Blocks* of, double* by__jv, double* by__g) noexcept nogil:
    """Largest entries of each column and of the GPUs of each model."""
    cdef int64_t models = of.models, width = of.width, r, j, g, v
    cdef double* by
    memset(by__jv, 0, of.jobs * width * sizeof(double))
    memset(by__g, 0, models * sizeof(double))
    for r in range(of.rows):
        by = by__jv + of.job__r[r] * width
        for v in range(width):
            by[v] = max(by[v], fabs(of.row__rv[r * width + v]))
    for j in range(of.jobs):
        by = by__jv + j * width
        for g in range(models):
            by__g[g] = max(by__g[g], of.gpus__jg[j * models + g])
            by[g] = max(by[g], max(of.gpus__jg[j * models + g], of.own__jg[j * models + g]))
            if of.cones:
                by[g] = max(by[g], of.rate__jg[j * models + g])
        if of.cones:
            by[models] = max(by[models], of.time__j[j])


@cython.cdivision(True)
cdef void blocks_balance(Blocks* of) noexcept nogil:
    """Divide rows and columns by the roots of their largest entries, a few times over.

    Costs, rows, GPUs and rates are those of the program before, and the balanced ones after.
    """
    cdef int64_t models = of.models, width = of.width, columns = of.jobs * of.width, r, j, g, v
    cdef int _step
    cdef double* by__jv = of.side__js
    cdef double* by__g = of.end__k
    cdef double* room__r = of.room + of.jobs * models
    cdef double* room__g = room__r + of.rows
    cdef double by_level, by
    of.level = 1.0
    for v in range(columns):
        of.column__jv[v] = 1.0
    for _step in range(BALANCINGS):
        blocks_largest(of, by__jv, by__g)
        by_level = 0.0
        for r in range(of.rows):
            by_level = max(by_level, fabs(of.lift__r[r]))
        by_level = entry_root(by_level)
        for v in range(columns):
            by__jv[v] = entry_root(by__jv[v])
            of.column__jv[v] *= by__jv[v]
            of.cost[v] /= by__jv[v]
        for g in range(models):
            by__g[g] = entry_root(by__g[g])
            room__g[g] /= by__g[g]
        of.level *= by_level
        of.cost[columns] /= by_level
        for r in range(of.rows):
            by = fabs(of.lift__r[r])
            for v in range(width):
                by = max(by, fabs(of.row__rv[r * width + v]))
            by = entry_root(by)
            for v in range(width):
                of.row__rv[r * width + v] = of.row__rv[r * width + v] / by__jv[of.job__r[r] * width + v] / by
            of.lift__r[r] = of.lift__r[r] / by_level / by
            room__r[r] /= by
        for j in range(of.jobs):
            for g in range(models):
                v = j * models + g
                of.own__jg[v] = of.own__jg[v] / by__jv[j * width + g] / entry_root(of.own__jg[v])
                of.gpus__jg[v] = of.gpus__jg[v] / by__jv[j * width + g] / by__g[g]
            if of.cones:
                blocks_balance_cone(of, j, by__jv + j * width)


@cython.cdivision(True)
cdef void blocks_balance_cone(Blocks* of, int64_t j, const double* by__v) noexcept nogil:
    """Divide the rows of a cone by their one root: they count as their sum, and two of them have entries."""
    cdef double* rate = of.rate__jg + j * of.models
    cdef double by = of.time__j[j]
    cdef int64_t g
    for g in range(of.models):
        by = max(by, rate[g])
    by = entry_root(2.0 * by)
    for g in range(of.models):
        rate[g] = rate[g] / by__v[g] / by
    of.time__j[j] = of.time__j[j] / by__v[of.models] / by
    of.room[of.linear + 3 * j + 2] /= by


cdef void blocks_used(const Blocks* of, const double* x, double* rows) noexcept nogil:
    """The left sides of all rows; a cone's are those below zero."""
    cdef int64_t models = of.models, width = of.width, r, j, g, v
    cdef double* row = rows + of.jobs * models
    cdef double* gpus = row + of.rows
    cdef double* cone = gpus + models
    cdef const double* share
    cdef double rate, time
    memset(gpus, 0, models * sizeof(double))
    for r in range(of.rows):
        share = x + of.job__r[r] * width
        row[r] = of.lift__r[r] * x[of.jobs * width]
        for v in range(width):
            row[r] += of.row__rv[r * width + v] * share[v]
    for j in range(of.jobs):
        share = x + j * width
        for g in range(models):
            rows[j * models + g] = -of.own__jg[j * models + g] * share[g]
            gpus[g] += of.gpus__jg[j * models + g] * share[g]
        if of.cones:
            rate, time = 0.0, of.time__j[j] * share[models]
            for g in range(models):
                rate += of.rate__jg[j * models + g] * share[g]
            cone[3 * j], cone[3 * j + 1], cone[3 * j + 2] = -rate - time, time - rate, 0.0


cdef void blocks_prices(const Blocks* of, const double* z, double* x) noexcept nogil:
    """The prices of columns and level at the multipliers."""
    cdef int64_t models = of.models, width = of.width, level = of.jobs * of.width, r, j, g, v
    cdef const double* row = z + of.jobs * models
    cdef const double* gpus = row + of.rows
    cdef const double* cone = gpus + models
    cdef double* price
    memset(x, 0, (level + 1) * sizeof(double))
    for r in range(of.rows):
        price = x + of.job__r[r] * width
        x[level] += of.lift__r[r] * row[r]
        for v in range(width):
            price[v] += of.row__rv[r * width + v] * row[r]
    for j in range(of.jobs):
        price = x + j * width
        for g in range(models):
            price[g] += of.gpus__jg[j * models + g] * gpus[g] - of.own__jg[j * models + g] * z[j * models + g]
            if of.cones:
                price[g] -= of.rate__jg[j * models + g] * (cone[3 * j] + cone[3 * j + 1])
        if of.cones:
            price[models] += of.time__j[j] * (cone[3 * j + 1] - cone[3 * j])


@cython.cdivision(True)
cdef bint blocks_weigh(Blocks* of, const double* weight, const double* axes__jab,
                       const double* value__ja) noexcept nogil:
    """Set the weights: of linear rows, and of each cone by principal axes (a row each) and their values.

    False if a block, or the matrix of GPU models and level, is singular.
    """
    cdef int64_t models = of.models, ends = models + 1, size = of.size, own = of.jobs * models, r, i, a, b
    cdef double* row_by = of.linear_by + own
    cdef double* gpus_by = row_by + of.rows
    cdef double* inverse
    cdef double* reach
    for i in range(of.linear):
        of.linear_by[i] = 1.0 / (weight[i] + DAMPING)
    for r in range(of.rows):
        row_by[r] = sqrt(row_by[r])
    for i in range(3 * of.cones):
        for b in range(3):
            of.axes__jab[3 * i + b] = axes__jab[3 * i + b] / sqrt(value__ja[i] + DAMPING)
    blocks_fill(of, row_by)
    memset(of.middle__kk, 0, ends * ends * sizeof(double))
    for a in range(models):
        of.middle__kk[a * ends + a] = -1.0 / gpus_by[a]
    of.middle__kk[ends * ends - 1] = DAMPING
    for i in range(of.jobs):
        inverse, reach = of.inverse__jss + i * size * size, of.reach__jsk + i * size * ends
        if not even_inverse(inverse, size, of.even__s, of.spare__ss):
            return False
        for a in range(size):
            for b in range(models):
                reach[a * ends + b] = inverse[a * size + b] * of.gpus__jg[i * models + b]
            reach[a * ends + models] = 0.0
    for r in range(of.rows):
        i = of.job__r[r]
        inverse, reach = of.inverse__jss + i * size * size, of.reach__jsk + i * size * ends
        for a in range(size):
            reach[a * ends + models] += inverse[a * size + of.place__r[r] - i * size] * (of.lift__r[r] * row_by[r])
    for i in range(of.jobs):
        for a in range(models):
            for b in range(ends):
                of.middle__kk[a * ends + b] -= of.gpus__jg[i * models + a] * of.reach__jsk[(i * size + a) * ends + b]
    for r in range(of.rows):
        for b in range(ends):
            of.middle__kk[models * ends + b] -= of.lift__r[r] * row_by[r] * of.reach__jsk[of.place__r[r] * ends + b]
    return dense_inverse(of.middle__kk, ends, of.spare__ss)


cdef void blocks_fill(Blocks* of, const double* row_by) noexcept nogil:
    """The matrix of each job, where its inverse will be: columns, rows, axes of its cone."""
    cdef int64_t models = of.models, size = of.size, first = of.width + of.slots, r, j, i, a, v
    cdef double* block
    cdef const double* axis
    memset(of.inverse__jss, 0, of.jobs * size * size * sizeof(double))
    for j in range(of.jobs):
        block = of.inverse__jss + j * size * size
        for v in range(of.width):
            block[v * size + v] = DAMPING
        for v in range(models):
            i = j * models + v
            block[v * size + v] += of.own__jg[i] * of.own__jg[i] * of.linear_by[i]
        for v in range(of.width, size):
            block[v * size + v] = -1.0
        for a in range(size - first):
            axis = of.axes__jab + 9 * j + 3 * a
            for v in range(models):
                block[(first + a) * size + v] = (-axis[0] - axis[1]) * of.rate__jg[j * models + v]
            block[(first + a) * size + models] = (axis[1] - axis[0]) * of.time__j[j]
    for r in range(of.rows):
        for v in range(of.width):
            of.inverse__jss[of.place__r[r] * size + v] = of.row__rv[r * of.width + v] * row_by[r]
    for j in range(of.jobs):
        block = of.inverse__jss + j * size * size
        for a in range(of.width, size):
            for v in range(of.width):
                block[v * size + a] = block[a * size + v]


cdef void blocks_solve(Blocks* of, const double* rise, const double* fall, double* x, double* z) noexcept nogil:
    """x and z with ``prices(z) + damping * x = rise`` and ``used(x) - (weight + damping) * z = fall``."""
    cdef int64_t models = of.models, ends = models + 1, size = of.size, own = of.jobs * models, r, j, i, k
    cdef const double* row_by = of.linear_by + own
    cdef double* end = of.end__k + ends
    cdef double* inner
    blocks_sides(of, rise, fall)
    memcpy(of.end__k, fall + own + of.rows, models * sizeof(double))
    of.end__k[models] = rise[of.jobs * of.width]
    for j in range(of.jobs):
        inner = of.inner__js + j * size
        dense_product(of.inverse__jss + j * size * size, size, size, of.side__js + j * size, inner)
        for k in range(models):
            of.end__k[k] -= of.gpus__jg[j * models + k] * inner[k]
    for r in range(of.rows):
        of.end__k[models] -= of.lift__r[r] * row_by[r] * of.inner__js[of.place__r[r]]
    dense_product(of.middle__kk, ends, ends, of.end__k, end)
    dense_product(of.reach__jsk, of.jobs * size, ends, end, of.side__js)
    for i in range(of.jobs * size):
        of.inner__js[i] -= of.side__js[i]
    blocks_ends(of, end, fall, x, z)


cdef void blocks_sides(Blocks* of, const double* rise, const double* fall) noexcept nogil:
    """The right side of each job's block."""
    cdef int64_t models = of.models, size = of.size, own = of.jobs * models, first = of.width + of.slots, r, j, i, a
    cdef const double* row_by = of.linear_by + own
    cdef const double* cone
    cdef const double* axis
    cdef double* side
    for j in range(of.jobs):
        side = of.side__js + j * size
        memset(side, 0, size * sizeof(double))
        memcpy(side, rise + j * of.width, of.width * sizeof(double))
        for a in range(models):
            i = j * models + a
            side[a] -= of.own__jg[i] * of.linear_by[i] * fall[i]
        cone = fall + of.linear + 3 * j
        for a in range(size - first):
            axis = of.axes__jab + 9 * j + 3 * a
            side[first + a] = axis[0] * cone[0] + axis[1] * cone[1] + axis[2] * cone[2]
    for r in range(of.rows):
        of.side__js[of.place__r[r]] = row_by[r] * fall[own + r]


cdef void blocks_ends(const Blocks* of, const double* end, const double* fall, double* x, double* z) noexcept nogil:
    """Columns and multipliers from what the blocks answer, and from GPUs and level."""
    cdef int64_t models = of.models, size = of.size, own = of.jobs * models, first = of.width + of.slots, r, j, i, a
    cdef const double* row_by = of.linear_by + own
    cdef const double* inner
    cdef const double* axis
    cdef double* cone
    for j in range(of.jobs):
        inner = of.inner__js + j * size
        memcpy(x + j * of.width, inner, of.width * sizeof(double))
        for a in range(models):
            i = j * models + a
            z[i] = -of.linear_by[i] * (of.own__jg[i] * inner[a] + fall[i])
        if of.cones:
            cone, axis = z + of.linear + 3 * j, of.axes__jab + 9 * j
            for a in range(3):
                cone[a] = axis[a] * inner[first] + axis[3 + a] * inner[first + 1] + axis[6 + a] * inner[first + 2]
    for r in range(of.rows):
        z[own + r] = row_by[r] * of.inner__js[of.place__r[r]]
    memcpy(z + own + of.rows, end, models * sizeof(double))
    x[of.jobs * of.width] = end[models]


@cython.cdivision(True)
cdef bint even_inverse(double* a, int64_t n, double* even, double* spare) noexcept nogil:
    """Replace the symmetric ``a`` by its inverse, found with rows and columns of like size; False if it is singular."""
    cdef int64_t i, k
    cdef double largest
    for i in range(n):
        largest = 0.0
        for k in range(n):
            largest = max(largest, fabs(a[i * n + k]))
        even[i] = 1.0 / sqrt(largest)
    for i in range(n):
        for k in range(n):
            a[i * n + k] *= even[i] * even[k]
    if not dense_inverse(a, n, spare):
        return False
    for i in range(n):
        for k in range(n):
            a[i * n + k] *= even[i] * even[k]
    return True
