"""Programs of shares without shared GPUs: every class by itself, then the GPU models.

The equations of ``fastsim/policies/programs/interior_unpaired.py``, without numpy. Rows: time of every class, rate of
those with a least rate, GPUs of every model.
"""

cimport cython
from libc.math cimport fmax
from libc.stdint cimport int64_t
from fastsim_ext.solvers.self_dual_embedding cimport (
    Program, dense_factor, dense_solve, embedding_optimum, embedding_space,
)


cdef void unpaired_used(const void* of, const double* x, double level, double* rows) noexcept nogil:
    """Left sides of the rows: time of each class, level less rate of each held class, GPUs of each model."""
    cdef const Unpaired* p = <const Unpaired*> of
    cdef int models = p.models, c, g, h
    cdef double* rate = rows + p.classes
    cdef double* gpus = rate + p.held
    cdef const double* share
    for g in range(models):
        gpus[g] = 0.0
    for c in range(p.classes):
        share = x + c * models
        rows[c] = 0.0
        for g in range(models):
            rows[c] += share[g]
            gpus[g] += p.size__c[c] * p.use__c[c] * share[g]
    for h in range(p.held):
        share = x + p.holds[h] * models
        rate[h] = p.level_weight__h[h] * level
        for g in range(models):
            rate[h] -= p.rate__hg[h * models + g] * share[g]


cdef double unpaired_prices(const void* of, const double* z, double* x) noexcept nogil:
    """Product of the transposed constraints and the multipliers, by column; returns its entry for the level."""
    cdef const Unpaired* p = <const Unpaired*> of
    cdef int models = p.models, c, g, h
    cdef const double* time = z + p.classes * models
    cdef const double* rate = time + p.classes
    cdef const double* gpus = rate + p.held
    cdef double product = 0.0
    for c in range(p.classes):
        for g in range(models):
            x[c * models + g] = time[c] - z[c * models + g] + p.use__c[c] * gpus[g]
    for h in range(p.held):
        c = p.holds[h]
        for g in range(models):
            x[c * models + g] -= p.rate__hg[h * models + g] * rate[h]
        product += p.size__c[c] * p.level_weight__h[h] * rate[h]
    return product


@cython.cdivision(True)
cdef double unpaired_largest(const void* of, const double* column, double level, const double* row,
                             double* by_column, double* by_row) noexcept nogil:
    """Largest entry of each column, of each row and (returned) of the level if these are divided by that."""
    cdef const Unpaired* p = <const Unpaired*> of
    cdef int models = p.models, n = p.classes * p.models, c, g, h
    cdef const double* time = row + n
    cdef const double* rate = time + p.classes
    cdef const double* gpus = rate + p.held
    cdef double* by_time = by_row + n
    cdef double* by_rate = by_time + p.classes
    cdef double* by_gpus = by_rate + p.held
    cdef double largest = 0.0, over, entry
    for g in range(models):
        by_gpus[g] = 0.0
    for c in range(p.classes):
        by_time[c] = 0.0
        for g in range(models):
            over = 1.0 / column[c * models + g]
            by_row[c * models + g] = over / row[c * models + g]
            by_time[c] = fmax(by_time[c], over / time[c])
            entry = over * p.use__c[c] / gpus[g]
            by_gpus[g] = fmax(by_gpus[g], entry)
            by_column[c * models + g] = fmax(fmax(by_row[c * models + g], over / time[c]), entry)
    for h in range(p.held):
        c = p.holds[h]
        by_rate[h] = p.level_weight__h[h] / (rate[h] * level)
        largest = fmax(largest, by_rate[h])
        for g in range(models):
            entry = p.rate__hg[h * models + g] / column[c * models + g] / rate[h]
            by_rate[h] = fmax(by_rate[h], entry)
            by_column[c * models + g] = fmax(by_column[c * models + g], entry)
    return largest


