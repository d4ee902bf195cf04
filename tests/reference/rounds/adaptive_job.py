"""Adaptive jobs by hand: how one trains for some seconds, learns its step times, and picks its batch size.

A job trains epoch after epoch. Progress counts iterations of the initial batch size; a larger batch makes `gain` times
the progress of an initial one. What a job measures it fits, once for each configuration it meets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from fastsim.engine.adaptive.plan import NEVER, AdaptiveJob
from fastsim.performance.applications.application import TOLERANCE, Application, Split, fixed_split
from fastsim.performance.applications.step_times import MICRO_BATCHES, Placement, StepSeconds, StepTimes
from fastsim.performance.goodput import BatchLimits, Noise, Perf
from fastsim.performance.step_time_fit import STOP, Observation, fitted
from tests.reference.rounds.goodput import best

EVERYWHERE = ""
"""The GPU model of estimates that are merged."""


@dataclass
class JobByHand:
    """One job, in seconds and GPU seconds; ``tuned`` says whether it picks its batch size."""

    app: Application
    asked: AdaptiveJob
    tuned: bool = True
    merged: bool = False
    fit_stop: float = STOP
    model: str | None = None
    ring: Placement = ()
    atomic: int = 0
    accum: int = 0
    progress: float = 0.0
    epoch: int = 0
    clock_s: float = 0.0
    finish_s: float | None = None
    restart_left_s: float = 0.0
    undisturbed: float = 1.0
    restarts: int = NEVER
    service_s: float = 0.0
    wasted_s: float = 0.0
    used_s: float = 0.0
    noise: Noise | None = None
    measured: dict[str, dict[tuple[int, int, int], Observation]] = field(default_factory=dict)
    perf: dict[str, Perf] = field(default_factory=dict)

    @property
    def times(self) -> StepTimes:
        """Step times on the GPU model it is on."""
        assert self.model is not None
        return self.app.on(self.model)

    @property
    def gpus(self) -> int:
        """GPUs it has."""
        return sum(self.ring)

    @property
    def replicas(self) -> int:
        """Copies of the network that it trains."""
        return self.gpus // (self.times.stages if self.ring else 1)

    # ------------------------------------------------------------------ a round

    def step(self, seconds: float) -> None:
        """Train for some seconds, after what is left of a restart."""
        if self.finish_s is not None:
            return
        if not self.ring:
            self.clock_s += seconds
            return
        delay_s = min(self.restart_left_s, seconds)
        self.clock_s += delay_s
        self.service_s += delay_s * self.gpus
        self.wasted_s += delay_s * self.gpus
        self.restart_left_s -= delay_s
        seconds -= delay_s
        self.used_s += seconds * self.gpus
        while seconds > 0 and self.finish_s is None:
            seconds = self._train(seconds)
            self._pick()
        self.clock_s += seconds

    def _train(self, seconds: float) -> float:
        """Train to the end of the epoch or of the time; the seconds that are left."""
        curve, batch = self.app.curve, self.replicas * self.atomic * (self.accum + 1)
        sqr, var = curve.gradients(batch, self.epoch)
        self.noise = Noise(sqr, var, self.app.init_batch)
        gain = (var + sqr) / (var / (batch / self.app.init_batch) + sqr)
        rate = gain / self._step_s() * (1 / self.app.slowdown) * self.undisturbed
        end = curve.progress(self.epoch + 1)
        if self.progress + rate * seconds < end:
            self.progress += rate * seconds
            self.clock_s += seconds
            self.service_s += seconds * self.gpus
            return 0.0
        spent_s = float(round((end - self.progress) / rate))
        self.epoch += 1
        if self.epoch == curve.epochs:
            self.finish_s = self.clock_s + spent_s
        self.progress = end
        self.clock_s += spent_s
        self.service_s += spent_s * self.gpus
        return seconds - spent_s

    def _step_s(self) -> float:
        """Seconds between two updates; what was not measured before is learned."""
        staged = self.times.stages > 1
        found = self.times.seconds(self.ring, self.atomic * (self.accum + 1) if staged else self.atomic)
        self._learn(found)
        return found.step_s + found.turn_s * (0 if staged else self.accum)

    def _learn(self, found: StepSeconds) -> None:
        about = self._about()
        known, key = self.measured.setdefault(about, {}), (len(self.ring), self.replicas, self.atomic)
        if key not in known:
            known[key] = Observation(*key, found.turn_s, found.step_s)
            self.perf[about] = fitted(known.values(), self.fit_stop)

    def _about(self) -> str:
        assert self.model is not None
        return EVERYWHERE if self.merged else self.model

    # ------------------------------------------------------------------ the batch size

    def _pick(self) -> None:
        """The batch size from here on."""
        self.atomic, self.accum = self._split() if self.times.stages == 1 else Split(1, MICRO_BATCHES - 1)
        seen = self.times.largest_on(self.gpus)
        if seen is not None:
            self.atomic = min(self.atomic, seen)
        self.atomic = min(self.atomic, self.app.max_batch // (self.replicas * (self.accum + 1)))

    def _split(self) -> Split:
        gpus, low, high = self.gpus, self.times.low, self.times.largest(self.ring)
        perf = self.perf.get(self._about())
        if not self.tuned:
            batch = self.asked.batch_size
        elif self.noise is None or perf is None:
            batch = max(self.app.init_batch, low * gpus)
        else:
            limits = BatchLimits(self.app.max_batch, low, high)
            return Split(*best(perf, self.noise, limits, len(self.ring), gpus)[1:])
        return fixed_split(batch, gpus, high, self.app.max_batch, int(gpus == 1 and batch > self.app.init_batch))

    # ------------------------------------------------------------------ GPUs

    def move(self, model: str | None, ring: Sequence[int]) -> None:
        """Have these GPUs from now on; other nodes with as many GPUs each cost nothing."""
        if (model, tuple(ring)) == (self.model, self.ring):
            return
        self.model, self.ring = model, tuple(ring)
        if not self.ring:
            self.atomic = 0
            return
        self._pick()
        self.restart_left_s = self.app.restart_s
        self.restarts += 1


def ring_of(nodes: Sequence[int], most_nodes: int) -> Placement:
    """GPUs of each node around the ring; more nodes than were ever measured count as that many, evenly filled."""
    ring: list[int] = []
    for at, node in enumerate(nodes):
        if at and nodes[at - 1] == node:
            ring[-1] += 1
        else:
            ring.append(1)
    if len(ring) > most_nodes:
        each = math.ceil(len(nodes) / most_nodes - TOLERANCE)
        ring = [min(each, len(nodes) - start) for start in range(0, len(nodes), each)]
    return tuple(ring)
