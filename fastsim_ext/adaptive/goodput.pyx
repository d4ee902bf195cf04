"""Goodput of a training job whose batch size may change: samples a second, each weighed by what it teaches.

A step takes ``accum`` turns of arithmetic alone and one in which gradients cross the network meanwhile:

    turn_s = alpha_c + beta_c * atomic        network_s = alpha + beta * max(replicas - 2, 0)
    step_s = accum * turn_s + (turn_s ** gamma + network_s ** gamma) ** (1 / gamma)

A sample of a batch that is ``scale`` times the initial one teaches (var + sqr) / (var / scale + sqr) / scale as much.
Floating-point operations stand in the order of the published model: the best batch size hangs on their last bits.
"""

cimport cython
from libc.math cimport ceil, exp, log, log10, pow
from libc.stdint cimport int64_t

cdef enum:
    FIRST_MICRO = 1      # samples of a micro-batch in a pipeline

cdef double TINY = 1e-8                 # stands for no time at all, and for no GPU beyond two
cdef double TOLERANCE = 1e-8            # how far above a whole number is still that number
cdef double STAGED_WORTH = 100.0        # a pipeline's goodput is in a unit of its own


cdef inline double turn_s(const Perf* perf, int64_t atomic) noexcept nogil:
    return perf.alpha_c + perf.beta_c * atomic


cdef inline double network_s(const Perf* perf, int64_t nodes, int64_t replicas, double tiny) noexcept nogil:
    cdef double beyond = replicas - 2 if replicas > 2 else tiny
    if nodes > 1:
        return perf.alpha_n + perf.beta_n * beyond
    if replicas > 1:
        return perf.alpha_r + perf.beta_r * beyond
    return TINY + TINY * beyond


@cython.cdivision(True)
cdef inline double goodput_rate(const Perf* perf, double network_power, int64_t replicas, int64_t atomic,
                                int64_t accum) noexcept nogil:
    """Samples/s, from the network's time to the power of gamma."""
    cdef double turn = turn_s(perf, atomic)
    cdef double last = exp(log(pow(turn, perf.gamma) + network_power) / perf.gamma)
    return replicas * atomic * (accum + 1) / (accum * turn + last)


cdef double goodput_throughput(const Perf* perf, int64_t nodes, int64_t replicas, int64_t atomic,
                               int64_t accum) noexcept nogil:
    """Samples/s of all GPUs together."""
    cdef double network_power = pow(network_s(perf, nodes, replicas, TINY), perf.gamma)
    return goodput_rate(perf, network_power, replicas, atomic, accum)


@cython.cdivision(True)
cdef double goodput_efficiency(const Noise* noise, double batch) noexcept nogil:
    """Statistical efficiency of a sample, relative to one in a batch of the initial size."""
    cdef double scale = batch / noise.init_batch
    cdef double expected = noise.var / scale + noise.sqr
    cdef double gain = (noise.var + noise.sqr) / expected if expected > 0 else 1.0
    return gain / scale


@cython.cdivision(True)
cdef void goodput_grid(Grid* grid, double start, double stop, bint float32) noexcept nogil:
    """Candidates evenly spaced in the logarithm, both ends exact; a start above the stop is allowed."""
    cdef double first, step, place, difference
    cdef float first32, last32, step32
    cdef int i
    if grid.made and grid.start == start and grid.stop == stop and grid.float32 == float32:
        return
    grid.start, grid.stop, grid.float32, grid.made = start, stop, float32, True
    if float32:
        first32, last32 = <float> log10(start), <float> log10(stop)
        step32 = (last32 - first32) / <float> (CANDIDATES - 1)
        for i in range(CANDIDATES):
            place = <float> (<float> i * step32) + first32
            grid.batch[i] = <float> pow(10.0, <float> place)
    else:
        first = log10(start)
        difference = log10(stop) - first
        step = difference / (CANDIDATES - 1)
        for i in range(CANDIDATES):
            grid.batch[i] = pow(10.0, i * step + first)
    grid.batch[0] = start
    grid.batch[CANDIDATES - 1] = stop


@cython.cdivision(True)
cdef inline void goodput_split(const Noise* noise, const Limits* limits, int64_t replicas, double batch,
                               bint float32, Choice* split) noexcept nogil:
    """Turns and samples of a turn that make up a batch size."""
    cdef double local = <float> batch / <float> replicas if float32 else batch / replicas
    cdef double turns
    split.accum = 0
    if limits.accumulation:
        if float32:
            turns = <float> (<float> (<float> local / <float> limits.high) - <float> TOLERANCE)
        else:
            turns = local / limits.high - TOLERANCE
        split.accum = <int64_t> ceil(turns) - 1
        # One GPU learns the noise from the difference between two turns.
        if replicas == 1 and local > noise.init_batch + TOLERANCE and split.accum < 1:
            split.accum = 1
    split.atomic = <int64_t> ceil(local / (split.accum + 1) - TOLERANCE)


