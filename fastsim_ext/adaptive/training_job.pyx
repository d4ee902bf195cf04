"""A training job, and its inputs: training curves, step times by placement, fitted performance.

``TrainingJob`` counts the GPU time it has used. ``LearnedPerformance`` is a tree of measured step times: jobs with the
same history share one node of the tree, and so one fit. Reference: `tests.reference.rounds.adaptive_job`.
"""

cimport cython
from libc.math cimport NAN, ceil, isnan, rint
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memset
from fastsim_ext.adaptive.goodput cimport Choice, Limits, goodput_best
from fastsim_ext.memory cimport memory_grown

cdef enum:
    MICRO_BATCHES = 48   # of a pipeline in one step

cdef double TOLERANCE = 1e-8            # excess over a whole number that counts as rounding


@cython.final
cdef class TrainingJob:
    """A job; times in seconds, GPU seconds, batch sizes in samples. ``speed`` is 1 / the application's slowdown,
    ``undisturbed`` the part of it that other jobs on its nodes leave.
    """

    def __init__(self, int64_t id, TrainingCurveTable curve, LearnedPerformance learned, history__g, double submit_s,
                 int64_t batch,
                 int64_t gpus_requested, bint tuned, bint merged, double restart_s, double speed):
        self.id, self.curve, self.learned, self.history__g = id, curve, learned, history__g
        self.submit_s, self.batch, self.gpus_requested = submit_s, batch, gpus_requested
        self.tuned, self.merged = tuned, merged
        self.restart_s, self.speed = restart_s, speed
        self.restarts, self.undisturbed = -1, 1.0
        self.first_s = self.finish_s = self.left_s = NAN
        self.noise.init_batch = curve.init_batch

    @property
    def gradients(self):
        """Squared norm and variance of the gradients of its last batch; None before it has trained."""
        return (self.noise.sqr, self.noise.var) if self.noisy else None

    # ------------------------------------------------------------------ a round

    cdef int step(self, double seconds) except -1:
        """Train for some seconds, after what is left of a restart."""
        cdef double delay_s, gpus
        if self.placement is None:
            self.clock_s += seconds
            return 0
        gpus = self.placement.gpus
        self.held_s += seconds * gpus
        delay_s = min(self.restart_left_s, seconds)
        self.clock_s += delay_s
        self.service_s += delay_s * gpus
        self.wasted_s += delay_s * gpus
        self.delayed_s += delay_s
        self.restart_left_s -= delay_s
        seconds -= delay_s
        self.used_s += seconds * gpus
        while seconds > 0 and isnan(self.finish_s):
            seconds = self.train(seconds)
            self.pick()
        self.clock_s += seconds
        return 0

    cdef double train(self, double seconds) except? -1:
        """Train to the end of the epoch or of the time; the seconds that are left."""
        cdef PlacedStepTimes placement = self.placement
        cdef double batch = placement.replicas * self.atomic * (self.accum + 1)
        cdef double sqr, var, gain, rate, end, spent_s, step_s, sync_s, turn_s
        cdef int64_t turns = self.accum
        self.curve.noise_at(batch, self.epoch, &sqr, &var)
        self.noise.sqr, self.noise.var, self.noisy = sqr, var, True
        gain = (var + sqr) / (var / (batch / self.curve.init_batch) + sqr)
        if placement.stages > 1:                            # a pipeline's step is measured as a whole
            turns = 0
            placement.seconds(self.atomic * (self.accum + 1), &step_s, &sync_s)
        else:
            placement.seconds(self.atomic, &step_s, &sync_s)
        turn_s = step_s - sync_s
        self.learn(turn_s, step_s)
        rate = gain / (step_s + turn_s * turns) * self.speed * self.undisturbed
        end = self.curve.progress__e[self.epoch + 1]
        if self.progress + rate * seconds < end:
            self.progress += rate * seconds
            self.clock_s += seconds
            self.service_s += seconds * placement.gpus
            return 0.0
        spent_s = rint((end - self.progress) / rate)   # whole seconds; what is less is lost
        self.epoch += 1
        if self.epoch == self.curve.epochs:
            self.finish_s = self.clock_s + spent_s
        self.progress = end
        self.clock_s += spent_s
        self.service_s += spent_s * placement.gpus
        return seconds - spent_s

    cdef int learn(self, double turn_s, double step_s) except -1:
        """Fit step times again if this configuration is a new one."""
        cdef PlacedStepTimes placement = self.placement
        cdef int64_t about = 0 if self.merged else placement.group
        cdef int32_t history = self.history__g[about]
        if not self.learned.has(history, placement.nodes, placement.replicas, self.atomic):
            self.history__g[about] = self.learned.after(
                history, placement.nodes, placement.replicas, self.atomic, turn_s, step_s
            )
        return 0

    # ------------------------------------------------------------------ the batch size

    cdef void pick(self) noexcept:
        """Choose the batch size from here on."""
        cdef PlacedStepTimes placement = self.placement
        cdef int32_t history = self.history__g[0 if self.merged else placement.group]
        cdef Limits limits
        cdef Choice choice
        if placement.stages > 1:
            self.atomic, self.accum = 1, MICRO_BATCHES - 1
        elif not self.tuned:
            self.fix(<double> self.batch)
        elif not self.noisy or not history:
            self.fix(max(self.curve.init_batch, <double> (placement.low * placement.gpus)))
        else:
            limits.max_batch, limits.low, limits.high = <int64_t> self.curve.max_batch, placement.low, placement.high
            limits.accumulation, limits.tuned, limits.float32 = True, True, False
            goodput_best(&self.learned.rows[history].perf, &self.noise, &limits, placement.nodes, placement.gpus,
                         &placement.grid, &choice)
            self.atomic, self.accum = choice.atomic, choice.accum
        self.atomic = min(self.atomic, placement.seen)
        self.atomic = min(self.atomic, <int64_t> self.curve.max_batch // (placement.replicas * (self.accum + 1)))

    cdef void fix(self, double batch) noexcept:
        """Split a batch size into as few turns as fit; above the initial size one GPU takes two, to learn the noise."""
        cdef PlacedStepTimes placement = self.placement
        cdef double local = ceil(batch / placement.gpus - TOLERANCE)
        cdef int64_t most
        self.accum = <int64_t> ceil(local / placement.high - TOLERANCE) - 1
        if placement.gpus == 1 and batch > self.curve.init_batch:
            self.accum = max(self.accum, 1)
        most = <int64_t> self.curve.max_batch // (placement.gpus * (self.accum + 1))
        self.atomic = min(<int64_t> ceil(local / (self.accum + 1) - TOLERANCE), most)

    # ------------------------------------------------------------------ GPUs

    cdef void hold(self, double seconds) noexcept:
        """Add time in which it held its GPUs."""
        self.gpu_s += seconds * self.placement.gpus

    cdef void stay(self, double now_s) noexcept:
        """Begin a stay: it has GPUs that it did not have in the last round."""
        self.stays += 1
        if not isnan(self.left_s):
            self.paused_s += now_s - self.left_s
            self.left_s = NAN

    cdef void wait(self, double now_s) noexcept:
        """End a stay: it had GPUs and has none."""
        self.left_s = now_s
        self.preemptions += 1

    cdef void move(self, PlacedStepTimes placement, double now_s) noexcept:
        """Train on these GPUs from now on; a move to other nodes with as many GPUs each costs nothing."""
        if placement is self.placement:
            return
        self.placement = placement
        if placement is None:
            self.atomic = 0
            return
        self.pick()
        self.restart_left_s = self.restart_s
        self.restarts += 1
        if isnan(self.first_s):
            self.first_s = now_s


@cython.final
cdef class TrainingCurveTable:
    """A recorded training curve as tables."""

    def __init__(self, curve, progress__e, batch__b, sqr__eb, var__eb):
        self.curve = curve
        self.progress__e, self.batch__b, self.sqr__eb, self.var__eb = progress__e, batch__b, sqr__eb, var__eb
        self.epochs = self.sqr__eb.shape[0]
        self.init_batch, self.max_batch = self.batch__b[0], self.batch__b[self.batch__b.shape[0] - 1]

    cdef int noise_at(self, double batch, int64_t epoch, double* sqr, double* var) except -1:
        """Squared norm and variance of gradients in an epoch, linear between recorded batch sizes."""
        cdef int64_t hi = 0
        cdef double below, above, span
        if not self.init_batch <= batch <= self.max_batch:
            self.curve.gradients(batch, epoch)         # raises the error with its reason
            raise AssertionError("a batch size outside of the recorded ones")
        while self.batch__b[hi] < batch:
            hi += 1
        if self.batch__b[hi] == batch:
            sqr[0], var[0] = self.sqr__eb[epoch, hi], self.var__eb[epoch, hi]
            return 0
        below, above = batch - self.batch__b[hi - 1], self.batch__b[hi] - batch
        span = self.batch__b[hi] - self.batch__b[hi - 1]
        sqr[0] = (below * self.sqr__eb[epoch, hi] + above * self.sqr__eb[epoch, hi - 1]) / span
        var[0] = (below * self.var__eb[epoch, hi] + above * self.var__eb[epoch, hi - 1]) / span
        return 0


@cython.final
cdef class PlacedStepTimes:
    """A placement of one application on one group of nodes; a GPU takes ``low`` to ``high`` samples at once."""

    def __init__(self, int64_t group, ring, times, int64_t high, int64_t seen, step_s, sync_s):
        self.group, self.ring, self.times = group, ring, times
        self.nodes, self.gpus, self.stages = len(ring), sum(ring), times.stages
        self.replicas = self.gpus // self.stages
        self.low, self.high, self.seen = times.low, high, seen
        self.step_s, self.sync_s = step_s, sync_s
        self.grid.made = False

    cdef int seconds(self, int64_t atomic, double* step_s, double* sync_s) except -1:
        """Seconds of a step and of its network, with so many samples in a turn."""
        if not 0 < atomic < self.step_s.shape[0]:
            step_s[0], sync_s[0] = self.times.seconds(self.ring, atomic)
            return 0
        if isnan(self.step_s[atomic]):
            self.step_s[atomic], self.sync_s[atomic] = self.times.seconds(self.ring, atomic)
        step_s[0], sync_s[0] = self.step_s[atomic], self.sync_s[atomic]
        return 0


@cython.final
cdef class LearnedPerformance:
    """The tree; ``fit`` makes seven parameters from measurements (nodes, replicas, samples, turn and step seconds)."""

    def __cinit__(self, fit):
        self.fit, self.known = fit, {}
        self.room = 64
        self.rows = <Measurements*> memory_grown(NULL, self.room, sizeof(Measurements))
        memset(self.rows, 0, sizeof(Measurements))
        self.n = 1

    def __dealloc__(self):
        free(self.rows)

    cdef bint has(self, int32_t history, int64_t nodes, int64_t replicas, int64_t atomic) noexcept:
        """Whether this configuration was measured already."""
        cdef const Measurements* at
        while history:
            at = &self.rows[history]
            if at.atomic == atomic and at.replicas == replicas and at.nodes == nodes:
                return True
            history = at.parent
        return False

    cdef int32_t after(self, int32_t history, int64_t nodes, int64_t replicas, int64_t atomic, double turn_s,
                       double step_s) except -1:
        """The history after one more measurement."""
        key = (history, nodes, replicas, atomic, turn_s, step_s)
        choice = self.known.get(key)
        if choice is None:
            choice = self.known[key] = self.extended(history, nodes, replicas, atomic, turn_s, step_s, True)
        return choice

    cdef int32_t extended(self, int32_t history, int64_t nodes, int64_t replicas, int64_t atomic, double turn_s,
                          double step_s, bint fitted) except -1:
        cdef Measurements* new
        if self.n == self.room:
            self.rows = <Measurements*> memory_grown(self.rows, 2 * self.room, sizeof(Measurements))
            self.room *= 2
        new = &self.rows[self.n]
        memset(new, 0, sizeof(Measurements))  # rows that are not fitted are stored, too
        new.parent, new.nodes, new.replicas, new.atomic = history, nodes, replicas, atomic
        new.turn_s, new.step_s = turn_s, step_s
        new.most_replicas = max(self.rows[history].most_replicas, <int32_t> replicas)
        if fitted:
            perf = self.fit(self.measurements(self.n))
            new.perf = Perf(perf[0], perf[1], perf[2], perf[3], perf[4], perf[5], perf[6])
        self.n += 1
        return self.n - 1

    def fitted_once(self, measured):
        """The history of many measurements at once, all of them before any job trained; 0 without any."""
        cdef int32_t history = 0, last = len(measured) - 1, at
        for at, (nodes, replicas, atomic, turn_s, step_s) in enumerate(measured):
            history = self.extended(history, nodes, replicas, atomic, turn_s, step_s, at == last)
        return history

    def fitted_each(self, measured):
        """The history of many measurements, each fitted as if a job had come to it by training; 0 without any."""
        cdef int32_t history = 0
        for nodes, replicas, atomic, turn_s, step_s in measured:
            history = self.after(history, nodes, replicas, atomic, turn_s, step_s)
        return history

    def measurements(self, int32_t history):
        """All measurements of a history, the first one first."""
        cdef const Measurements* at
        choice = []
        while history:
            at = &self.rows[history]
            choice.append((at.nodes, at.replicas, at.atomic, at.turn_s, at.step_s))
            history = at.parent
        return choice[::-1]

    def parameters(self, int32_t history):
        """The fitted parameters of a history, and the most replicas in it."""
        cdef const Perf* p = &self.rows[history].perf
        perf = (p.alpha_c, p.beta_c, p.alpha_n, p.beta_n, p.alpha_r, p.beta_r, p.gamma)
        return perf, self.rows[history].most_replicas
