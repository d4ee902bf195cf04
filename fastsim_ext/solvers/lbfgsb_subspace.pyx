"""One step of a search in a box, by a quadratic model of the function.

Downhill from the present point, a path bends wherever a variable meets its bound; the first least point of the model
along it gives the free variables, and the model's least point over those is the target. After R. H. Byrd, P. Lu,
J. Nocedal and C. Zhu, SIAM J. Scientific Computing 16 (1995), with the projection of J. L. Morales and J. Nocedal, ACM
TOMS 38 (2011).
"""

from libc.math cimport INFINITY, fabs
from libc.string cimport memmove

from fastsim_ext.solvers.lbfgsb_curvature cimport (
    curvature_add, curvature_backward, curvature_dot, curvature_factor, curvature_forward, curvature_middle,
)

cdef double EPSILON = 2.0**-52


cdef struct Path:                # of the bent path, what is left of it
    double[VARIABLES] way        # direction of each variable
    double[VARIABLES] meets      # when a variable meets its bound
    int[VARIABLES] variable      # of each bend
    int bends
    bint all_bend                # every variable meets one
    bint endless                 # some variable never does
    double slope                 # of the model, and its curvature along the path
    double curve
    double[2 * PAIRS] known      # W' way


cdef void subspace_begin(Subspace* part, const Box* box, int variables) noexcept nogil:
    """Variables whose bounds are one are fixed for good."""
    cdef int i
    part.free = variables
    for i in range(variables):
        part.where[i] = FIXED if box.high[i] - box.low[i] <= 0 else FREE


cdef void subspace_stand(Subspace* part, const Box* box, int i) noexcept nogil:
    cdef double down = -box.slope[i]
    part.where[i] = FREE
    if box.at[i] - box.low[i] <= 0:
        if down <= 0:
            part.where[i] = LOWEST
    elif box.high[i] - box.at[i] <= 0:
        if down >= 0:
            part.where[i] = HIGHEST
    elif fabs(down) <= 0:
        part.where[i] = UNMOVED


cdef void subspace_path(Subspace* part, const Curvature* known, const Box* box, Path* path) noexcept nogil:
    """The path's beginning."""
    cdef int pairs = known.pairs, i, j
    cdef double down
    path.bends, path.endless, path.slope = 0, False, 0.0
    for j in range(2 * pairs):
        path.known[j] = 0.0
    for i in range(known.variables):
        if part.where[i] != FIXED:
            subspace_stand(part, box, i)
        path.way[i] = 0.0
        if part.where[i] != FREE:
            continue
        down = -box.slope[i]
        path.way[i] = down
        path.slope -= down * down
        for j in range(pairs):
            path.known[j] += known.turn__pv[j][i] * down
            path.known[pairs + j] += known.step__pv[j][i] * down
        if down < 0:
            path.meets[path.bends] = (box.at[i] - box.low[i]) / -down
        elif down > 0 and box.high[i] < INFINITY:
            path.meets[path.bends] = (box.high[i] - box.at[i]) / down
        else:
            path.endless = path.endless or down > 0
            continue
        path.variable[path.bends] = i
        path.bends += 1
    path.all_bend = path.bends == known.variables
    if known.scale != 1:
        for j in range(pairs):
            path.known[pairs + j] *= known.scale


cdef int subspace_next(Path* path) noexcept nogil:
    """The next bend, the first of equal ones, is moved to the end of the list."""
    cdef int first = 0, i, variable
    cdef double meets
    for i in range(1, path.bends):
        if path.meets[i] < path.meets[first]:
            first = i
    meets, variable = path.meets[first], path.variable[first]
    path.bends -= 1
    memmove(&path.meets[first], &path.meets[first + 1], (path.bends - first) * sizeof(double))
    memmove(&path.variable[first], &path.variable[first + 1], (path.bends - first) * sizeof(int))
    path.meets[path.bends], path.variable[path.bends] = meets, variable
    return variable


