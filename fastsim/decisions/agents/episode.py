"""One episode of an agent: a run of the engine that stops before each decision and continues with the agent's."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastsim.engine.online.arrivals import Arrivals
from fastsim.engine.online.options import OnlineOptions
from fastsim.engine.online.recorder import tables_and_provenance
from fastsim.engine.online.run import BATCH_ROWS, OnlineRun
from fastsim.engine.result import Result
from fastsim.errors import ScenarioError, kind_of, suggestion
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.engines.pods import prepared
from fastsim_ext.online.stepped_loop import NODE_FEATURES, POD_FEATURES, SteppedLoop
from fastsim_ext.online.stepped_queue import JOB_FEATURES, LINE_FEATURES, SteppedQueue

REWARDS = ("placed", "allocation", "fragmentation", "power")
"""Quantities of a reward: pods placed, GPUs allocated, GPUs not fragmented, kW not drawn; in the order of the loop."""
QUEUE_REWARDS = (*REWARDS, "waiting")
"""``REWARDS``, and hours of waiting, negative; for agents that serve a waiting line."""


class Episode:
    """A run that stops for each decision; its observation is ``node__nf``, ``mask`` and arrays of subclasses."""

    def __init__(self, run: OnlineRun, masked: int) -> None:
        self.run, self.nodes = run, len(run.cluster)
        self.node__nf = np.zeros((self.nodes, len(NODE_FEATURES)), np.float32)
        self.mask = np.zeros(masked, np.int8)
        self.start_wall_s, self.over = time.perf_counter(), False

    def _refuse_empty(self, has_decision: bool) -> None:
        if not has_decision:
            raise ScenarioError("workload", "no pod that any node can host", "one at least")

    def step(self, action: int) -> float:
        """Take a decision; the reward."""
        if self.over:
            raise ScenarioError("step", "an episode that is over", "reset() before it")
        reward, more = self._decided(action)
        self.over = not more
        return reward

    def _decided(self, action: int) -> tuple[float, bool]:
        """The reward of a decision, and whether another one is due."""
        raise NotImplementedError

    def observed(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays of the observation by name; the next step writes into them."""
        return {"nodes": self.node__nf, "mask": self.mask}

    def feasible(self) -> int:
        """How many nodes can host the pod, or jobs can start; of an episode that goes on."""
        raise NotImplementedError

    def result(self) -> Result:
        """The result of the finished run."""
        if not self.over:
            raise ScenarioError("result", "an episode that goes on", "one that is over")
        self.run.online.finish(self.run.collect_records)
        self.run.collect_records()
        frames, provenance = tables_and_provenance(self.run)
        wall_s = time.perf_counter() - self.start_wall_s
        return Result(frames, provenance, {"wall_s": wall_s, "pods_per_s": self.run.pods / wall_s})


class PlacementEpisode(Episode):
    """An episode whose decisions are the nodes of pods (-1: the plan's choice)."""

    def __init__(self, run: OnlineRun, stepping: SteppedLoop) -> None:
        super().__init__(run, len(run.cluster))
        self.stepping, self.pod__f = stepping, np.zeros(len(POD_FEATURES), np.float32)
        self._refuse_empty(stepping.begin(self.node__nf, self.pod__f, self.mask))

    def _decided(self, action: int) -> tuple[float, bool]:
        return self.stepping.step(action, self.node__nf, self.pod__f, self.mask)

    def observed(self) -> dict[str, npt.NDArray[Any]]:
        """States of nodes, the request of the pod, the nodes that can host it."""
        return {"nodes": self.node__nf, "pod": self.pod__f, "mask": self.mask}

    def feasible(self) -> int:
        """How many nodes can host the pod."""
        return self.stepping.count


class QueueEpisode(Episode):
    """An episode whose decisions are places of the waiting line: its pod starts; the number of places: none, yet."""

    def __init__(self, run: OnlineRun, serving: SteppedQueue) -> None:
        super().__init__(run, serving.places + 1)
        self.serving = serving
        self.job__kf = np.zeros((serving.places, len(JOB_FEATURES)), np.float32)
        self.line__f = np.zeros(len(LINE_FEATURES), np.float32)
        self._refuse_empty(serving.begin_line(self.node__nf, self.job__kf, self.line__f, self.mask))

    def _decided(self, action: int) -> tuple[float, bool]:
        return self.serving.serve(action, self.node__nf, self.job__kf, self.line__f, self.mask)

    def observed(self) -> dict[str, npt.NDArray[Any]]:
        """States of nodes, the first pods of the line, the line as a whole, the places that can start."""
        return {"nodes": self.node__nf, "jobs": self.job__kf, "line": self.line__f, "mask": self.mask}

    def feasible(self) -> int:
        """How many of the first pods of the line can start."""
        return int(self.mask[:-1].sum())


