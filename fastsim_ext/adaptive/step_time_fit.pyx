"""How far predicted step times are from measured ones, and which way they come closer.

    loss = rms(log turn_s - log measured) + rms(log step_s - log measured)
         + 0.001 * (gamma - 1)**2 + 0.01 * ((beta_n / alpha_n)**2 + (beta_r / alpha_r)**2)

A search that stops early stops where last bits let it. So every sum and product goes in the order of the published
program's: slopes backwards through the formula, in reverse order of its terms, and sums in pairs.
"""

from libc.math cimport log, pow, sqrt
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from fastsim_ext.solvers.lbfgsb cimport lbfgsb_end
from fastsim_ext.solvers.lbfgsb_subspace cimport Box

cdef double TINY = 1e-8
cdef double OVERLAP_WEIGHT = 1e-3
cdef double SLOPE_WEIGHT = 1e-2
cdef double TWICE = 2.0      # a power, not a product: they differ in the last bit now and then


cdef enum:
    ALPHA_C, BETA_C, ALPHA_N, BETA_N, ALPHA_R, BETA_R, GAMMA


cdef enum:
    LANES = 8            # of a sum
    WHOLE = 128          # terms that are not halved


cdef double fit_sum(const double* term, int64_t count) noexcept nogil:
    """A sum as NumPy takes it: few terms in order, some in eight lanes, many in halves."""
    cdef double[LANES] lane
    cdef double total = 0.0
    cdef int64_t i, k, half
    if count > WHOLE:
        half = count // 2
        half -= half % LANES
        return fit_sum(term, half) + fit_sum(term + half, count - half)
    i = 0
    if count >= LANES:
        for k in range(LANES):
            lane[k] = term[k]
        i = LANES
        while i < count - count % LANES:
            for k in range(LANES):
                lane[k] += term[i + k]
            i += LANES
        total = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]))
    while i < count:
        total += term[i]
        i += 1
    return total


cdef void fit_predict(const Fit* fit, const double* perf) noexcept nogil:
    cdef const Measured* at
    cdef Predicted* predicted
    cdef int64_t i
    for i in range(fit.count):
        at, predicted = &fit.measured[i], &fit.predicted[i]
        predicted.turn_s = perf[ALPHA_C] + perf[BETA_C] * at.atomic
        predicted.network_s = TINY + TINY * at.beyond
        if at.link == 1:
            predicted.network_s = perf[ALPHA_N] + perf[BETA_N] * at.beyond
        elif at.link == 2:
            predicted.network_s = perf[ALPHA_R] + perf[BETA_R] * at.beyond
        predicted.turn_power = pow(predicted.turn_s, perf[GAMMA])
        predicted.network_power = pow(predicted.network_s, perf[GAMMA])
        predicted.total = predicted.turn_power + predicted.network_power
        predicted.log_turn_s, predicted.log_total = log(predicted.turn_s), log(predicted.total)


cdef inline double fit_off(const Fit* fit, int64_t i, double gamma, bint whole) noexcept nogil:
    if whole:
        return fit.predicted[i].log_total / gamma - fit.measured[i].log_step_s
    return fit.predicted[i].log_turn_s - fit.measured[i].log_turn_s


cdef double fit_weight(const Fit* fit, double gamma, bint whole, double* error) noexcept nogil:
    """The error of turns or whole steps; twice its slope in each square, 0 where there is no error and no way down."""
    cdef double square
    cdef int64_t i
    for i in range(fit.count):
        fit.term[i] = fit_off(fit, i, gamma, whole)
        fit.term[i] *= fit.term[i]
    error[0] = sqrt(fit_sum(fit.term, fit.count) / fit.count)
    for i in range(fit.count):
        fit.term[i] = pow(fit_off(fit, i, gamma, whole), TWICE)
    square = fit_sum(fit.term, fit.count) / fit.count
    return 0.5 * pow(square, -0.5) / fit.count * 2 if square > 0 else 0.0


cdef double fit_whole(const Fit* fit, const double* perf, double weight, double slope) noexcept nogil:
    """The slope in gamma, of which ``slope`` is known; those of whole steps in each time are kept."""
    cdef double gamma = perf[GAMMA], square = pow(gamma, TWICE), by
    cdef Predicted* predicted
    cdef int64_t i
    for i in range(fit.count):
        fit.term[i] = -(weight * fit_off(fit, i, gamma, True)) * fit.predicted[i].log_total / square
    slope += fit_sum(fit.term, fit.count)
    for i in range(fit.count):
        predicted = &fit.predicted[i]
        by = weight * fit_off(fit, i, gamma, True) / gamma / predicted.total
        predicted.by_turn = by * gamma * pow(predicted.turn_s, gamma - 1)
        predicted.by_network = by * gamma * pow(predicted.network_s, gamma - 1)
        fit.term[i] = by * log(predicted.network_s) * predicted.network_power
    slope += fit_sum(fit.term, fit.count)
    for i in range(fit.count):
        predicted = &fit.predicted[i]
        by = weight * fit_off(fit, i, gamma, True) / gamma / predicted.total
        fit.term[i] = by * predicted.log_turn_s * predicted.turn_power
    return slope + fit_sum(fit.term, fit.count)