cdef double subspace_hold(Subspace* part, const Box* box, Path* path, int i) noexcept nogil:
    """Variable i stays at its bound from here on; how far that is."""
    cdef bint up = path.way[i] > 0
    path.way[i] = 0.0
    part.where[i] = HIGHEST if up else LOWEST
    part.target[i] = box.high[i] if up else box.low[i]
    return part.target[i] - box.at[i]


cdef bint subspace_turn(Subspace* part, const Curvature* known, Path* path, int i, double way, double rest,
                        double length) noexcept nogil:
    """The model along the path after a bend; ``length`` of it lie between this and the last one."""
    cdef int pairs = known.pairs, j
    cdef double square = way * way
    cdef double[2 * PAIRS] row
    cdef double[2 * PAIRS] product
    path.slope = path.slope + length * path.curve + square - known.scale * way * rest
    path.curve = path.curve - known.scale * square
    if pairs:
        curvature_add(length, path.known, part.reach, 2 * pairs)
        for j in range(pairs):
            row[j] = known.turn__pv[j][i]
            row[pairs + j] = known.scale * known.step__pv[j][i]
        if not curvature_middle(known, row, product):
            return False
        path.slope += way * curvature_dot(part.reach, product, 2 * pairs)
        rest = curvature_dot(path.known, product, 2 * pairs)
        path.curve = path.curve + 2.0 * way * rest - square * curvature_dot(row, product, 2 * pairs)
        curvature_add(-way, row, path.known, 2 * pairs)
    return True


cdef bint subspace_bend(Subspace* part, const Curvature* known, const Box* box) noexcept nogil:
    """The model's first least point along the path; False if the model cannot be solved."""
    cdef Path path
    cdef double[2 * PAIRS] product
    cdef double least, ahead, length, way, rest, before = 0.0, total = 0.0
    cdef int i
    subspace_path(part, known, box, &path)
    for i in range(known.variables):
        part.target[i] = box.at[i]
    if not path.bends and not path.endless:
        return True
    for i in range(2 * known.pairs):
        part.reach[i] = 0.0
    path.curve = -known.scale * path.slope
    least = EPSILON * path.curve
    if known.pairs:
        if not curvature_middle(known, path.known, product):
            return False
        path.curve -= curvature_dot(product, path.known, 2 * known.pairs)
    ahead = -path.slope / path.curve
    while path.bends:
        i = subspace_next(&path)
        length = path.meets[path.bends] - before
        if ahead < length:
            break
        before = path.meets[path.bends]
        total += length
        way = path.way[i]
        rest = subspace_hold(part, box, &path, i)
        if not path.bends and path.all_bend:
            ahead = length
            break
        if not subspace_turn(part, known, &path, i, way, rest, length):
            return False
        path.curve = max(least, path.curve)
        ahead = -path.slope / path.curve if path.bends or path.endless else 0.0
    ahead = max(0.0, ahead)
    curvature_add(total + ahead, path.way, part.target, known.variables)
    curvature_add(ahead, path.known, part.reach, 2 * known.pairs)
    return True


cdef bint subspace_changed(Subspace* part, int variables, bint compared) noexcept nogil:
    """List the variables that are free; whether others were the last time."""
    cdef int i, k
    part.entering = part.leaving = 0
    if compared:
        for k in range(part.free - 1, -1, -1):
            if part.where[part.order[k]] >= LOWEST:
                part.left[part.leaving] = part.order[k]
                part.leaving += 1
        for k in range(part.free, variables):
            if part.where[part.order[k]] < LOWEST:
                part.entered[part.entering] = part.order[k]
                part.entering += 1
    part.free, k = 0, variables
    for i in range(variables):
        if part.where[i] < LOWEST:
            part.order[part.free] = i
            part.free += 1
        else:
            k -= 1
            part.order[k] = i
    return part.entering > 0 or part.leaving > 0


cdef inline double subspace_product(const double* a, const double* b, const int* variable, int count) noexcept nogil:
    cdef double total = 0.0
    cdef int k
    for k in range(count):
        total += a[variable[k]] * b[variable[k]]
    return total


