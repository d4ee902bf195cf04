"""Every option with a number either has a budget of work, or is known to multiply none."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import polars as pl
import pytest

import fastsim as fs
from fastsim.cli.grammar.durations import Duration
from fastsim.cluster.cluster import Cluster
from fastsim.cluster.published_specs import sia_nodes
from fastsim.engine.checkpoints.clock import Checkpoints
from fastsim.errors import FastsimError
from fastsim.experiments.capacity_plan import smallest_additions
from fastsim.experiments.load_limit import _Search, knees
from fastsim.experiments.statistics.intervals import paired
from fastsim.experiments.sweep.sweep import Sweep
from fastsim.foundation.limits.knobs import KNOBS
from fastsim.foundation.limits.work_budget import CHOICE
from fastsim.policies import registry
from fastsim.policies.online.preferred import Preferred
from fastsim.scenario.carbon import Carbon
from fastsim.scenario.outages import Outages
from fastsim.scenario.prices import Prices
from fastsim.scenario.scenario import Scenario
from fastsim.telemetry.prometheus import Prometheus
from fastsim.telemetry.telemetry import Telemetry
from fastsim.workload.generators.detectors import detectors
from fastsim.workload.generators.recipes import GENERATORS
from fastsim.workload.typical_pods import TypicalPods
from tests.cli.test_grammar import VERBS

pytestmark = pytest.mark.filterwarnings("ignore")

CLUSTERS = {"uniform": Cluster.uniform, "mix": Cluster.mix, "scaled": Cluster.scaled, "gavel": Cluster.from_gavel,
            "sia": sia_nodes, "synergy": Cluster.from_synergy}  # fmt: skip
SEED, PART, SIZE = "a seed", "a number of a formula", "the size of a request or node, which is compared, not counted"
TABLE, TEXT = "a file or table whose rows are read once", "its parts have entries of their own"
HARMLESS = {
    **dict.fromkeys(("seed", "synth:openb:seed", "synth:gavel:seed", "synth:gavel-trace:seed", "synth:sia:seed",
                     "synth:synergy:seed", "synth:detectors:seed", "mix:seed", "scaled:seed", "policy:sia:ties"), SEED),
    **dict.fromkeys(("cluster", "workload", "policy", "typical", "telemetry", "failures"), TEXT),
    **dict.fromkeys(("maintenance", "rates", "quotas", "weights", "retarget"), TABLE),
    "deschedule": "steps are given one by one, and each looks at the pods once",
    "mig:boards": "a bound: fewer boards are looked at", "synth:kubernetes:nodes": "at most 100,000, each a line",
    "synth:kubernetes:pods": "at most 1,000,000, each a line",
    "until_s": "ends a run; the samples and steps until then are counted",
    "record": "how much is kept; rows are counted by sample_s, and otherwise follow from pods",
    "begin_s": "the grid of the first round", "profiling": "a part of a table", "interference": PART,
    "references": "at most the workloads of a table",
    "checkpoint_s": "seconds of work: looked at between pieces of work of 0.1 s", "keep": "one checkpoint is kept",
    **dict.fromkeys(("queue", "gpu_pick", "preempt", "on_node_loss", "compat", "global_queue", "ideal", "name", "out",
                     "log", "telemetry:profiles", "telemetry:devices", "telemetry:epoch"), "no number"),
    "typical:threshold": PART, "typical:step": "the larger, the fewer requests", "typical:gpu_weight": PART,
    "synth:openb:gpu_spec_share": PART, "synth:sia:rigid_share": PART, "synth:sia:fixed_batch_share": PART,
    "synth:openb:rate_clip": PART, "synth:gavel:durations": PART, "synth:gavel-trace:min_h": PART,
    "synth:gavel-trace:max_h": PART, "synth:sia:gpus_per_node": SIZE, "synth:sia:max_gpus": SIZE,
    "synth:synergy:cpus_per_gpu": SIZE, "synth:detectors:over": SIZE,
    "synth:detectors:run_s": PART, "synth:detectors:least_s": PART,
    "synth:detectors:most_s": PART,
    **dict.fromkeys(("uniform:gpus", "uniform:cpu_milli", "uniform:memory_mib", "mix:max_pods", "synergy:cpus"), SIZE),
    "policy:gpushare:unit_mib": "memory over it is compared, not counted",
    **dict.fromkeys(("policy:monitored:variation", "policy:monitored:percentile", "policy:monitored:autocorrelation"),
                    PART),
    "policy:monitored:lag": "readings that are compared, of a window of fixed length",
    **dict.fromkeys(("synth:gavel:rate_per_hour", "synth:gavel-trace:rate_per_hour", "synth:gavel:mean_gap_s",
                     "synth:gavel-trace:mean_gap_s"), "time without jobs is skipped, and samples are counted"),
    "policy:monitored:requests_per_s": "requests are pods", "policy:monitored:burst": "requests are pods",
    "policy:allox:alpha": PART, "policy:planned:ahead": "at most 100", "policy:planned:makespan": PART,
    "policy:planned:fairness": PART, "policy:pollux:power": PART, "policy:pollux:fit_stop": "a fit ends at its steps",
    "policy:served:first_h": PART,
    **dict.fromkeys((f"policy:preferred:{field.name}" for field in dataclasses.fields(Preferred)
                     if field.name != "gpu_pick"), "a weight, at most 100"),
    "policy:sia:power": PART, "policy:sia:unserved": PART, "policy:sia:changed": PART,
    "policy:sia:measured_nodes": "rows of a table up to it", "policy:sia:measured_gpus": "rows of a table up to it",
    "policy:tiresias:queues": "at most 10,000", "policy:tiresias:first_h": PART, "policy:tiresias:factor": PART,
    **{f"policy:{name}:{field}": "a number that jobs are compared with" for field in ("starving_h", "admit")
       for name, module in registry.MODULES.items() if module == "orders"},
}  # fmt: skip
"""Options that multiply no work, and why."""
RATIO, COMPARED = "a ratio or difference that results are compared with", "a time or size that is compared, not counted"
HARMLESS |= {
    "explain:at": "ends the run that is repeated, whose rounds are counted",
    "fork:at_s": COMPARED, "export kubernetes:at_s": COMPARED, "plan:p95_wait_s": COMPARED,
    "plan:pod_duration_s": COMPARED,
    "sweep knee:growth": RATIO, "compare:tolerance": RATIO, "sweep stats:level": RATIO, "sweep stats:tie_within": RATIO,
    "report:columns": "1 or 2", "import openb:time_scale": "a factor of times",
    "monitor export:slice_s": "1 s to a day; files have readings, or are not written",
    "monitor serve:speed": "a factor of times; a reading is served when it is asked for",
    "serve-extender:limit_mib": COMPARED, "serve-extender:refresh_s": "read for a request, not oftener",
    **{f"{verb}:timeout_s": "a wait that is cut short"
       for verb in ("sweep run", "monitor import", "serve-extender")},
    **{f"{verb}:workers": "at most one for each run"
       for verb in ("sweep run", "sweep knee", "reproduce", "demo", "plan", "fairness")},
    **{f"profile synergy:{name}": "a size in a formula"
       for name in ("batch_size", "dataset_gb", "disk_mb_s", "gpus", "samples", "slack")},
    "plot:gpus": "a divisor", "plot:loads": "one for each run",
}  # fmt: skip
SAME = {
    "demo:nodes": "scaled:nodes",
    "demo:pods": "synth:openb:pods",
    "synth gavel:mean_gap_s": "synth:gavel:mean_gap_s",
}
"""Options of verbs that become another option."""
BUDGETED = {option for knob in KNOBS for option in knob.options}


def is_number(kind: object, default: object = None) -> bool:
    """Whether a parameter is a number, or a text or tuple of some."""
    words = str(kind).replace("|", " ").replace("[", " ").replace(",", " ").split()
    return "int" in words or "float" in words or (isinstance(default, int | float) and not isinstance(default, bool))


def parameters(where: str, maker: Any) -> Iterator[str]:
    for parameter in inspect.signature(maker).parameters.values():
        if is_number(parameter.annotation, parameter.default):
            yield f"{where}:{parameter.name}"


NUMBERS = (click.types.IntParamType, click.types.FloatParamType, Duration)
"""Types of options that are numbers."""


def of_verbs() -> Iterator[str]:
    """Options of the command line with numbers, which are fields of a scenario, of a generator, or the verb's own."""
    fields = {field.name for field in dataclasses.fields(Scenario)} | {"seed"}
    for verb, command in VERBS.items():
        for one in command.params:
            if isinstance(one.type, NUMBERS) and one.name not in fields:
                name = f"{verb.replace('synth ', 'synth:')}:{one.name}"
                yield SAME.get(name, name)


