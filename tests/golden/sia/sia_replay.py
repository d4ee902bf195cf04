"""Recorded runs of Sia played again by hand: jobs run, measure and choose batch sizes where the recording puts them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from fastsim.performance.applications.application import Application, Split, fixed_split
from fastsim.performance.applications.sia_folders import ESTIMATED_RESTART_S, SLOWDOWN, USUAL_RESTART_S
from fastsim.performance.applications.step_times import Placement
from fastsim.performance.goodput import BatchLimits, Goodput, Noise, Perf
from fastsim.performance.step_time_fit import Observation, fitted
from fastsim.policies.deciders.configurations import Configurations, NodeShape
from fastsim.policies.deciders.goodput_table import KnownGoodput, goodput_row, grown_replicas
from fastsim.policies.deciders.sia_program import Singles, keeping
from tests.golden.sia.sia import SIA, golden_applications, recorded

ROUND_S = 60
NO_SPLIT = Split(0, 0)
GPUS_PER_NODE = {"aws": (4, 16), "dgx-ext": (8, 2), "rtx": (8, 3)}
"""GPUs of a node, and most nodes of a job."""
Known_at = tuple[int, int, int, int, int]
"""Samples a GPU takes at once, extra turns, epoch, restarts (-1 = never started), seconds of restart left."""


@dataclass
class ReplayedJob:
    """A job of the original's executor; times are seconds."""

    name: str
    app: Application
    submit_s: float
    batch: int
    model: str = ""
    placement: Placement = ()
    split: Split = NO_SPLIT
    progress: float = 0.0
    epoch: int = 0
    restart_s: float = 0.0
    restarts: int = -1
    end_s: float | None = None
    clock_s: float = 0.0
    noise: Noise | None = None
    seen: dict[str, dict[tuple[int, int, int], Observation]] = field(default_factory=dict)
    perf: dict[str, Perf] = field(default_factory=dict)

    @property
    def state(self) -> Known_at:
        """What the recording tells of it, but for its progress."""
        return *self.split, self.epoch, self.restarts, int(self.restart_s)

    def step(self, seconds: float) -> None:
        """Let so much time pass."""
        if self.end_s is not None:
            return
        if self.placement:
            delay_s = min(self.restart_s, seconds)
            self.clock_s, self.restart_s, seconds = self.clock_s + delay_s, self.restart_s - delay_s, seconds - delay_s
            while seconds > 0 and self.end_s is None:
                seconds = self._run(seconds)
                self.split = self._choice()
        self.clock_s += seconds

    def _run(self, seconds: float) -> float:
        """Train to the end of the epoch or of the time; the time that is left."""
        atomic, accum = self.split
        scale = sum(self.placement) * atomic * (accum + 1) / self.app.init_batch
        sqr, var = self.app.curve.gradients(scale * self.app.init_batch, self.epoch)
        step = self.app.on(self.model).seconds(self.placement, atomic)
        self._measure(Noise(sqr, var, self.app.init_batch), step.turn_s, step.step_s)
        gain = (var + sqr) / (var / scale + sqr)
        rate = gain / (step.step_s + step.turn_s * accum) * (1 / self.app.slowdown)
        next_epoch = self.app.curve.progress(self.epoch + 1)
        if self.progress + rate * seconds < next_epoch:
            self.progress += rate * seconds
            self.clock_s += seconds
            return 0.0
        taken_s = round((next_epoch - self.progress) / rate)
        self.epoch, self.progress, self.clock_s = self.epoch + 1, next_epoch, self.clock_s + taken_s
        if self.epoch == self.app.curve.epochs:
            self.end_s = self.clock_s
        return seconds - taken_s

    def _measure(self, noise: Noise, turn_s: float, step_s: float) -> None:
        """Learn the noise, and step times of a configuration that is new on this GPU model."""
        self.noise = noise
        key = len(self.placement), sum(self.placement), self.split.atomic
        seen = self.seen.setdefault(self.model, {})
        if key not in seen:
            seen[key] = Observation(*key, turn_s, step_s)
            self.perf[self.model] = fitted(seen.values())

    def _choice(self) -> Split:
        """The best batch size in the present place, or the smallest while nothing is known."""
        times, gpus = self.app.on(self.model), sum(self.placement)
        high = times.largest(self.placement)
        model = self._goodput(self.model)
        if model is None:
            batch = max(self.app.init_batch, times.low * gpus)
            split = fixed_split(batch, gpus, high, self.app.max_batch, int(gpus == 1 and batch > self.app.init_batch))
        else:
            best = model.best(len(self.placement), gpus, BatchLimits(self.app.max_batch, times.low, high))
            split = Split(int(best.atomic[0]), int(best.accum[0]))
        most = min(times.largest_on(gpus) or split.atomic, self.app.max_batch // (gpus * (split.accum + 1)))
        return Split(min(split.atomic, most), split.accum)

    def _goodput(self, model: str) -> Goodput | None:
        if self.noise is None or model not in self.perf:
            return None
        return Goodput(self.perf[model], self.noise)

    def put(self, model: str, placement: Placement) -> None:
        """Move the job; the same numbers of GPUs on other nodes cost nothing."""
        if (model, placement) == (self.model, self.placement):
            return
        self.model, self.placement = model, placement
        if placement:
            self.split, self.restart_s, self.restarts = self._choice(), self.app.restart_s, self.restarts + 1
        else:
            self.split = self.split._replace(atomic=0)

    def kept(self, now_s: float) -> float:
        """What another restart leaves, as the scheduler sees it."""
        age, count = np.array([now_s - self.submit_s]), np.array([max(self.restarts, 0)])
        return float(keeping(age, count, np.array([self.app.believed_restart_s]))[0])

    def row(self, sizes: Configurations) -> Singles:
        """What the scheduler thinks of each configuration."""
        models = [group.gpu_model for group in sizes.groups]
        low = [self.app.on(model).low for model in models]
        widest = [max((gpus for _, gpus, _ in self.seen.get(model, {})), default=0) for model in models]
        most = max(grown_replicas(w, self.app.max_batch, lo) for w, lo in zip(widest, low, strict=True))
        known = []
        for model in models:
            times = self.app.on(model)
            known.append(
                KnownGoodput(self._goodput(model), BatchLimits(self.batch, times.low, times.high, float32=True), most)
            )
        ratio = {
            (c, d): self.app.rate_ratio(one, other) for c, one in enumerate(models) for d, other in enumerate(models)
        }
        return goodput_row(known, ratio, sizes)


@dataclass(frozen=True)
class Replay:
    """One recorded run."""

    name: str

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What the recording says of itself."""
        found: dict[str, Any] = json.loads((SIA / f"runs/{self.name}/summary.json").read_text())
        return found

    @cached_property
    def sizes(self) -> Configurations:
        """The cluster."""
        nodes = self.summary["nnodes"]
        return Configurations(tuple(NodeShape(m, nodes[m], *GPUS_PER_NODE[m]) for m in sorted(nodes)))

    def jobs(self) -> list[ReplayedJob]:
        """All jobs before anything happened."""
        path = SIA / "input/workloads" / self.summary["workload"].replace("/", "-")
        batches = dict(pl.read_csv(path).select("name", "batch_size").iter_rows())
        rows = recorded(SIA / f"runs/{self.name}/jobs.csv").select("name", "application", "submission_time")
        return [ReplayedJob(name, measured(app), submit_s, batches[name]) for name, app, submit_s in rows.iter_rows()]

    def rounds(self, until_s: float) -> Iterator[tuple[float, list[ReplayedJob], dict[str, dict[str, Any]]]]:
        """The end of each round's work, the jobs that are there, and where the recording puts each of them next."""
        table = recorded(SIA / f"runs/{self.name}/rounds.parquet").filter(pl.col("time") <= until_s)
        parts = table.with_columns(pl.col(pl.Categorical).cast(pl.String)).partition_by("time", as_dict=True)
        jobs = self.jobs()
        for (now_s,), part in sorted(parts.items()):
            for job in jobs:
                while job.clock_s < now_s and job.end_s is None:
                    job.step(ROUND_S)
            active = [job for job in jobs if job.submit_s <= now_s and job.end_s is None]
            yield now_s, active, {row["job"]: row for row in part.iter_rows(named=True)}


def measured(name: str) -> Application:
    """A recorded application with what the original's text says of it."""
    estimated, slowdown = ESTIMATED_RESTART_S.get(name, USUAL_RESTART_S), SLOWDOWN.get(name, 1.0)
    return replace(golden_applications()[name], believed_restart_s=estimated, slowdown=slowdown)


def placed_at(row: dict[str, Any]) -> tuple[str, Placement]:
    """GPU model and placement of a recorded row."""
    return row["gpu_type"] or "", tuple(int(gpus) for gpus in row["placement"].split("-") if gpus)


def recorded_state(row: dict[str, Any]) -> Known_at:
    """State of a recorded row."""
    return row["atomic_bsz"], row["accum_steps"], row["epoch"], row["num_restarts"], row["rescale_time"]


def adaptive_runs() -> list[str]:
    """Recorded runs of Sia in which every job is adaptive."""
    found = []
    for path in sorted((SIA / "runs").glob("*/summary.json")):
        known = (SIA / "input/workloads" / json.loads(path.read_text())["workload"].replace("/", "-")).is_file()
        roles = recorded(path.parent / "jobs.csv")["category"].fill_null("").unique().to_list()
        if json.loads(path.read_text())["policy"] == "sia" and known and set(roles) <= {"", "adaptive"}:
            found.append(path.parent.name)
    return found


def is_close(one: float, other: float) -> bool:
    """Progress within the recordings' own bar."""
    return math.isclose(one, other, rel_tol=1e-9)
