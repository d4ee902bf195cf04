"""Programs of shares in which pairs may share GPUs: the equations of ``fastsim/policies/programs/interior_paired.py``.

Rows: time of every class, rate of those with a least rate, GPUs of every model. A column stands for one job
or pair, so two jobs of one class put twice their time into the rows of that class.
"""

cimport cython
from libc.math cimport fmax
from libc.stdint cimport int64_t
from libc.string cimport memset
from fastsim_ext.solvers.self_dual_embedding cimport (
    Program, dense_factor, dense_solve, embedding_optimum, embedding_space,
)

cdef int REFINEMENTS = 2


cdef void paired_use(const Paired* p, const double* x, double* rows) noexcept nogil:
    """Use of the rows by the columns, summed over all rows of each kind."""
    cdef int m, r, g, models = p.models
    cdef double each, total, own
    cdef double* rate = rows + p.classes
    cdef double* gpus = rate + p.held
    cdef int64_t c, at
    memset(rows, 0, (p.classes + p.held + models) * sizeof(double))
    for r in range(p.groups):
        total = 0.0
        for g in range(models):
            each = x[r * models + g] * p.number__r[r]
            total += each
            gpus[g] += each * p.use__r[r]
        for m in range(2):
            if p.hold__mr[m * p.groups + r] == 0:
                continue
            c = p.member__mr[m * p.groups + r]
            rows[c] += total * p.hold__mr[m * p.groups + r]
            at = p.place__c[c]
            if at < 0:
                continue
            own = 0.0
            for g in range(models):
                own += x[r * models + g] * p.rate__mrg[(m * p.groups + r) * models + g]
            rate[at] -= own * p.number__r[r]


cdef void paired_transposed(const Paired* p, const double* rows, double* x) noexcept nogil:
    """Product of the transposed constraints and the rows' multipliers, by column."""
    cdef int m, r, g, models = p.models
    cdef const double* rate = rows + p.classes
    cdef const double* gpus = rate + p.held
    cdef const double* rates
    cdef int64_t at
    cdef double time, each
    for r in range(p.groups):
        time = 0.0
        for m in range(2):
            time += rows[p.member__mr[m * p.groups + r]] * p.hold__mr[m * p.groups + r]
        for g in range(models):
            x[r * models + g] = time + p.use__r[r] * gpus[g]
        for m in range(2):
            at = p.place__c[p.member__mr[m * p.groups + r]]
            if at < 0 or p.hold__mr[m * p.groups + r] == 0:
                continue
            rates, each = p.rate__mrg + (m * p.groups + r) * models, rate[at]
            for g in range(models):
                x[r * models + g] -= rates[g] * each


@cython.cdivision(True)
cdef void paired_used(const void* of, const double* x, double level, double* rows) noexcept nogil:
    """Left sides of the rows: time of each class, level less rate of each held class, GPUs of each model."""
    cdef const Paired* p = <const Paired*> of
    cdef int i
    paired_use(p, x, rows)
    for i in range(p.classes + p.held + p.models):
        rows[i] = (rows[i] + p.lift[i] * level) / p.weigh[i]


cdef double paired_prices(const void* of, const double* z, double* x) noexcept nogil:
    """Product of the transposed constraints and the multipliers, by column; returns its entry for the level."""
    cdef const Paired* p = <const Paired*> of
    cdef int i, n = p.groups * p.models
    paired_transposed(p, z + n, x)
    for i in range(n):
        x[i] -= z[i]
    return paired_lifted(p, z + n)


cdef double paired_lifted(const Paired* p, const double* rows) noexcept nogil:
    """Product of the level's coefficients and the rows' multipliers."""
    cdef double product = 0.0
    cdef int i
    for i in range(p.classes + p.held + p.models):
        product += p.lift[i] * rows[i]
    return product


