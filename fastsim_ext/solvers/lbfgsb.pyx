"""Minimisation within bounds by L-BFGS-B: the curvature is estimated from the last steps.

A step goes towards the target of `lbfgsb_subspace`; its length is found by the line search of J. J. More and D. J.
Thuente, ACM TOMS 20 (1994). The search ends when the loss falls by less than ``stop`` of it or of 1, or when no slope
is steeper than ``flat``.
"""

from libc.math cimport INFINITY, fabs, sqrt

from fastsim_ext.solvers.lbfgsb_curvature cimport VARIABLES, Curvature, curvature_dot, curvature_forget, curvature_learn
from fastsim_ext.solvers.lbfgsb_subspace cimport (
    Subspace, subspace_begin, subspace_bend, subspace_changed, subspace_factor, subspace_least,
)

cdef double EPSILON = 2.0**-52
cdef double FALL = 1e-3          # of the loss, over what the slope promises
cdef double FLATTER = 0.9        # slope at the end of a step, over that at its beginning
cdef double NARROW = 0.1         # relative width of a bracket that is not searched on
cdef double SHRINK = 0.66        # a bracket that shrinks less is halved
cdef double[2] GROW = [1.1, 4.0]
cdef double LONGEST = 1e10

cdef enum:
    TRIALS = 20                  # of one line search
    LOOKS = 15000                # evaluations of the loss, in all


cdef struct Point:               # on a line
    double at
    double loss
    double slope


cdef struct Line:
    Point start
    Point best
    Point other                  # end of the bracket that is not the best
    bint bracketed
    bint falls                   # by enough, with the slope turned
    double[2] room               # shortest and longest next step
    double[2] width              # of the bracket, and of the one before


cdef struct Walk:                # state of a search; ``way`` is the direction of its step
    Curvature known
    Subspace part
    double[VARIABLES] way
    double[VARIABLES] from_at
    double[VARIABLES] from_slope
    double square                # of the length of the direction
    double step                  # taken, as a part of the direction
    Point before                 # loss, and slope along the direction, where the step began
    Point after
    int looks
    int last_looks               # of the last line search
    bint learnt
    bint dropped


cdef double lbfgsb_cubic(double theta, double a, double b, bint real) noexcept nogil:
    cdef double scale = max(fabs(theta), max(fabs(a), fabs(b)))
    cdef double square = (theta / scale) * (theta / scale) - (a / scale) * (b / scale)
    return scale * sqrt(max(0.0, square) if real else square)


cdef double lbfgsb_theta(const Point* a, const Point* b) noexcept nogil:
    return 3.0 * (a.loss - b.loss) / (b.at - a.at) + a.slope + b.slope


cdef double lbfgsb_higher(const Point* best, const Point* now) noexcept nogil:
    """A step between, as the loss is higher now."""
    cdef double theta = lbfgsb_theta(best, now), root = lbfgsb_cubic(theta, best.slope, now.slope, False)
    cdef double length = now.at - best.at, cubic, square
    if now.at < best.at:
        root = -root
    cubic = best.at + (((root - best.slope) + theta) / (((root - best.slope) + root) + now.slope)) * length
    square = best.at + ((best.slope / ((best.loss - now.loss) / length + best.slope)) / 2.0) * length
    return cubic if fabs(cubic - best.at) < fabs(square - best.at) else cubic + (square - cubic) / 2.0


cdef double lbfgsb_turned(const Point* best, const Point* now) noexcept nogil:
    """A step between, as the slope has turned."""
    cdef double theta = lbfgsb_theta(best, now), root = lbfgsb_cubic(theta, best.slope, now.slope, False)
    cdef double cubic, secant
    if now.at > best.at:
        root = -root
    cubic = now.at + (((root - now.slope) + theta) / (((root - now.slope) + root) + best.slope)) * (best.at - now.at)
    secant = now.at + (now.slope / (now.slope - best.slope)) * (best.at - now.at)
    return cubic if fabs(cubic - now.at) > fabs(secant - now.at) else secant


cdef double lbfgsb_flatter(const Line* line, const Point* now) noexcept nogil:
    """A step beyond or in the bracket, as the slope has become less."""
    cdef const Point* best = &line.best
    cdef double theta = lbfgsb_theta(best, now), root = lbfgsb_cubic(theta, best.slope, now.slope, True)
    cdef double part, cubic, secant, limit
    if now.at > best.at:
        root = -root
    part = ((root - now.slope) + theta) / ((root + (best.slope - now.slope)) + root)
    if part < 0 and root != 0:
        cubic = now.at + part * (best.at - now.at)
    else:
        cubic = line.room[1] if now.at > best.at else line.room[0]
    secant = now.at + (now.slope / (now.slope - best.slope)) * (best.at - now.at)
    if not line.bracketed:
        part = cubic if fabs(cubic - now.at) > fabs(secant - now.at) else secant
        return max(line.room[0], min(line.room[1], part))
    part = cubic if fabs(cubic - now.at) < fabs(secant - now.at) else secant
    limit = now.at + SHRINK * (line.other.at - now.at)
    return min(limit, part) if now.at > best.at else max(limit, part)


