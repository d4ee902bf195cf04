"""What training really comes to: recorded epochs, and step times where a job stands.

Step times that need a search or a triangulation are asked of Python once and kept by the samples of a turn.
"""

cimport cython
from libc.math cimport isnan
from libc.stdint cimport int64_t


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
            self.curve.gradients(batch, epoch)         # tells what is wrong
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