@cython.cdivision(True)
cdef double paired_largest(const void* of, const double* column, double level, const double* row,
                           double* by_column, double* by_row) noexcept nogil:
    """Largest entry of each column, of each row and (returned) of the level if these are divided by that."""
    cdef const Paired* p = <const Paired*> of
    cdef int models = p.models, n = p.groups * p.models, m, r, g, h
    cdef const double* rate = row + n + p.classes
    cdef double* by_rate = by_row + n + p.classes
    cdef double largest = 0.0, over, one, two, hold
    cdef int64_t c, at
    memset(by_row, 0, (n + p.classes + p.held + models) * sizeof(double))
    for r in range(p.groups):
        for g in range(models):
            over = 1.0 / column[r * models + g]
            by_row[r * models + g] = over / row[r * models + g]
            two = over * p.use__r[r] / rate[p.held + g]
            by_rate[p.held + g] = fmax(by_rate[p.held + g], two)
            by_column[r * models + g] = fmax(by_row[r * models + g], two)
            for m in range(2):
                hold = p.hold__mr[m * p.groups + r]
                if hold == 0:
                    continue
                # Two jobs of one class are two rows of the program written out: each has the entry of one.
                c = p.member__mr[m * p.groups + r]
                at = p.place__c[c]
                one, two = over / row[n + c], 0.0
                if at >= 0:
                    two = over * p.rate__mrg[(m * p.groups + r) * models + g] / (rate[at] * fmax(hold, 1.0))
                    by_rate[at] = fmax(by_rate[at], two)
                by_row[n + c] = fmax(by_row[n + c], one)
                by_column[r * models + g] = fmax(by_column[r * models + g], fmax(one, two))
    for h in range(p.held):
        one = p.level_weight__h[h] / (rate[h] * level)
        largest = fmax(largest, one)
        by_rate[h] = fmax(by_rate[h], one)
    return largest


cdef void paired_add(Paired* p, int64_t i, int64_t j, double value) noexcept nogil:
    """Add to the upper half of the matrix."""
    cdef int64_t side = p.classes + p.held + p.models
    p.matrix[min(i, j) * side + max(i, j)] += value


@cython.cdivision(True)
cdef void paired_weigh(void* of, const double* weight, const double* damping, double level_damping) noexcept nogil:
    """Eliminate the columns, and factor what is left."""
    cdef Paired* p = <Paired*> of
    cdef int n = p.groups * p.models, side = p.classes + p.held + p.models, i
    p.weight, p.damping, p.level_damping, p.rise = weight, damping, level_damping, level_damping
    memset(p.matrix, 0, side * side * sizeof(double))
    for i in range(side):
        p.matrix[i * side + i] = p.weigh[i] * weight[n + i]
        p.slope[i] = p.lift[i]
    for i in range(n):
        p.own__rg[i] = 1.0 / (damping[i] + 1.0 / weight[i])
    for i in range(p.groups):
        paired_group(p, i)
    dense_factor(p.matrix, side)
    if p.gain:
        dense_solve(p.matrix, side, p.slope)
        p.rise += paired_lifted(p, p.slope)


cdef void paired_group(Paired* p, int r) noexcept nogil:
    """Add one group's columns to the matrix: the change of each row by a unit of each multiplier."""
    cdef int models = p.models, groups = p.groups, m, o, g
    cdef int64_t gpus = p.classes + p.held, c, d, at, by
    cdef double give, total = 0.0, mixed, both, use = p.use__r[r]
    cdef const double* rates
    cdef const double* others
    for g in range(models):
        give = p.own__rg[r * models + g] * p.number__r[r]
        total += give
        paired_add(p, gpus + g, gpus + g, use * use * give)
    for m in range(2):
        if p.hold__mr[m * groups + r] == 0:
            continue
        c, rates = p.member__mr[m * groups + r], p.rate__mrg + (m * groups + r) * models
        at = p.place__c[c]
        for g in range(models):
            give = p.own__rg[r * models + g] * p.number__r[r] * use
            paired_add(p, c, gpus + g, give * p.hold__mr[m * groups + r])
            if at >= 0:
                paired_add(p, p.classes + at, gpus + g, -give * rates[g])
        for o in range(2):
            if p.hold__mr[o * groups + r] == 0:
                continue
            d, others = p.member__mr[o * groups + r], p.rate__mrg + (o * groups + r) * models
            by, mixed, both = p.place__c[d], 0.0, 0.0
            for g in range(models):
                give = p.own__rg[r * models + g] * p.number__r[r]
                mixed += give * others[g]
                both += give * rates[g] * others[g]
            if m <= o:
                paired_add(p, c, d, total * p.hold__mr[m * groups + r] * p.hold__mr[o * groups + r])
                if at >= 0 and by >= 0:
                    paired_add(p, p.classes + at, p.classes + by, both)
            if by >= 0:
                paired_add(p, c, p.classes + by, -mixed * p.hold__mr[m * groups + r])