cdef void subspace_add_pair(Subspace* part, const Curvature* known, bint dropped) noexcept nogil:
    """Products with the youngest pair."""
    cdef int last = known.pairs - 1, bound = known.variables - part.free, j
    cdef const int* bounded = &part.order[part.free]
    if dropped:
        for j in range(PAIRS - 1):
            memmove(part.turns__pp[j], &part.turns__pp[j + 1][1], (PAIRS - 1) * sizeof(double))
            memmove(part.steps__pp[j], &part.steps__pp[j + 1][1], (PAIRS - 1) * sizeof(double))
            memmove(part.mixed__pp[j], &part.mixed__pp[j + 1][1], (PAIRS - 1) * sizeof(double))
    for j in range(known.pairs):
        part.turns__pp[last][j] = subspace_product(known.turn__pv[last], known.turn__pv[j], part.order, part.free)
        part.steps__pp[last][j] = subspace_product(known.step__pv[last], known.step__pv[j], bounded, bound)
        part.mixed__pp[last][j] = subspace_product(known.step__pv[last], known.turn__pv[j], bounded, bound)
    for j in range(known.pairs):
        part.mixed__pp[j][last] = subspace_product(known.step__pv[j], known.turn__pv[last], part.order, part.free)


cdef void subspace_exchange(Subspace* part, const Curvature* known, int pairs) noexcept nogil:
    """The products of older pairs, after variables have come and gone."""
    cdef double came, went
    cdef int i, j
    for i in range(pairs):
        for j in range(i + 1):
            came = subspace_product(known.turn__pv[i], known.turn__pv[j], part.entered, part.entering)
            went = subspace_product(known.turn__pv[i], known.turn__pv[j], part.left, part.leaving)
            part.turns__pp[i][j] = part.turns__pp[i][j] + came - went
            came = subspace_product(known.step__pv[i], known.step__pv[j], part.entered, part.entering)
            went = subspace_product(known.step__pv[i], known.step__pv[j], part.left, part.leaving)
            part.steps__pp[i][j] = part.steps__pp[i][j] - came + went
        for j in range(pairs):
            came = subspace_product(known.step__pv[i], known.turn__pv[j], part.entered, part.entering)
            went = subspace_product(known.step__pv[i], known.turn__pv[j], part.left, part.leaving)
            if i <= j:
                part.mixed__pp[i][j] = part.mixed__pp[i][j] + came - went
            else:
                part.mixed__pp[i][j] = part.mixed__pp[i][j] - came + went


cdef bint subspace_factor(Subspace* part, const Curvature* known, bint learnt, bint dropped) noexcept nogil:
    """Factors of the model among free variables; False if it has no least point there."""
    cdef int pairs = known.pairs, i, j, k
    cdef double* block = &part.root[pairs][pairs]
    if learnt:
        subspace_add_pair(part, known, dropped)
    subspace_exchange(part, known, pairs - 1 if learnt else pairs)
    for i in range(pairs):
        k = pairs + i
        for j in range(i + 1):
            part.root[i][j] = part.turns__pp[i][j] / known.scale
            part.root[k][pairs + j] = part.steps__pp[i][j] * known.scale
        for j in range(i):
            part.root[k][j] = -part.mixed__pp[i][j]
        for j in range(i, pairs):
            part.root[k][j] = part.mixed__pp[i][j]
        part.root[i][i] += known.across__pp[i][i]
    if not curvature_factor(part.root[0], 2 * PAIRS, pairs):
        return False
    for i in range(pairs, 2 * pairs):
        curvature_forward(part.root[0], 2 * PAIRS, pairs, part.root[i])
    for i in range(pairs, 2 * pairs):
        for j in range(i, 2 * pairs):
            part.root[j][i] += curvature_dot(part.root[i], part.root[j], pairs)
    return curvature_factor(block, 2 * PAIRS, pairs)


