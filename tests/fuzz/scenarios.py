"""Scenarios and sweeps in TOML, policies, and texts of clusters and workloads, with changed words and values."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import fastsim as fs
from fastsim.cluster.cluster import Cluster
from fastsim.experiments.sweep.sweep import sweep_from_toml
from fastsim.foundation.limits.work_budget import CHOICE
from fastsim.policies import registry
from fastsim.scenario.run_inputs import workload_from
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.simulate import played
from tests.fuzz import mutation, trial
from tests.fuzz.trial import Trial

BUDGET = "0.00005"
"""Factor on budgets of work: what is larger than a small case must be refused before it begins."""
LATEST_S = 20_000.0
"""Latest end of a run."""
_PODS = {"cluster": "openb:6", "workload": "synth:openb?pods=30&seed=1&rate_per_hour=60"}
_JOBS = {"cluster": "gavel:2:2:2", "workload": "synth:gavel?jobs=4&rate_per_hour=2&seed=3"}
SCENARIOS: tuple[dict[str, Any], ...] = (
    {**_PODS, "policy": "0.9*fgd + 0.1*pwr", "queue": "fifo-skip", "seed": 3, "sample_s": 60.0, "until_s": 4000.0,
     "inflation": 1.5, "deschedule": ["frag_one_pod:0.5"], "typical": "same"},
    {**_PODS, "policy": "best_fit", "queue": "las_skip", "preempt": "priority", "on_node_loss": "requeue",
     "checkpoint_every_s": 100.0, "restart_s": 2.0, "failures": "mtbf=20000,mttr=2000", "until_s": 50000.0},
    {**_PODS, "policy": "fgd", "queue": "drf", "quotas": "a:cpu_milli=4000,gpu_milli=2000", "weights": "a=2,b=1",
     "telemetry": 30.0, "maintenance": [["openb-node-0000", 5.0, 60.0]]},
    {**_JOBS, "policy": "max_min_fairness(mode=packed)", "round_s": 360.0, "window": "1:3", "until_s": 200000.0,
     "profiling": 0.5, "references": 2, "ideal": False, "global_queue": False},
    {**_JOBS, "policy": "srtf", "realloc_s": 60.0, "begin_s": 0.0, "compat": "gavel"},
    {"cluster": "sia:1:0:0", "workload": "synth:sia?jobs=2", "policy": "pollux", "until_s": 3000.0,
     "interference": 0.1},
    {"cluster": "uniform?nodes=1&gpu=T4&gpus=2", "workload": "synth:detectors?jobs=2", "policy": "monitored"},
)  # fmt: skip
SWEEPS: tuple[dict[str, Any], ...] = (
    {
        **_PODS,
        "policy": ["fgd", "best_fit"],
        "seed": [0, 1],
        "record": "summary",
        "zip": [{"queue": ["drop", "fifo"], "inflation": [1.0, 1.2]}],
    },
    {
        "cluster": ["gavel:2:2:2"],
        "policy_names": "gavel",
        "policy": ["fifo", "max_min_fairness_perf"],
        "seed": [0, 1],
        "rate_per_hour": {"from": 0, "to": 0.4, "points": 3},
        "window": "1:3",
        "compat": "gavel",
        "cutoff_rates": {"gavel:2:2:2": {"fifo": 0.3}},
    },
    {
        "cluster": "openb:6",
        "workload": "synth:openb?pods={n}&seed={seed}",
        "vars": {"n": [10, 20]},
        "seed": [1, 2],
        "policy": "fgd",
    },
)
SUMS = (
    "0.9*fgd + 0.1*pwr",
    "dot_product(dim=share)/2 + gpu_packing",
    "las + tune",
    "srtf + greedy + place",
    "2*(fgd + best_fit)",
)
"""Policies of several parts."""
CLUSTERS = (
    "openb",
    "openb:20?watts=x.csv",
    "uniform?nodes=3&gpu=T4&gpus=2&cpu_milli=9000",
    "mix?g2=10&t4=4&seed=1",
    "gavel:2:2:2?per_server=2:2:1",
    "sia:1:0:1",
    "synergy:2?cpus=24",
    "openb-all:5?shuffle=3",
    "uniform?nodes=1&gpu=A100-80GB&mig=7*1g.10gb",
)
WORKLOADS = (
    "synth:openb?pods=20&seed=3&rate_per_hour=5.5&tune=1.3&tune_seed=2", "synth:openb?pods=20&load=0.8&cluster=openb:5",
    "synth:gavel?jobs=5&rate_per_hour=2&seed=3&multi_gpu=true&priorities=true&slos=true&durations=600",
    "synth:gavel-trace?jobs=5&rate_per_hour=2&seed=3", "synth:synergy?jobs=4&rate_per_hour=9&split=20:70:10&seed=3",
    "synth:detectors?jobs=4&over=20&unit=1", "synth:sia?jobs=3&style=helios&seed=2&rate_per_hour=20",
)  # fmt: skip


def _toml(values: dict[str, Any]) -> str:
    """TOML of a tree; what TOML cannot say becomes an inline JSON value, valid or not."""
    return "".join(f"{_key(name)} = {_value(value)}\n" for name, value in values.items())


def _key(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(name)} = {_value(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float) and not isinstance(value, bool):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def _file(seeds: tuple[dict[str, Any], ...], draw: random.Random) -> bytes:
    seed = draw.choice(seeds)
    if draw.random() < 0.3:
        return mutation.raw(mutation.text(_toml(seed), draw), draw)
    changed = mutation.tree(seed, draw)
    return mutation.raw(_toml(changed) if isinstance(changed, dict) else str(changed), draw)


def _small(tried: Trial) -> Trial:
    """The trial with budgets for small cases, which hold for no other target of the process."""
    return partial(_within_budget, tried)


def _within_budget(tried: Trial, seed: int) -> str:
    with patch.dict(os.environ, {CHOICE: BUDGET}):
        return tried(seed)


def scenario() -> Trial:
    """Scenarios in TOML, checked and run."""
    path = trial.folder("scenario") / "run.toml"

    def used(data: bytes) -> None:
        path.write_bytes(data)
        read = Scenario.from_toml(path)
        read.check()
        assert read.id
        # What takes many seconds of work as it should is no finding.
        end_s = min(LATEST_S, LATEST_S if read.until_s is None else read.until_s)
        result, _ = played(read.with_(out=None, log=None, until_s=end_s))
        for table in (result.summary, result.jobs) if read.record == "all" else (result.summary,):
            trial.require_sound(table)

    return _small(trial.of(lambda draw: _file(SCENARIOS, draw), used))


def sweep() -> Trial:
    """Sweeps in TOML: the list of their runs."""
    path = trial.folder("sweep") / "sweep.toml"

    def used(data: bytes) -> None:
        path.write_bytes(data)
        assert all(run.name is not None for run in sweep_from_toml(path))

    return _small(trial.of(lambda draw: _file(SWEEPS, draw), used))


def _with_parameters(name: str) -> str:
    """The policy with its defaults written out."""
    known = registry.describe(name).parameters
    return f"{name}({', '.join(f'{one.name}={one.default}' for one in known if one.default is not None)})"


def policies() -> Trial:
    """Texts of policies, and runs of what they are."""
    texts = (*SUMS, *map(_with_parameters, registry.names()))

    def used(text: str) -> None:
        read: Any = registry.parse(text)
        assert str(read)
        for fixed in (_PODS, {**_JOBS, "until_s": LATEST_S}):
            try:
                result = fs.simulate(**fixed, policy=text, record="summary")
            except fs.errors.FastsimError as error:
                trial.refuse_unclear(str(error))
            else:
                trial.require_sound(result.summary)

    return _small(trial.of(lambda draw: mutation.text(texts, draw), used))


def clusters() -> Trial:
    """Texts of clusters."""

    def used(text: str) -> None:
        cluster = Cluster.from_text(text)
        trial.require_sound(cluster.nodes)
        trial.require_sound(cluster.watts)

    return _small(trial.of(lambda draw: mutation.text(CLUSTERS, draw), used))


def workloads() -> Trial:
    """Texts of workloads."""
    cluster = Cluster.from_text("openb:6")

    def used(text: str) -> None:
        trial.require_sound(workload_from(text, cluster).workload.table())

    return _small(trial.of(lambda draw: mutation.text(WORKLOADS, draw), used))


TARGETS: dict[str, Callable[[], Trial]] = {
    "scenario TOML": scenario, "sweep TOML": sweep, "policy texts": policies, "cluster texts": clusters,
    "workload texts": workloads,
}  # fmt: skip
"""Trials by name."""