@cython.cdivision(True)
cdef void unpaired_weigh(void* of, const double* weight, const double* damping, double level_damping) noexcept nogil:
    """Eliminate time and rate, and factor the small matrix of the models and the level."""
    cdef Unpaired* p = <Unpaired*> of
    cdef int models = p.models, n = p.classes * p.models, c, g, k, h
    cdef const double* time = weight + n
    cdef const double* own
    cdef double scale, others
    p.weight, p.rise = weight, level_damping
    for g in range(models * models):
        p.matrix__gg[g] = 0.0
    for g in range(models):
        p.lift__g[g] = 0.0
        p.matrix__gg[g * models + g] = time[p.classes + p.held + g]
    for c in range(p.classes):
        p.total__c[c] = time[c]
        for g in range(models):
            p.own__cg[c * models + g] = 1.0 / (damping[c * models + g] + 1.0 / weight[c * models + g])
            p.total__c[c] += p.own__cg[c * models + g]
        own = p.own__cg + c * models
        scale = p.size__c[c] * (p.use__c[c] * p.use__c[c])
        for g in range(models):
            others = time[c] / p.total__c[c]
            for k in range(models):
                if k > g:
                    p.matrix__gg[g * models + k] -= scale * own[g] * (own[k] / p.total__c[c])
                if k != g:
                    others += own[k] / p.total__c[c]
            p.matrix__gg[g * models + g] += scale * own[g] * others
    for h in range(p.held):
        unpaired_hold(p, h)
    if p.gain:
        for g in range(models):
            for k in range(g, models):
                p.matrix__gg[g * models + k] += p.lift__g[g] * p.lift__g[k] / p.rise
    dense_factor(p.matrix__gg, models)


@cython.cdivision(True)
cdef void unpaired_hold(Unpaired* p, int h) noexcept nogil:
    """Eliminate the rate of one held class: weighted mean of its rates, and what is left of them beside it."""
    cdef int models = p.models, c = p.holds[h], g, k
    cdef const double* own = p.own__cg + c * models
    cdef const double* rate = p.rate__hg + h * models
    cdef const double* time = p.weight + p.classes * models
    cdef double* slope = p.slope__hg + h * models
    cdef double mean = 0.0, spread, share, scale = p.size__c[c] * (p.use__c[c] * p.use__c[c])
    for g in range(models):
        mean += own[g] * rate[g]
    mean /= p.total__c[c]
    spread = time[p.classes + h] + time[c] * mean * mean
    for g in range(models):
        slope[g] = own[g] * (rate[g] - mean)
        spread += slope[g] * (rate[g] - mean)
    share = 1.0 / spread
    p.mean__h[h], p.share__h[h] = mean, share
    for g in range(models):
        for k in range(g, models):
            p.matrix__gg[g * models + k] -= scale * (slope[g] * share) * slope[k]
    for g in range(models):
        slope[g] *= share
        p.lift__g[g] += p.size__c[c] * p.level_weight__h[h] * p.use__c[c] * slope[g]
    p.rise += p.size__c[c] * p.level_weight__h[h] * p.level_weight__h[h] * share


cdef void unpaired_free(const Unpaired* p, const double* x, double* free) noexcept nogil:
    """Columns that follow from the multipliers of time and rate alone, without those of GPUs."""
    cdef int models = p.models, c, g, h
    for c in range(p.classes):
        for g in range(models):
            free[c * models + g] = p.time__c[c]
    for h in range(p.held):
        c = p.holds[h]
        for g in range(models):
            free[c * models + g] += (p.mean__h[h] - p.rate__hg[h * models + g]) * p.rate__h[h]
    for c in range(p.classes * models):
        free[c] = x[c] - p.own__cg[c] * free[c]


@cython.cdivision(True)
cdef double unpaired_solve(const void* of, const double* rise, double rise_level, const double* fall,
                           double* x, double* z) noexcept nogil:
    """The columns and the multipliers; returns the level."""
    cdef const Unpaired* p = <const Unpaired*> of
    cdef int models = p.models, n = p.classes * p.models, c, g, h
    cdef const double* fall_time = fall + n
    cdef const double* fall_rate = fall_time + p.classes
    cdef double* gpus = z + n + p.classes + p.held
    cdef double level = 0.0, miss = rise_level, part
    for c in range(p.classes):
        part = -fall_time[c]
        for g in range(c * models, c * models + models):
            x[g] = p.own__cg[g] * (rise[g] - fall[g] / p.weight[g])
            part += x[g]
        p.time__c[c] = part
    for h in range(p.held):
        c = p.holds[h]
        part = p.mean__h[h] * p.time__c[c] - fall_rate[h]
        for g in range(models):
            part -= p.rate__hg[h * models + g] * x[c * models + g]
        p.rate__h[h] = p.share__h[h] * part
        miss -= p.size__c[c] * p.level_weight__h[h] * p.rate__h[h]
    for g in range(models):
        gpus[g] = -fall_rate[p.held + g]
    for c in range(p.classes):
        p.time__c[c] /= p.total__c[c]
    unpaired_free(p, x, z)
    for c in range(p.classes):
        for g in range(models):
            gpus[g] += p.size__c[c] * p.use__c[c] * z[c * models + g]
    if p.gain:
        for g in range(models):
            gpus[g] += p.lift__g[g] * (miss / p.rise)
    dense_solve(p.matrix__gg, models, gpus)
    if p.gain:
        for g in range(models):
            miss -= p.lift__g[g] * gpus[g]
        level = miss / p.rise
    unpaired_finish(p, level, gpus, fall, x, z)
    return level