cdef double lbfgsb_steeper(const Line* line, const Point* now) noexcept nogil:
    """A step beyond or in the bracket, as the slope has not become less."""
    cdef const Point* other = &line.other
    cdef double theta, root
    if not line.bracketed:
        return line.room[1] if now.at > line.best.at else line.room[0]
    theta = 3.0 * (now.loss - other.loss) / (other.at - now.at) + other.slope + now.slope
    root = lbfgsb_cubic(theta, other.slope, now.slope, False)
    if now.at > other.at:
        root = -root
    return now.at + (((root - now.slope) + theta) / (((root - now.slope) + root) + other.slope)) * (other.at - now.at)


cdef double lbfgsb_bracket(Line* line, const Point* now) noexcept nogil:
    """The next step to try; the bracket becomes smaller by this one."""
    cdef double step
    cdef bint turned = now.slope * (line.best.slope / fabs(line.best.slope)) < 0
    if now.loss > line.best.loss:
        step = lbfgsb_higher(&line.best, now)
        line.other, line.bracketed = now[0], True
        return step
    if turned:
        step = lbfgsb_turned(&line.best, now)
        line.other, line.bracketed = line.best, True
    elif fabs(now.slope) < fabs(line.best.slope):
        step = lbfgsb_flatter(line, now)
    else:
        step = lbfgsb_steeper(line, now)
    line.best = now[0]
    return step


cdef void lbfgsb_start(Line* line, const Point* start, double step, double longest) noexcept nogil:
    line.start = line.best = line.other = start[0]
    line.bracketed = line.falls = False
    line.room[0], line.room[1] = 0.0, step + GROW[1] * step
    line.width[0], line.width[1] = longest, longest / 0.5


cdef bint lbfgsb_arrived(Line* line, const Point* now, double longest) noexcept nogil:
    """Whether the line search ends here."""
    cdef double least = FALL * line.start.slope, enough = line.start.loss + now.at * least
    if now.loss <= enough and now.slope >= 0:
        line.falls = True
    if line.bracketed and (now.at <= line.room[0] or now.at >= line.room[1]):
        return True
    if line.bracketed and line.room[1] - line.room[0] <= NARROW * line.room[1]:
        return True
    if now.at == longest and now.loss <= enough and now.slope <= least:
        return True
    if now.at == 0 and (now.loss > enough or now.slope >= least):
        return True
    return now.loss <= enough and fabs(now.slope) <= FLATTER * -line.start.slope


cdef void lbfgsb_tilt(Point* at, double slope) noexcept nogil:
    at.loss += at.at * slope
    at.slope += slope


cdef double lbfgsb_next(Line* line, const Point* now, double longest) noexcept nogil:
    """The next step to try."""
    cdef double least = FALL * line.start.slope, step
    cdef Point tilted = now[0]
    if not line.falls and now.loss <= line.best.loss and now.loss > line.start.loss + now.at * least:
        lbfgsb_tilt(&tilted, -least)    # lower, but not by enough: use the loss less the least fall
        lbfgsb_tilt(&line.best, -least)
        lbfgsb_tilt(&line.other, -least)
        step = lbfgsb_bracket(line, &tilted)
        lbfgsb_tilt(&line.best, least)
        lbfgsb_tilt(&line.other, least)
    else:
        step = lbfgsb_bracket(line, now)
    if line.bracketed:
        if fabs(line.other.at - line.best.at) >= SHRINK * line.width[1]:
            step = line.best.at + 0.5 * (line.other.at - line.best.at)
        line.width[1], line.width[0] = line.width[0], fabs(line.other.at - line.best.at)
        line.room[0] = min(line.best.at, line.other.at)
        line.room[1] = max(line.best.at, line.other.at)
    else:
        line.room[0] = step + GROW[0] * (step - line.best.at)
        line.room[1] = step + GROW[1] * (step - line.best.at)
    step = min(max(step, 0.0), longest)
    if line.bracketed and (step <= line.room[0] or step >= line.room[1]
                           or line.room[1] - line.room[0] <= NARROW * line.room[1]):
        step = line.best.at
    return step


cdef double lbfgsb_steepest(const Box* box, int variables) noexcept nogil:
    """Largest entry of the projected gradient."""
    cdef double steepest = 0.0, slope
    cdef int i
    for i in range(variables):
        slope = box.slope[i]
        slope = max(box.at[i] - box.high[i], slope) if slope < 0 else min(box.at[i] - box.low[i], slope)
        steepest = max(steepest, fabs(slope))
    return steepest


cdef double lbfgsb_longest(const Walk* walk, const Box* box, int variables) noexcept nogil:
    """Largest step within the bounds, as a multiple of the direction."""
    cdef double longest = LONGEST, rest
    cdef int i
    for i in range(variables):
        rest = (box.low[i] if walk.way[i] < 0 else box.high[i]) - box.at[i]
        if walk.way[i] < 0 and rest >= 0 or walk.way[i] > 0 and rest <= 0:
            longest = 0.0
        elif walk.way[i] < 0 and walk.way[i] * longest < rest or walk.way[i] > 0 and walk.way[i] * longest > rest:
            longest = rest / walk.way[i]
    return longest


