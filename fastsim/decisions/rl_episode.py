"""One episode of an agent: a run of the engine that stops before each pod that some node can host."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastsim.engine.online.recorder import tables_and_provenance
from fastsim.engine.online.run import BATCH_ROWS, OnlineOptions, OnlineRun
from fastsim.engine.result import Result
from fastsim.errors import ScenarioError, suggestion
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.simulate import prepared
from fastsim_ext.online.stepped_loop import NODE_FEATURES, POD_FEATURES, SteppedLoop

REWARDS = ("placed", "allocation", "fragmentation", "power")
"""Quantities of a reward: pods placed, GPUs allocated, GPUs not fragmented, kW not drawn; in the order of the loop."""


class Episode:
    """A run that stops for each decision; the observation is in three arrays."""

    def __init__(self, run: OnlineRun, stepping: SteppedLoop) -> None:
        self.run, self.stepping, self.nodes = run, stepping, len(run.cluster)
        self.node__nf = np.zeros((self.nodes, len(NODE_FEATURES)), np.float32)
        self.pod__f = np.zeros(len(POD_FEATURES), np.float32)
        self.mask = np.zeros(self.nodes, np.int8)
        self.began = time.perf_counter()
        self.over = not stepping.begin(self.node__nf, self.pod__f, self.mask)
        if self.over:
            raise ScenarioError("workload", "no pod that any node can host", "one at least")

    def step(self, node: int) -> float:
        """Place the pod on a node (-1: the plan's choice); the reward."""
        if self.over:
            raise ScenarioError("step", "an episode that is over", "reset() before it")
        reward, more = self.stepping.step(node, self.node__nf, self.pod__f, self.mask)
        self.over = not more
        return reward

    def result(self) -> Result:
        """The result of the finished run."""
        if not self.over:
            raise ScenarioError("result", "an episode that goes on", "one that is over")
        self.run.online.finish(self.run.collect_records)
        self.run.collect_records()
        frames, provenance = tables_and_provenance(self.run)
        wall_s = time.perf_counter() - self.began
        return Result(frames, provenance, {"wall_s": wall_s, "pods_per_s": self.run.pods / wall_s})


def episode(scenario: Mapping[str, Any], reward__t: npt.NDArray[np.float64], options: OnlineOptions) -> Episode:
    """An episode of this scenario at its first decision; ``{seed}`` in texts is the seed of the options."""
    fields: dict[str, Any] = {key: value.replace("{seed}", str(options.seed)) if isinstance(value, str) else value
            for key, value in scenario.items()}  # fmt: skip
    inputs = prepared(Scenario(**fields, seed=options.seed, record=options.record))
    run = OnlineRun(inputs.cluster, inputs.workload, replace(inputs.plan, queue="drop"), inputs.typical, options)
    if run.queue_loop is not None or len(run._loop_options()["change_t"]):
        raise ScenarioError("environment", "rules of pods, or nodes that come and go", "plain pods on plain nodes")
    count, stale = max(run.typical.kept, 1), np.ones(len(inputs.cluster), np.uint8)
    stepping = SteppedLoop(run.nodes, run.work, run.select, run._loop_options(), reward__t, stale, count)
    run.online = stepping
    table = pa.Table.from_batches(list(inputs.workload.batches(BATCH_ROWS)))
    batch = table.combine_chunks().to_batches()[0]
    run.recorder.arrivals(batch)
    columns = run.number(batch)
    if columns.node is not None:
        raise ScenarioError("environment", "pods that run already", "pods that all arrive")
    run.online.feed(*columns, True)
    return Episode(run, stepping)


def rewards(wanted: str | Mapping[str, float]) -> npt.NDArray[np.float64]:
    """Weights of ``REWARDS`` from one name, or from weights by name."""
    weights = {wanted: 1.0} if isinstance(wanted, str) else wanted
    for name in weights:
        if name not in REWARDS:
            raise ScenarioError("reward", repr(name), f"one of {', '.join(REWARDS)}", suggestion(name, REWARDS))
    return np.array([float(weights.get(name, 0.0)) for name in REWARDS])