def options() -> set[str]:
    """All options with numbers: fields of a scenario, and what stands in their texts."""
    found = {field.name for field in dataclasses.fields(Scenario)}
    found |= {f"telemetry:{field.name}" for field in dataclasses.fields(Telemetry)}
    found |= {f"failures:{field.name.removesuffix('_s')}" for field in dataclasses.fields(Outages)} - {
        "failures:maintenance"
    }
    found |= {{"pods": "checkpoint_pods", "wall_s": "checkpoint_s"}.get(field.name, field.name)
              for field in dataclasses.fields(Checkpoints)}  # fmt: skip
    for name, maker in GENERATORS.items():
        found |= set(parameters(f"synth:{name}", detectors if name == "detectors" else maker))
    for name, of_nodes in CLUSTERS.items():
        found |= set(parameters(name, of_nodes))
    found |= set(parameters("typical", TypicalPods.of)) | set(of_verbs())
    for cls in registry.classes():
        if cls.__module__.startswith("fastsim."):
            found |= {f"policy:{cls.policy_name}:{field.name}" for field in dataclasses.fields(cls)
                      if field.init and is_number(field.type)}  # fmt: skip
    return found


def test_every_option_has_a_budget_or_a_reason() -> None:
    assert options() - BUDGETED - set(HARMLESS) == set(), "neither in KNOBS nor in HARMLESS"
    assert set(HARMLESS) - options() == set(), "no options"