cdef void goodput_best(const Perf* perf, const Noise* noise, const Limits* limits, int64_t nodes, int64_t replicas,
                       Grid* grid, Choice* best) noexcept nogil:
    """The batch size of most goodput and how it is split; the first of equals."""
    cdef bint float32 = limits.float32 and limits.tuned
    cdef double start = max(noise.init_batch, <double> (limits.low * replicas))
    cdef double network = network_s(perf, nodes, replicas, <float> TINY if limits.float32 else TINY)
    cdef double network_power = pow(network, perf.gamma)
    cdef double batch
    cdef Choice at
    cdef int i
    goodput_grid(grid, start if limits.tuned else <double> limits.max_batch, <double> limits.max_batch, float32)
    best.goodput = -1.0
    best.atomic, best.accum = -1, -1
    for i in range(CANDIDATES):
        goodput_split(noise, limits, replicas, grid.batch[i], float32, &at)
        if at.atomic == best.atomic and at.accum == best.accum:
            continue                    # neighbours often come to the same
        at.goodput = 0.0
        if limits.low <= at.atomic <= limits.high:
            batch = replicas * at.atomic * (at.accum + 1)
            at.goodput = (goodput_rate(perf, network_power, replicas, at.atomic, at.accum)
                          * goodput_efficiency(noise, batch))
            if at.goodput != at.goodput:  # of times that are no numbers: worth nothing, like what does not fit
                at.goodput = 0.0
        if at.goodput > best.goodput:
            best[0] = at


@cython.cdivision(True)
cdef void goodput_staged(const Perf* perf, const Noise* noise, int64_t max_batch, int64_t stages, int64_t micro,
                         int64_t nodes, int64_t pipelines, Choice* best) noexcept nogil:
    """Goodput of pipelines of ``stages`` GPUs that each work off ``micro`` micro-batches of one sample a step.

    A backward pass takes twice as long as the forward pass; gradients cross the network when all are done.
    """
    cdef double forward = turn_s(perf, FIRST_MICRO)
    cdef double network = network_s(perf, nodes, pipelines, TINY)
    cdef double step = 3 * ((stages - 1) * forward + micro * forward) + network
    cdef double batch = pipelines * micro
    best.atomic = FIRST_MICRO
    best.accum = micro - 1
    best.goodput = 0.0
    if batch <= max_batch:
        best.goodput = STAGED_WORTH * (batch / step) * goodput_efficiency(noise, batch)


cdef void goodput_read(const double* perf, const double* noise, Perf* seconds, Noise* gradients) noexcept nogil:
    """The structs from their fields in order."""
    seconds.alpha_c, seconds.beta_c = perf[0], perf[1]
    seconds.alpha_n, seconds.beta_n = perf[2], perf[3]
    seconds.alpha_r, seconds.beta_r = perf[4], perf[5]
    seconds.gamma = perf[6]
    gradients.sqr, gradients.var, gradients.init_batch = noise[0], noise[1], noise[2]


def evaluated(const double[::1] perf, const double[::1] noise, const int64_t[::1] nodes, const int64_t[::1] replicas,
              const int64_t[::1] atomic, const int64_t[::1] accum, double[::1] throughput, double[::1] efficiency):
    """Samples/s and what a sample teaches, for each configuration with its batch size.

    ``perf`` and ``noise`` hold the fields of the structs of these names in ``goodput.pxd``.
    """
    cdef Perf seconds
    cdef Noise gradients
    cdef Py_ssize_t i
    goodput_read(&perf[0], &noise[0], &seconds, &gradients)
    with nogil:
        for i in range(nodes.shape[0]):
            throughput[i] = goodput_throughput(&seconds, nodes[i], replicas[i], atomic[i], accum[i])
            efficiency[i] = goodput_efficiency(&gradients, <double> (replicas[i] * atomic[i] * (accum[i] + 1)))


def best(const double[::1] perf, const double[::1] noise, const int64_t[::1] nodes, const int64_t[::1] replicas,
         int64_t max_batch, int64_t low, int64_t high, bint accumulation, bint tuned, bint float32,
         double[::1] goodput, int64_t[::1] atomic, int64_t[::1] accum):
    """The best batch size of each configuration: goodput in samples/s, samples a GPU takes at once, extra turns."""
    cdef Perf seconds
    cdef Noise gradients
    cdef Limits limits
    cdef Grid grid
    cdef Choice choice
    cdef Py_ssize_t i
    goodput_read(&perf[0], &noise[0], &seconds, &gradients)
    limits.max_batch, limits.low, limits.high = max_batch, low, high
    limits.accumulation, limits.tuned, limits.float32 = accumulation, tuned, float32
    grid.made = False
    with nogil:
        for i in range(nodes.shape[0]):
            goodput_best(&seconds, &gradients, &limits, nodes[i], replicas[i], &grid, &choice)
            goodput[i], atomic[i], accum[i] = choice.goodput, choice.atomic, choice.accum


def staged(const double[::1] perf, const double[::1] noise, const int64_t[::1] nodes, const int64_t[::1] pipelines,
           int64_t max_batch, int64_t stages, int64_t micro, double[::1] goodput):
    """Goodput of each configuration of pipelines, in a unit of its own."""
    cdef Perf seconds
    cdef Noise gradients
    cdef Choice choice
    cdef Py_ssize_t i
    goodput_read(&perf[0], &noise[0], &seconds, &gradients)
    with nogil:
        for i in range(nodes.shape[0]):
            goodput_staged(&seconds, &gradients, max_batch, stages, micro, nodes[i], pipelines[i], &choice)
            goodput[i] = choice.goodput