cdef bint lbfgsb_step(Slope loss, const void* of, Walk* walk, Box* box, int variables, bint first) noexcept nogil:
    """Search along the direction for a lower loss; False if there is none, and then the point is unchanged."""
    cdef Line line
    cdef double longest = 1.0 if first else lbfgsb_longest(walk, box, variables)
    cdef bint boxed = True
    cdef int i
    for i in range(variables):
        boxed = boxed and box.high[i] < INFINITY
        walk.from_at[i], walk.from_slope[i] = box.at[i], box.slope[i]
    walk.square = curvature_dot(walk.way, walk.way, variables)
    walk.step = min(1.0 / sqrt(walk.square), longest) if first and not boxed else 1.0
    walk.before = walk.after
    walk.before.at, walk.before.slope = 0.0, curvature_dot(box.slope, walk.way, variables)
    walk.last_looks = 0
    if not walk.before.slope < 0 or walk.step > longest:
        return False
    lbfgsb_start(&line, &walk.before, walk.step, longest)
    while walk.last_looks <= TRIALS:
        for i in range(variables):
            box.at[i] = walk.part.target[i]
            if walk.step != 1:
                box.at[i] = min(box.high[i], max(box.low[i], walk.step * walk.way[i] + walk.from_at[i]))
        walk.after.loss = loss(of, box.at, box.slope)
        walk.after.at, walk.after.slope = walk.step, curvature_dot(box.slope, walk.way, variables)
        walk.last_looks += 1
        walk.looks += 1
        if lbfgsb_arrived(&line, &walk.after, longest):
            return True
        walk.step = lbfgsb_next(&line, &walk.after, longest)
        if walk.last_looks == TRIALS:
            break
    for i in range(variables):
        box.at[i], box.slope[i] = walk.from_at[i], walk.from_slope[i]
    walk.after.loss = walk.before.loss
    return False


cdef void lbfgsb_forget(Walk* walk) noexcept nogil:
    curvature_forget(&walk.known)
    walk.learnt = walk.dropped = False


cdef bint lbfgsb_aimed(Walk* walk, const Box* box, bint compared) noexcept nogil:
    """Compute the target; False if the estimated curvature gives none."""
    cdef Subspace* part = &walk.part
    cdef bint changed
    if not subspace_bend(part, &walk.known, box):
        return False
    changed = subspace_changed(part, walk.known.variables, compared)
    if not part.free or not walk.known.pairs:
        return True
    if (changed or walk.learnt) and not subspace_factor(part, &walk.known, walk.learnt, walk.dropped):
        return False
    return subspace_least(part, &walk.known, box)


cdef void lbfgsb_learn(Walk* walk, const Box* box, int variables) noexcept nogil:
    """Add the last step to the curvature if the function bends upwards along it."""
    cdef double[VARIABLES] turn
    cdef double across = walk.after.slope - walk.before.slope, promised = -walk.before.slope, along = walk.square
    cdef int i, known = walk.known.pairs
    for i in range(variables):
        turn[i] = box.slope[i] - walk.from_slope[i]
    if walk.step != 1:
        across = across * walk.step
        promised = promised * walk.step
        along = walk.step * walk.step * walk.square
        for i in range(variables):
            walk.way[i] *= walk.step
    walk.learnt = across > EPSILON * promised
    if not walk.learnt:
        return
    if not curvature_learn(&walk.known, walk.way, turn, across, along):
        lbfgsb_forget(walk)
        return
    walk.dropped = known == walk.known.pairs


cdef double lbfgsb_end(
    Slope loss, const void* of, Box* box, int variables, double flat, double stop
) noexcept nogil:
    """Minimise from the point in the box, which then has the point where the search ends; returns the loss there."""
    cdef Walk walk
    cdef double size
    cdef int i
    cdef bint moved = False
    walk.known.variables, walk.looks = variables, 1
    lbfgsb_forget(&walk)
    subspace_begin(&walk.part, box, variables)
    walk.after.loss = loss(of, box.at, box.slope)
    while walk.looks < LOOKS and lbfgsb_steepest(box, variables) > flat:
        if not lbfgsb_aimed(&walk, box, moved):
            lbfgsb_forget(&walk)
            continue
        for i in range(variables):
            walk.way[i] = walk.part.target[i] - box.at[i]
        if not lbfgsb_step(loss, of, &walk, box, variables, not moved):
            if not walk.known.pairs:
                break
            lbfgsb_forget(&walk)
            continue
        moved = True
        size = max(1.0, max(fabs(walk.before.loss), fabs(walk.after.loss)))
        if walk.before.loss - walk.after.loss <= stop * size:
            break
        lbfgsb_learn(&walk, box, variables)
    return walk.after.loss