def episode(
    scenario: Mapping[str, Any], reward__t: npt.NDArray[np.float64], options: OnlineOptions
) -> PlacementEpisode:
    """An episode of this scenario at its first decision; ``{seed}`` in texts is the seed of the options."""
    run, columns = _run(scenario, options, "drop")
    stepping = SteppedLoop(run.nodes, run.work, run.select, run._loop_options(), reward__t, *_shown(run))
    run.online = stepping
    stepping.feed(*columns, True)
    return PlacementEpisode(run, stepping)


def queue_episode(
    scenario: Mapping[str, Any], reward__t: npt.NDArray[np.float64], options: OnlineOptions, places: int
) -> QueueEpisode:
    """As :func:`episode`, with a waiting line whose first ``places`` pods can be chosen."""
    run, columns = _run(scenario, options, "fifo")
    states, waiting = np.ascontiguousarray(reward__t[:-1]), float(reward__t[-1])
    serving = SteppedQueue(
        run.nodes, run.work, run.select, run._loop_options(), states, *_shown(run), waiting, places
    )  # fmt: skip
    run.online = serving
    serving.feed(*columns, True)
    return QueueEpisode(run, serving)


def _shown(run: OnlineRun) -> tuple[npt.NDArray[np.uint8], int]:
    """The marks of nodes that have to be looked at, and the count of typical pods."""
    return np.ones(len(run.cluster), np.uint8), max(run.typical.kept, 1)


def refuse_mistakes(scenario: Mapping[str, Any], seed: int, record: str = "none") -> None:
    """ScenarioError for fields that are wrong in every episode."""
    _seeded(scenario, seed, record).check()


def _seeded(scenario: Mapping[str, Any], seed: int, record: str) -> Scenario:
    """The scenario of an episode; ``{seed}`` in its texts is the seed."""
    fields: dict[str, Any] = {name: value.replace("{seed}", str(seed)) if isinstance(value, str) else value
            for name, value in scenario.items()}  # fmt: skip
    return Scenario(**fields, seed=seed, record=record)


def _run(scenario: Mapping[str, Any], options: OnlineOptions, queue: str) -> tuple[OnlineRun, Arrivals]:
    """A run of this scenario with its pods recorded, and their columns."""
    inputs = prepared(_seeded(scenario, options.seed, options.record))
    run = OnlineRun(inputs.cluster, inputs.workload, replace(inputs.plan, queue=queue), inputs.typical, options)
    if run.queue_loop is not None or len(run._loop_options()["change_t"]):
        raise ScenarioError("environment", "rules of pods, or nodes that come and go", "plain pods on plain nodes")
    table = pa.Table.from_batches(list(inputs.workload.batches(BATCH_ROWS)))
    batch = table.combine_chunks().to_batches()[0]
    run.recorder.arrivals(batch)
    columns = run.number(batch)
    if columns.node is not None:
        raise ScenarioError("environment", "pods that run already", "pods that all arrive")
    return run, columns


def rewards(wanted: str | Mapping[str, float], known: tuple[str, ...] = REWARDS) -> npt.NDArray[np.float64]:
    """Weights of the ``known`` quantities from one name, or from weights by name."""
    weights = {wanted: 1.0} if isinstance(wanted, str) else wanted
    if not isinstance(weights, Mapping):
        raise ScenarioError("reward", kind_of(wanted), f"a name or weights by name: {', '.join(known)}")
    for name, weight in weights.items():
        if name not in known:
            raise ScenarioError("reward", repr(name), f"one of {', '.join(known)}", suggestion(name, known))
        if isinstance(weight, bool) or not isinstance(weight, Real) or not isfinite(weight):
            raise ScenarioError(f"reward: {name}", kind_of(weight), "a finite number")
    return np.array([float(weights.get(name, 0.0)) for name in known])