cdef void fit_networks(const Fit* fit, double* slope) noexcept nogil:
    cdef int64_t i, p
    for i in range(fit.count - 1, -1, -1):
        if fit.measured[i].link > 0:
            p = ALPHA_N if fit.measured[i].link == 1 else ALPHA_R
            slope[p] += fit.predicted[i].by_network
            slope[p + 1] += fit.predicted[i].by_network * fit.measured[i].beyond


cdef void fit_turns(const Fit* fit, double weight, double* slope) noexcept nogil:
    cdef Predicted* predicted
    cdef int64_t i
    for i in range(fit.count):
        predicted = &fit.predicted[i]
        predicted.by_turn += weight * fit_off(fit, i, 1.0, False) / predicted.turn_s
        fit.term[i] = predicted.by_turn
    slope[ALPHA_C] = fit_sum(fit.term, fit.count)
    for i in range(fit.count):
        fit.term[i] = fit.predicted[i].by_turn * fit.measured[i].atomic
    slope[BETA_C] = fit_sum(fit.term, fit.count)


cdef double fit_ratios(const double* perf, double* slope) noexcept nogil:
    """Penalty of the ratios of network times, and its slopes."""
    cdef double ratio, by, total = 0.0
    cdef int p
    for p in range(ALPHA_N, GAMMA, 2):
        ratio = perf[p + 1] / perf[p]
        by = SLOPE_WEIGHT * 2 * ratio
        slope[p] = -by * perf[p + 1] / pow(perf[p], TWICE)
        slope[p + 1] = by / perf[p]
        total += pow(ratio, TWICE)
    return SLOPE_WEIGHT * total


cdef double fit_loss(const Fit* fit, const double* perf, double* slope) noexcept nogil:
    """The loss of seven parameters, and its slope in each of them."""
    cdef double turn_error, step_error, turn_weight, step_weight, ratios
    fit_predict(fit, perf)
    turn_weight = fit_weight(fit, perf[GAMMA], False, &turn_error)
    step_weight = fit_weight(fit, perf[GAMMA], True, &step_error)
    ratios = fit_ratios(perf, slope)
    slope[GAMMA] = fit_whole(fit, perf, step_weight, OVERLAP_WEIGHT * 2 * (perf[GAMMA] - 1))
    fit_networks(fit, slope)
    fit_turns(fit, turn_weight, slope)
    return turn_error + step_error + OVERLAP_WEIGHT * pow(perf[GAMMA] - 1, TWICE) + ratios


cdef double fit_seen(const void* fit, const double* perf, double* slope) noexcept nogil:
    return fit_loss(<const Fit*> fit, perf, slope)


cdef class Observations:
    """Measured step times of one job on one kind of GPU, seconds: a turn alone, and the step with its update."""

    cdef Fit fit

    def __cinit__(self, const int64_t[::1] nodes, const int64_t[::1] replicas, const int64_t[::1] atomic,
                  const double[::1] turn_s, const double[::1] step_s):
        cdef Py_ssize_t i
        cdef Measured* at
        self.fit.count = nodes.shape[0]
        self.fit.measured = <Measured*> calloc(self.fit.count + 1, sizeof(Measured))
        self.fit.predicted = <Predicted*> calloc(self.fit.count + 1, sizeof(Predicted))
        self.fit.term = <double*> calloc(self.fit.count + 1, sizeof(double))
        if self.fit.measured == NULL or self.fit.predicted == NULL or self.fit.term == NULL:
            raise MemoryError
        for i in range(self.fit.count):
            at = &self.fit.measured[i]
            at.atomic = <double> atomic[i]
            at.beyond = replicas[i] - 2 if replicas[i] > 2 else TINY
            at.link = 1 if nodes[i] > 1 else 2 if replicas[i] > 1 else 0
            at.log_turn_s, at.log_step_s = log(turn_s[i]), log(step_s[i])

    def __dealloc__(self):
        free(self.fit.measured)
        free(self.fit.predicted)
        free(self.fit.term)

    def loss(self, const double[::1] perf, double[::1] slope):
        """The loss of seven parameters; their slopes go to ``slope``."""
        return fit_loss(&self.fit, &perf[0], &slope[0])

    def fitted(self, const double[::1] low, const double[::1] high, double flat, double stop, double[::1] perf):
        """The loss where a search from ``perf`` ends, which is there then.

        It ends when the loss falls by less than ``stop`` of it or of 1, or no slope is steeper than ``flat``.
        """
        cdef Box box
        cdef double loss
        cdef int i
        for i in range(PARAMETERS):
            box.low[i], box.high[i], box.at[i] = low[i], high[i], perf[i]
        loss = lbfgsb_end(fit_seen, &self.fit, &box, PARAMETERS, flat, stop)
        for i in range(PARAMETERS):
            perf[i] = box.at[i]
        return loss