cdef bint subspace_least(Subspace* part, const Curvature* known, const Box* box) noexcept nogil:
    """Move the target to the model's least point over free variables; False if it cannot be found."""
    cdef double[VARIABLES] way
    if not subspace_residual(part, known, box, way) or not subspace_newton(part, known, way):
        return False
    subspace_project(part, known, box, way)
    return True


cdef bint subspace_residual(const Subspace* part, const Curvature* known, const Box* box, double* way) noexcept nogil:
    """The model's downhill direction of free variables at the target."""
    cdef int pairs = known.pairs, i, j, k
    cdef double[2 * PAIRS] product
    cdef double by_step
    for i in range(part.free):
        k = part.order[i]
        way[i] = -known.scale * (part.target[k] - box.at[k]) - box.slope[k]
    if not curvature_middle(known, part.reach, product):
        return False
    for j in range(pairs):
        by_step = known.scale * product[pairs + j]
        for i in range(part.free):
            k = part.order[i]
            way[i] = way[i] + known.turn__pv[j][k] * product[j] + known.step__pv[j][k] * by_step
    return True


cdef bint subspace_newton(const Subspace* part, const Curvature* known, double* way) noexcept nogil:
    """From the downhill direction to the step that ends at the least point."""
    cdef int pairs = known.pairs, i, j, k
    cdef double[2 * PAIRS] value
    cdef double by_turn, by_step
    for j in range(pairs):
        by_turn = by_step = 0.0
        for i in range(part.free):
            k = part.order[i]
            by_turn += known.turn__pv[j][k] * way[i]
            by_step += known.step__pv[j][k] * way[i]
        value[j] = by_turn
        value[pairs + j] = known.scale * by_step
    if not curvature_forward(part.root[0], 2 * PAIRS, 2 * pairs, value):
        return False
    for j in range(pairs):
        value[j] = -value[j]
    if not curvature_backward(part.root[0], 2 * PAIRS, 2 * pairs, value):
        return False
    for j in range(pairs):
        for i in range(part.free):
            k = part.order[i]
            by_turn = known.turn__pv[j][k] * value[j] / known.scale
            way[i] = way[i] + by_turn + known.step__pv[j][k] * value[pairs + j]
    for i in range(part.free):
        way[i] *= 1.0 / known.scale
    return True


cdef void subspace_project(Subspace* part, const Curvature* known, const Box* box, double* way) noexcept nogil:
    """Take the step, cut at the bounds; if that leads uphill, only as much of it as bounds allow."""
    cdef double[VARIABLES] before
    cdef double ahead, uphill = 0.0
    cdef bint cut = False
    cdef int i, k
    for k in range(known.variables):
        before[k] = part.target[k]
    for i in range(part.free):
        k = part.order[i]
        ahead = min(box.high[k], max(box.low[k], part.target[k] + way[i]))
        cut = cut or ahead == box.low[k] or ahead == box.high[k]
        part.target[k] = ahead
    if not cut:
        return
    for k in range(known.variables):
        uphill += (part.target[k] - box.at[k]) * box.slope[k]
    if uphill <= 0:
        return
    for k in range(known.variables):
        part.target[k] = before[k]
    subspace_shorten(part, box, way)


cdef void subspace_shorten(Subspace* part, const Box* box, double* way) noexcept nogil:
    cdef double longest = 1.0, share = 1.0, rest
    cdef int i, k, first = -1
    for i in range(part.free):
        k = part.order[i]
        rest = (box.low[k] if way[i] < 0 else box.high[k]) - part.target[k]
        if way[i] < 0 and rest >= 0 or way[i] > 0 and rest <= 0:
            share = 0.0
        elif way[i] < 0 and way[i] * longest < rest or way[i] > 0 and way[i] * longest > rest:
            share = rest / way[i]
        if share < longest:
            longest, first = share, i
    if first >= 0:
        k = part.order[first]
        if way[first] != 0:
            part.target[k] = box.high[k] if way[first] > 0 else box.low[k]
            way[first] = 0.0
    for i in range(part.free):
        part.target[part.order[i]] += longest * way[i]