PODS, NODE = "synth:openb?pods=3", "uniform?nodes=2&gpu=T4&gpus=1"
ROUNDS, SIA = ("gavel:2:2:2", "synth:gavel?jobs=3", "fifo"), ("sia:1:1:1", "synth:sia?jobs=3", "sia")
ORDERS, SHARED = ("synergy:1", "synth:synergy?jobs=3", "srtf+tune"), ("uniform?nodes=1&gpu=V100M32&gpus=1",
                                                                      "synth:detectors?jobs=3")  # fmt: skip
MANY, TINY = "1000000000000", "1e-12"
ODD = ("1e-300", "5e-324", "0", "-1", "nan", "inf", "1e300", "1000000000000")
"""Numbers at the edges of what an option may be."""
LOST = {"failures": "mtbf=1,mttr=1", "queue": "fifo", "on_node_loss": "requeue"}
OFTEN = {"failures": "mtbf=.1,mttr=.1"}
"""Nodes that fail before a pod of the file ends, if it restarts slowly, or whatever it does."""
CASES: dict[str, list[tuple[str, str, str, dict[str, str]]]] = {
    "sample_s": [(NODE, "FILE", "best_fit", {"sample_s": "*", "record": record}) for record in ("none", "all")],
    "telemetry:every_s": [(NODE, "FILE", "best_fit", {"telemetry": "*"})],
    "telemetry:refresh_s": [
        (*case, {"telemetry": "10?refresh_s=*"})
        for case in ((NODE, "FILE", "best_fit"), (NODE, "FILE", "coolest"), (*SHARED, "gpushare"), ROUNDS)
    ],
    "failures:mtbf": [(NODE, "FILE", "best_fit", {"failures": "mtbf=*,mttr=*"})],
    "failures:mttr": [(NODE, "FILE", "best_fit", {"failures": "mtbf=*,mttr=*", "queue": "fifo"})],
    "inflation": [(NODE, "FILE", "best_fit", {"inflation": "*"})],
    "round_s": [(*case, {"round_s": "*"}) for case in (ROUNDS, SIA, ORDERS)],
    "realloc_s": [(*ROUNDS[:2], "max_min_fairness", {"realloc_s": "*", "round_s": "1e-3"})],
    "workload:tune": [(NODE, f"{PODS}&tune=*", "best_fit", {})],
    "uniform:nodes": [("uniform?nodes=*&gpu=T4", PODS, "best_fit", {})],
    "scaled:nodes": [("openb:*", PODS, "best_fit", {})],
    "mix:counts": [("mix?t4=*", PODS, "best_fit", {})], "gavel:spec": [("gavel:*:1:1", *ROUNDS[1:], {})],
    "sia:spec": [("sia:*:1:1", *SIA[1:], {})], "synergy:spec": [("synergy:*", *ORDERS[1:], {})],
    "synth:openb:pods": [(NODE, "synth:openb?pods=*", "best_fit", {})],
    **{f"synth:{name}:jobs": [(*ROUNDS[:1], f"synth:{name}?jobs=*", "fifo", {})] for name in ("gavel", "gavel-trace")},
    "synth:synergy:jobs": [(ORDERS[0], "synth:synergy?jobs=*", ORDERS[2], {})],
    "synth:synergy:log": [(ORDERS[0], "synth:synergy?log=*", ORDERS[2], {})],
    "synth:sia:jobs": [(SIA[0], "synth:sia?jobs=*", SIA[2], {})],
    "synth:detectors:jobs": [(SHARED[0], "synth:detectors?jobs=*", "gpushare", {})],
    "synth:gavel-trace:lengths": [(ROUNDS[0], "synth:gavel-trace?jobs=3&lengths=*", "fifo", {})],
    "window": [(*ROUNDS, {"window": "0:*"})],
    "restart_s": [(NODE, "FILE", "best_fit", LOST | {"restart_s": "*"})],
    "checkpoint_every_s": [(NODE, "FILE", "best_fit", LOST | OFTEN | {"checkpoint_every_s": "*"})],
    "synth:sia:copies": [(SIA[0], "synth:sia?jobs=*&copies=*", SIA[2], {})],
    "synth:openb:warm_start": [(NODE, "synth:openb?pods=3&warm_start=true&load=9&gpu_milli=*", "best_fit", {})],
    "synth:openb:load": [(NODE, "synth:openb?pods=3&load=*&gpu_milli=1000", "best_fit", {})],
    "until_s": [(*SHARED, "monitored", {"until_s": "*"})],
    "policy:monitored:pass_s": [(*SHARED, "monitored(pass_s=*)", {"until_s": "*"})],
    "policy:monitored:placed_s": [(*SHARED, "monitored(placed_s=*)", {})],
    "policy:optimus:interval_s": [(*SIA[:2], "optimus(interval_s=*)", {"round_s": "1e-3", "record": "none"})],
    "policy:pollux:generations": [(*SIA[:2], "pollux(generations=*)", {"round_s": "1e-3", "record": "none"})],
    **{f"synth:{name}:rate_per_hour": [(*where[:1], f"synth:{name}?rate_per_hour=*&{count}=3", where[2], {})]
       for name, count, where in (("openb", "pods", (NODE, "", "best_fit")), ("sia", "jobs", SIA),
                                  ("synergy", "jobs", ORDERS))},
}  # fmt: skip
"""By option that multiplies work: cluster, workload, policy and fields with the option's number for ``*``."""
PER_SECOND = (
    "sample_s",
    "telemetry:every_s",
    "telemetry:refresh_s",
    "failures:mtbf",
    "failures:mttr",
    "round_s",
    "realloc_s",
    "policy:optimus:interval_s",
    *(f"synth:{name}:rate_per_hour" for name in ("openb", "sia", "synergy")),
)
"""Options of which a small number makes much work."""
TRIED = {
    "checkpoint_pods": "test_checkpoints_of_every_pod_are_refused", "prices": "ACTS", "carbon": "ACTS",
}  # fmt: skip
"""Options whose work takes more than a number, and the test or table below that has it."""