@cython.cdivision(True)
cdef void unpaired_finish(const Unpaired* p, double level, const double* gpus, const double* fall,
                          double* x, double* z) noexcept nogil:
    """Time, rate, columns and their own multipliers once GPUs and level are known."""
    cdef int models = p.models, n = p.classes * p.models, c, g, h
    cdef double part
    for h in range(p.held):
        c = p.holds[h]
        part = 0.0
        for g in range(models):
            part += p.slope__hg[h * models + g] * gpus[g]
        p.rate__h[h] += p.use__c[c] * part + p.share__h[h] * p.level_weight__h[h] * level
    for c in range(p.classes):
        part = 0.0
        for g in range(models):
            part += p.own__cg[c * models + g] * gpus[g]
        p.time__c[c] -= p.use__c[c] * part / p.total__c[c]
    unpaired_free(p, x, z)
    for c in range(p.classes):
        for g in range(models):
            x[c * models + g] = z[c * models + g] - p.own__cg[c * models + g] * (p.use__c[c] * gpus[g])
        z[n + c] = p.time__c[c]
    for h in range(p.held):
        z[n + p.holds[h]] += p.mean__h[h] * p.rate__h[h]
        z[n + p.classes + h] = p.rate__h[h]
    for g in range(n):
        z[g] = (-fall[g] - x[g]) / p.weight[g]


def space(int classes, int models, int held):
    """Numbers that ``optimum`` needs to work in."""
    cdef int columns = classes * models, rows = classes + held + models
    cdef int own = columns + 2 * classes + 3 * held + held * models + models + models * models
    return own + embedding_space(columns, rows)


def optimum(const double[::1] size__c, const double[::1] use__c, const int64_t[::1] held, const double[:, ::1] rate__hg,
            const double[::1] level_weight__h, double gain, const double[::1] cost, const double[::1] room,
            const double[::1] count, double[::1] work, double[::1] x):
    """The level where the method ends, and in ``x`` the columns; None if it does not converge."""
    cdef Unpaired p
    cdef Program program
    cdef double level = 0.0
    cdef bint ended
    cdef double* at = &work[0]
    p.classes, p.held, p.models = <int> size__c.shape[0], <int> held.shape[0], <int> (x.shape[0] // size__c.shape[0])
    p.size__c, p.use__c, p.gain = &size__c[0], &use__c[0], gain
    p.holds, p.rate__hg, p.level_weight__h = NULL, NULL, NULL
    if p.held:
        p.holds, p.rate__hg, p.level_weight__h = &held[0], &rate__hg[0, 0], &level_weight__h[0]
    program.columns, program.rows = p.classes * p.models, p.classes + p.held + p.models
    if room.shape[0] != program.rows or count.shape[0] != program.columns + program.rows:
        raise ValueError("room and count do not fit the columns")
    if work.shape[0] < space(p.classes, p.models, p.held):
        raise ValueError("too little to work in")
    p.own__cg = at
    p.total__c = p.own__cg + program.columns
    p.time__c = p.total__c + p.classes
    p.mean__h = p.time__c + p.classes
    p.share__h = p.mean__h + p.held
    p.rate__h = p.share__h + p.held
    p.slope__hg = p.rate__h + p.held
    p.lift__g = p.slope__hg + p.held * p.models
    p.matrix__gg = p.lift__g + p.models
    program.gain, program.cost, program.room, program.count, program.of = gain, &cost[0], &room[0], &count[0], &p
    program.used, program.prices, program.largest = unpaired_used, unpaired_prices, unpaired_largest
    program.weigh, program.solve = unpaired_weigh, unpaired_solve
    with nogil:
        ended = embedding_optimum(&program, p.matrix__gg + p.models * p.models, &x[0], &level)
    return level if ended else None