@cython.cdivision(True)
cdef double paired_once(const Paired* p, const double* rise, double rise_level, const double* fall,
                        double* x, double* z) noexcept nogil:
    """The columns and the multipliers, as far as the factors are exact; returns the level."""
    cdef int n = p.groups * p.models, side = p.classes + p.held + p.models, i
    cdef double* rows = z + n
    cdef double level = 0.0
    for i in range(n):
        x[i] = p.own__rg[i] * (rise[i] - fall[i] / p.weight[i])
    paired_use(p, x, rows)
    for i in range(side):
        rows[i] -= p.weigh[i] * fall[n + i]
    dense_solve(p.matrix, side, rows)
    if p.gain:
        level = (rise_level - paired_lifted(p, rows)) / p.rise
        for i in range(side):
            rows[i] += p.slope[i] * level
    paired_transposed(p, rows, p.transposed__rg)
    for i in range(n):
        x[i] -= p.own__rg[i] * p.transposed__rg[i]
        z[i] = (-fall[i] - x[i]) / p.weight[i]
    return level


cdef double paired_solve(const void* of, const double* rise, double rise_level, const double* fall,
                         double* x, double* z) noexcept nogil:
    """The columns and the multipliers; what an answer misses is solved for again. Returns the level."""
    cdef const Paired* p = <const Paired*> of
    cdef int n = p.groups * p.models, side = p.classes + p.held + p.models, i, _step
    cdef double level = paired_once(p, rise, rise_level, fall, x, z), miss
    for _step in range(REFINEMENTS):
        miss = rise_level - paired_prices(p, z, p.spare_rise) - p.level_damping * level
        paired_used(p, x, level, p.spare_fall + n)
        for i in range(n):
            p.spare_rise[i] = rise[i] - p.spare_rise[i] - p.damping[i] * x[i]
            p.spare_fall[i] = -x[i]
        for i in range(n + side):
            p.spare_fall[i] = fall[i] - p.spare_fall[i] + p.weight[i] * z[i]
        level += paired_once(p, p.spare_rise, miss, p.spare_fall, p.spare_x, p.spare_z)
        for i in range(n):
            x[i] += p.spare_x[i]
        for i in range(n + side):
            z[i] += p.spare_z[i]
    return level


def space(int groups, int classes, int models, int held):
    """Numbers that ``optimum`` needs to work in."""
    cdef int columns = groups * models, rows = classes + held + models
    return 6 * columns + 3 * rows + rows * rows + embedding_space(columns, rows)


def optimum(const int64_t[:, ::1] member__mr, const double[:, ::1] hold__mr, const double[:, :, ::1] rate__mrg,
            const double[::1] number__r, const double[::1] use__r, const int64_t[::1] place__c,
            const double[::1] level_weight__h, double gain, const double[::1] cost, const double[::1] room,
            const double[::1] weigh, const double[::1] lift, const double[::1] count, double[::1] work, double[::1] x):
    """The level where the method ends, and in ``x`` the columns; None if it does not get there."""
    cdef Paired p
    cdef Program program
    cdef double level = 0.0
    cdef bint ended
    cdef int n, side
    p.groups, p.classes, p.held = <int> number__r.shape[0], <int> place__c.shape[0], <int> level_weight__h.shape[0]
    p.models, p.gain = <int> rate__mrg.shape[2], gain
    n, side = p.groups * p.models, p.classes + p.held + p.models
    if room.shape[0] != side or count.shape[0] != n + side or x.shape[0] != n:
        raise ValueError("room and count do not fit the columns")
    if work.shape[0] < space(p.groups, p.classes, p.models, p.held):
        raise ValueError("too little to work in")
    p.member__mr, p.hold__mr, p.rate__mrg = &member__mr[0, 0], &hold__mr[0, 0], &rate__mrg[0, 0, 0]
    p.number__r, p.use__r, p.place__c, p.weigh, p.lift = &number__r[0], &use__r[0], &place__c[0], &weigh[0], &lift[0]
    p.level_weight__h = &level_weight__h[0] if p.held else NULL
    p.own__rg = &work[0]
    p.transposed__rg, p.spare_rise, p.spare_x = p.own__rg + n, p.own__rg + 2 * n, p.own__rg + 3 * n
    p.spare_fall = p.own__rg + 4 * n
    p.spare_z = p.spare_fall + n + side
    p.slope = p.spare_z + n + side
    p.matrix = p.slope + side
    program.columns, program.rows, program.gain, program.of = n, side, gain, &p
    program.cost, program.room, program.count = &cost[0], &room[0], &count[0]
    program.used, program.prices, program.largest = paired_used, paired_prices, paired_largest
    program.weigh, program.solve = paired_weigh, paired_solve
    with nogil:
        ended = embedding_optimum(&program, p.matrix + side * side, &x[0], &level)
    return level if ended else None