def test_every_budget_is_met_by_a_case() -> None:
    assert set(CASES) | set(ACTS) | set(TRIED) == BUDGETED


@pytest.fixture(scope="module")
def pods_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three pods that take 12 s of one node after another."""
    path = tmp_path_factory.mktemp("pods") / "pods.parquet"
    rows = {"pod_id": [0, 1, 2], "submit_s": [0.0, 1.0, 2.0], "duration_s": [4.0, 4.0, 4.0]}
    sizes = {"cpu_milli": 100, "memory_mib": 1, "num_gpu": 1, "gpu_milli": 1000}
    fs.Workload.from_arrow(pl.DataFrame(rows | {name: [size] * 3 for name, size in sizes.items()})).write(path)
    return path


def played(case: tuple[str, str, str, dict[str, str]], number: str, path: Path, held: bool) -> None:
    """Play a case with this number; the pods of the file are in memory, or read as the run goes on."""
    cluster, workload, policy, fields = case
    made: dict[str, Any] = {name: value.replace("*", number) for name, value in fields.items()}
    for name in ("sample_s", "inflation", "round_s", "realloc_s", "restart_s", "checkpoint_every_s", "until_s"):
        if name in made:
            made[name] = float(made[name])
    pods: Any = workload.replace("*", number)
    if workload == "FILE":
        pods = fs.Workload.scan(path)
        pods = fs.Workload.from_arrow(pods.table()) if held else pods
    fs.simulate(cluster.replace("*", number), pods, policy, **made)


ALL = [(option, case) for option, cases in CASES.items() for case in cases]
IDS = [f"{option} {case[2]}" for option, case in ALL]


@pytest.mark.parametrize(("option", "case"), ALL, ids=IDS)
@pytest.mark.parametrize("held", [True, False], ids=["memory", "file"])
def test_too_much_work_is_one_error_that_names_the_option(
    option: str,
    case: tuple[str, str, str, dict[str, str]],
    held: bool,
    pods_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(CHOICE, "0.001")
    with pytest.raises(FastsimError, match=r"expected") as refused:
        played(case, TINY if option in PER_SECOND else MANY, pods_file, held)
    said, name = str(refused.value), option.split(":")[-1]
    words = [knob.work.counted for knob in KNOBS if option in knob.options]
    assert name in said or any(word in said for word in words) or "seconds above 0" in said, said
    assert "\n" not in said


@pytest.mark.parametrize("number", ODD)
@pytest.mark.parametrize(("option", "case"), ALL, ids=IDS)
def test_odd_numbers_are_played_or_refused(
    option: str,
    case: tuple[str, str, str, dict[str, str]],
    number: str,
    pods_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(CHOICE, "0.001")
    try:
        played(case, number, pods_file, held=False)
    except FastsimError as refused:
        assert "\n" not in str(refused)


@pytest.mark.parametrize(("cluster", "policy"), [(NODE, "best_fit"), (ROUNDS[0], "fifo"), (ORDERS[0], "srtf+tune")])
@pytest.mark.parametrize("held", [True, False], ids=["memory", "file"])
def test_checkpoints_of_every_pod_are_refused(
    cluster: str, policy: str, held: bool, pods_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CHOICE, "0.001")  # 2
    jobs = {"fifo": "synth:gavel?jobs=20&rate_per_hour=1", "srtf+tune": "synth:synergy?jobs=20"}
    pods: Any = jobs.get(policy) or fs.Workload.scan(pods_file)
    pods = fs.Workload.from_arrow(pods.table()) if held and policy == "best_fit" else pods
    with pytest.raises(FastsimError, match=r"checkpoint_pods: found \d checkpoints, expected at most 2"):
        fs.simulate(cluster, pods, policy, out=tmp_path / "run", checkpoint_pods=1)


def test_seconds_between_checkpoints_are_no_count(
    pods_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CHOICE, "0.001")
    result = fs.simulate(NODE, fs.Workload.scan(pods_file), "best_fit", out=tmp_path / "run", checkpoint_s=1e-300)
    assert result.summary["pods"].item() == 3


FREE: dict[str, list[tuple[str, str, str, dict[str, str]]]] = {
    **{f"synth:{name}:rate_per_hour": [(ROUNDS[0], f"synth:{name}?jobs=3&rate_per_hour=*", "fifo", {})]
       for name in ("gavel", "gavel-trace")},
    **{f"synth:{name}:mean_gap_s": [(ROUNDS[0], f"synth:{name}?jobs=3&mean_gap_s=*", "fifo", {})]
       for name in ("gavel", "gavel-trace")},
}  # fmt: skip
"""Options that might be thought to multiply work, and runs that any number leaves within the smallest budget."""


@pytest.mark.parametrize("number", [MANY, TINY])
@pytest.mark.parametrize("option", FREE)
def test_options_that_multiply_nothing_leave_a_run_within_its_budget(
    option: str, number: str, pods_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CHOICE, "0.001")
    assert option in HARMLESS
    for case in FREE[option]:
        played(case, number, pods_file, held=False)


def a_search(**numbers: Any) -> Any:
    values = {"cluster": ROUNDS[0], "workload": "synth:gavel", "jobs": 3, "policy": ["fifo", "max_min_fairness"]}
    return knees(values, **({"low": 1.0, "high": 2.0} | numbers))


def an_environment(module: str, name: str) -> Any:
    pytest.importorskip("gymnasium")
    return getattr(importlib.import_module(f"fastsim.decisions.agents.{module}"), name)(int(MANY))


def explained(**which: Any) -> Any:
    return fs.explain(fs.Scenario("uniform?nodes=1000&gpu=T4", "synth:openb?pods=300", "best_fit"), **which)


def a_series(count: int = 6000) -> tuple[Any, Any]:
    return np.arange(float(count)), np.ones(count)


def a_sweep(**lists: Any) -> Sweep:
    return Sweep({"cluster": ROUNDS[0], "policy": "fifo", "jobs": 3} | lists)


ITEM = {"cpu_milli": 1000, "memory_mib": 1000, "num_gpu": 1, "gpu_model": "T4"}
POINTS = {"from": 1.0, "to": 2.0, "points": 10**6}
UP = Prometheus("http://[::1]:9")
ACTS: dict[str, tuple[Callable[[], Any], str]] = {
    "plan:most": (lambda: smallest_additions({"cluster": NODE, "workload": PODS}, ["g2"], most=10**12), "plan: most"),
    "sweep knee:tolerance": (lambda: a_search(tolerance=1e-15), "knee"),
    "sweep knee:low": (lambda: a_search(low=1e-300, tolerance=1e-15), "knee"),
    "sweep knee:high": (lambda: a_search(high=1e300, tolerance=1e-15), "knee"),
    "monitor import:last": (lambda: list(UP.samples("up", 0, 10**15)), "prometheus: range"),
    "monitor import:step": (lambda: list(UP.samples("up", 0, 10**15, 1)), "prometheus: range"),
    "mix:parts": (lambda: Cluster.mix([(10**12, ITEM)] * 2), "cluster"),
    "explain:pods": (lambda: explained(pods=list(range(300))), "explain"),
    "explain:sample": (lambda: explained(sample=10**12), "explain"),
    "sweep:axes": (lambda: a_sweep(rate_per_hour=POINTS, multi_gpu=[True, False]), "sweep: .*"),
    "sweep:points": (lambda: a_sweep(rate_per_hour=POINTS | {"points": 10**12}), "sweep: rate_per_hour"),
    "Workload.inflated:ratio": (
        lambda: fs.Workload.from_text(PODS).inflated(1e12, Cluster.from_text(NODE)), "workload.inflated: ratio"
    ),
    "SchedulingVectorEnv:num_envs": (lambda: an_environment("environment", "SchedulingVectorEnv"), "num_envs"),
    "QueueVectorEnv:num_envs": (lambda: an_environment("queue_environment", "QueueVectorEnv"), "num_envs"),
    "sweep stats:bootstrap": (lambda: paired(*a_series(), method="bootstrap"), "bootstrap"),
    "carbon": (lambda: Carbon(*a_series()), "carbon: since_s"),
    "prices": (lambda: Prices(("T4",), *(part.reshape(-1, *more) for part, more in zip(a_series(), ((), (1,)),
                                                                                    strict=True))), "prices: since_s"),
}  # fmt: skip
"""What an option with a large number does, and the place that its refusal names."""


@pytest.mark.parametrize("option", ACTS)
def test_acts_beyond_a_budget_are_refused_at_once(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        CHOICE, "0.00005" if option.split(":")[0] in ("plan", "sweep knee", "monitor import") else "0.001"
    )
    act, where = ACTS[option]
    with pytest.raises(FastsimError, match=rf"^{where}: found .*expected at most [\d,]+ \w+") as refused:
        act()
    assert "\n" not in str(refused.value)


def test_more_copies_than_jobs_are_all_jobs_at_once() -> None:
    columns = [fs.Workload.synth("sia", jobs=3, copies=copies).table() for copies in (3, 10**12)]
    assert columns[0].equals(columns[1])


def test_new_prices_ask_an_ideal_policy_no_more_often_than_the_budget_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOICE, "0.001")
    since_s = np.arange(800.0)
    prices = Prices(("v100", "p100", "k80"), since_s, np.outer(1 + since_s % 2, np.ones(3)))
    monkeypatch.setenv(CHOICE, "0.0005")
    with pytest.raises(FastsimError, match="found 51 decisions of the policy since a job ended, expected at most 50"):
        fs.simulate("gavel:2:2:2", "synth:gavel?jobs=3", "max_min_fairness", ideal=True, prices=prices)


def test_a_search_ends_where_no_number_lies_between() -> None:
    search = _Search(1.0, 2.0)
    for _ in range(60):
        if (load := search.next_load(1e-300)) is not None:
            search.learn(load, load, 1.3)
    assert search.next_load(1e-300) is None
    assert search.high == math.nextafter(search.low, 2.0)
