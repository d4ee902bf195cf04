"""How far predicted step times are from measured ones, and which way they come closer.

    loss = rms(log turn_s - log measured) + rms(log step_s - log measured)
         + 0.001 * (gamma - 1)**2 + 0.01 * ((beta_n / alpha_n)**2 + (beta_r / alpha_r)**2)
"""

cimport cython
from libc.math cimport log, pow, sqrt
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

cdef double TINY = 1e-8
cdef double OVERLAP_WEIGHT = 1e-3
cdef double SLOPE_WEIGHT = 1e-2


cdef enum:
    ALPHA_C, BETA_C, ALPHA_N, BETA_N, ALPHA_R, BETA_R, GAMMA


cdef struct Step:        # one prediction and what it hangs on
    double log_turn_s, log_step_s
    double by_turn, by_network, by_gamma     # slopes of log_step_s
    double turn_s


@cython.cdivision(True)
cdef inline void fitting_step(const Measured* at, const double* perf, Step* step) noexcept nogil:
    cdef double network = TINY + TINY * at.beyond
    cdef double gamma = perf[GAMMA]
    cdef double turn_power, network_power, total, log_total
    if at.link == 1:
        network = perf[ALPHA_N] + perf[BETA_N] * at.beyond
    elif at.link == 2:
        network = perf[ALPHA_R] + perf[BETA_R] * at.beyond
    step.turn_s = perf[ALPHA_C] + perf[BETA_C] * at.atomic
    step.log_turn_s = log(step.turn_s)
    turn_power = pow(step.turn_s, gamma)
    network_power = pow(network, gamma)
    total = turn_power + network_power
    log_total = log(total)
    step.log_step_s = log_total / gamma
    step.by_turn = turn_power / step.turn_s / total
    step.by_network = network_power / network / total
    step.by_gamma = (step.log_turn_s * turn_power + log(network) * network_power) / total / gamma
    step.by_gamma -= log_total / (gamma * gamma)


@cython.cdivision(True)
cdef double fitting_loss(const Measured* measured, int64_t count, const double* perf, double* slope) noexcept nogil:
    """The loss of seven parameters, and its slope in each of them."""
    cdef double[PARAMETERS] turn_slope
    cdef double[PARAMETERS] step_slope
    cdef double turn_error = 0.0, step_error = 0.0, off, ratio, ratios = 0.0
    cdef Step step
    cdef int64_t i
    cdef int p
    for p in range(PARAMETERS):
        turn_slope[p] = 0.0
        step_slope[p] = 0.0
    for i in range(count):
        fitting_step(&measured[i], perf, &step)
        off = step.log_turn_s - measured[i].log_turn_s
        turn_error += off * off
        turn_slope[ALPHA_C] += off / step.turn_s
        turn_slope[BETA_C] += off / step.turn_s * measured[i].atomic
        off = step.log_step_s - measured[i].log_step_s
        step_error += off * off
        step_slope[ALPHA_C] += off * step.by_turn
        step_slope[BETA_C] += off * step.by_turn * measured[i].atomic
        step_slope[GAMMA] += off * step.by_gamma
        if measured[i].link > 0:
            p = ALPHA_N if measured[i].link == 1 else ALPHA_R
            step_slope[p] += off * step.by_network
            step_slope[p + 1] += off * step.by_network * measured[i].beyond
    turn_error = sqrt(turn_error / count)
    step_error = sqrt(step_error / count)
    for p in range(PARAMETERS):
        slope[p] = 0.0
        if turn_error > 0:               # at no error at all there is no way down
            slope[p] += turn_slope[p] / (count * turn_error)
        if step_error > 0:
            slope[p] += step_slope[p] / (count * step_error)
    slope[GAMMA] += 2 * OVERLAP_WEIGHT * (perf[GAMMA] - 1)
    for p in range(ALPHA_N, GAMMA, 2):
        ratio = perf[p + 1] / perf[p]
        ratios += ratio * ratio
        slope[p] -= 2 * SLOPE_WEIGHT * ratio * ratio / perf[p]
        slope[p + 1] += 2 * SLOPE_WEIGHT * ratio / perf[p]
    return turn_error + step_error + OVERLAP_WEIGHT * (perf[GAMMA] - 1) ** 2 + SLOPE_WEIGHT * ratios


cdef class Observations:
    """Measured step times of one job on one kind of GPU, seconds: a turn alone, and the step with its update."""

    cdef Measured* measured
    cdef int64_t count

    def __cinit__(self, const int64_t[::1] nodes, const int64_t[::1] replicas, const int64_t[::1] atomic,
                  const double[::1] turn_s, const double[::1] step_s):
        cdef Py_ssize_t i
        cdef Measured* at
        self.count = nodes.shape[0]
        self.measured = <Measured*> malloc(max(1, self.count) * sizeof(Measured))
        if self.measured == NULL:
            raise MemoryError
        for i in range(self.count):
            at = &self.measured[i]
            at.atomic = <double> atomic[i]
            at.beyond = replicas[i] - 2 if replicas[i] > 2 else TINY
            at.link = 1 if nodes[i] > 1 else 2 if replicas[i] > 1 else 0
            at.log_turn_s, at.log_step_s = log(turn_s[i]), log(step_s[i])

    def __dealloc__(self):
        free(self.measured)

    def loss(self, const double[::1] perf, double[::1] slope):
        """The loss of seven parameters; their slopes go to ``slope``."""
        return fitting_loss(self.measured, self.count, &perf[0], &slope[0])
