"""Every option of a scenario under every engine: it changes the result, is refused, or is named in a warning."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.errors import FastsimError, ScenarioError
from fastsim.performance.applications.family import Applications
from fastsim.performance.oracle import Oracle
from fastsim.policies import registry
from fastsim.scenario.prices import Prices
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.run_warnings import OptionUnused
from fastsim.simulation.simulate import run
from fastsim.simulation.uses.cells import DESCRIBES, IGNORED, REFUSED, USED, cells
from fastsim.simulation.uses.options import CONDITIONS, ENGINES_OF_SCENARIOS, given, refuse_options

N = 8
SHORT: dict[str, Any] = {
    "submit_s": [float(i) for i in range(N)], "num_gpu": [1] * N, "duration_s": [100.0 + i for i in range(N)],
}  # fmt: skip
GPUS = fs.Cluster.uniform(nodes=2, gpu="V100M32", gpus=2)
MORE = fs.Cluster.uniform(nodes=3, gpu="V100M32", gpus=2)
TENANTS = {**SHORT, "tenant": ["a", "a", "a", "a", "a", "b", "b", "b"]}
PRIORITIES = {**TENANTS, "priority": list(range(N))}
RATED = "synth:gavel?jobs=6&seed=1"


def pods(columns: Mapping[str, Any] = TENANTS) -> fs.Workload:
    return fs.Workload.from_polars(pl.DataFrame(columns))


RATED_PRICES = Prices.fixed({"v100": 3.0, "p100": 2.0, "k80": 1.0})
ORACLE = Oracle.default()
SLOWER = dataclasses.replace(ORACLE, alone__kg=ORACLE.alone__kg / 2)
APPS = Applications.default()
SLOWER_APPS = Applications({name: dataclasses.replace(app, restart_s=300.0) for name, app in APPS.items()})
SHARED = {**TENANTS, "gpu_memory_mib": [9_000] * N}
PLAIN: dict[str, dict[str, Any]] = {
    "pods": {"cluster": GPUS, "workload": pods(), "policy": "random", "queue": "fifo"},
    "shares": {"cluster": "gavel:2:1:1", "workload": RATED, "policy": "max_min_fairness(mode=packed)"},
    "orders": {"cluster": "gavel:2:1:1", "workload": RATED, "policy": "srtf"},
    "adaptive": {"cluster": "sia:3:2:0", "workload": "synth:sia?jobs=5&seed=1", "policy": "rotation"},
    "monitored": {"cluster": GPUS, "workload": pods(SHARED), "policy": "monitored", "telemetry": 50.0},
}
"""A run of each engine."""
OTHER: dict[str, Any] = {
    "seed": 1, "typical": fs.Workload.synth("openb", pods=20), "queue": "drf", "gpu_pick": "worst", "sample_s": 30.0,
    "until_s": 60.0, "record": "summary", "deschedule": ("frag_one_pod:1",), "inflation": 1.5,
    "retarget": fs.Workload.synth("openb", pods=20), "preempt": "priority", "on_node_loss": "requeue",
    "checkpoint_every_s": 5.0, "restart_s": 17.0, "quotas": "a:gpu_milli=1000", "weights": "b=9",
    "failures": "mtbf=50,mttr=20", "maintenance": [("node-0000", 20.0, 40.0)], "compat": "gavel", "round_s": 100.0,
    "realloc_s": 1e5, "begin_s": 5e4, "window": "1:3", "rates": SLOWER, "prices": Prices.fixed({"V100M32": 3.0}),
    "carbon": 300.0, "global_queue": True, "profiling": 0.5, "references": 3, "ideal": True, "interference": 0.5,
    "telemetry": 100.0, "name": "n", "out": "out", "log": "log.txt",
}  # fmt: skip
"""Another value of each option."""
OWN: dict[tuple[str, str], Any] = {
    ("workload", "pods"): pods(SHORT), ("workload", "shares"): "synth:gavel?jobs=5&seed=1",
    ("workload", "orders"): "synth:gavel?jobs=5&seed=1", ("workload", "adaptive"): "synth:sia?jobs=3&seed=1",
    ("workload", "monitored"): pods({**SHARED, "num_gpu": [1] * N, "duration_s": [9.0] * N}),
    ("policy", "pods"): "best_fit", ("policy", "shares"): "fifo", ("policy", "orders"): "fcfs",
    ("policy", "adaptive"): "sia", ("policy", "monitored"): "gpushare",
    ("compat", "orders"): "synergy", ("compat", "monitored"): "monitored", ("sample_s", "shares"): 7e3,
    ("sample_s", "orders"): 7e3, ("sample_s", "adaptive"): 7e2, ("until_s", "shares"): 3e3, ("until_s", "orders"): 3e3,
    ("until_s", "adaptive"): 3e2, ("telemetry", "shares"): 3e3, ("telemetry", "orders"): 3e3,
    ("prices", "shares"): RATED_PRICES, ("prices", "orders"): RATED_PRICES,
    ("prices", "adaptive"): Prices.fixed({"aws": 1.0, "dgx-ext": 3.0}), ("rates", "adaptive"): SLOWER_APPS,
    **{("failures", engine): "mtbf=9000,mttr=900" for engine in ("shares", "orders")},
    **{("maintenance", engine): [("v100-0000", 500.0, 5000.0)] for engine in ("shares", "orders")},
    ("cluster", "pods"): MORE, ("cluster", "monitored"): MORE, ("cluster", "shares"): "gavel:3:1:1",
    ("cluster", "orders"): "gavel:3:1:1", ("cluster", "adaptive"): "sia:4:2:0",
}  # fmt: skip
"""The same by engine."""
CROSSING = fs.Workload.from_polars(
    pl.DataFrame({"submit_s": [0.0] * 2, "num_gpu": [6] * 2, "workload": ["cifar10"] * 2, "batch_size": [1024] * 2,
                  "task_role": ["rigid"] * 2})
)  # fmt: skip
"""Jobs on several nodes that share one."""
IN_PART: dict[tuple[str, str], dict[str, Any]] = {
    ("seed", "shares"): {"policy": "gandiva"},
    ("gpu_pick", "pods"): {"workload": pods({**SHORT, "gpu_milli": [300, 500] * 4})},
    ("inflation", "pods"): {"cluster": fs.Cluster.uniform(nodes=5, gpu="T4", gpus=2),
                            "workload": pods({**SHORT, "duration_s": pl.Series([None] * N, dtype=pl.Float64)})},
    ("interference", "adaptive"): {"cluster": "sia:3:0:0", "workload": CROSSING},
    ("seed", "adaptive"): {"policy": "pollux(generations=10)", "until_s": 2e3},
}  # fmt: skip
"""Options of both runs without which an option would change the result of other runs only."""
FOREIGN = {"pods": "gavel", "shares": "monitored", "orders": "monitored", "monitored": "gavel"}
"""Compat switches that an engine does not read."""
MET: dict[str, dict[str, Any]] = {
    "rounds": {}, "timeline": {}, "sortable": {}, "read": {}, "pairs": {}, "weighed": {"queue": "drf"},
    "priorities": {"workload": pods(PRIORITIES)}, "losses": {"failures": "mtbf=50,mttr=20"},
    "failing": {"failures": "mtbf=9000,mttr=900"},
    "stops": {"preempt": "priority", "workload": pods(PRIORITIES)},
}  # fmt: skip
"""Options of both runs with which a condition holds."""
UNMET: dict[str, dict[str, Any]] = {
    "rounds": {"ideal": True}, "timeline": {"record": "placements"}, "sortable": {"workload": pods(SHORT)}, "read": {},
    "pairs": {"policy": "max_min_fairness"}, "weighed": {}, "priorities": {}, "failing": {}, "losses": {}, "stops": {},
}  # fmt: skip
"""The same without which it does not."""
TABLES = ("jobs", "placements", "timeline", "summary", "stages")

Outcome = tuple[dict[str, pl.DataFrame], list[str]]
PLAYED: dict[tuple[str, str, str], Outcome] = {}
"""Outcomes of runs without another value, by engine, condition and option."""


def outcome(options: Mapping[str, Any]) -> Outcome:
    """All figures of a run, and the texts of `OptionUnused`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = run(Scenario(**options))
    names = (*TABLES, *(("telemetry",) if "telemetry" in options else ()))
    figures = {name: result.frames[name] for name in names}
    return figures, [str(one.message) for one in caught if issubclass(one.category, OptionUnused)]


def cases() -> list[tuple[str, str, str, str]]:
    """Option, engine, condition with a sign (+ holds, - does not, nothing without one) and the use."""
    found = []
    for option, row in cells("options").items():
        for engine, cell in row.items():
            if not cell.condition:
                found.append((option, engine, "", cell.use))
            else:
                found.append((option, engine, f"-{cell.condition}", cell.otherwise))
                found.append((option, engine, f"+{cell.condition}", cell.use))
    return found


@pytest.mark.parametrize(("option", "engine", "condition", "use"), cases())
def test_an_option_changes_the_result_or_is_refused_or_named(
    option: str, engine: str, condition: str, use: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    more = (UNMET if condition.startswith("-") else MET)[condition[1:]] if condition else {}
    plain = {**PLAIN[engine], **IN_PART.get((option, engine), {}), **more}
    value = OWN.get((option, engine), OTHER.get(option))
    if (option, condition) == ("compat", "-read"):
        value = FOREIGN[engine]
    elif (option, engine) == ("compat", "pods"):
        value = "fgd"
    if use == REFUSED:
        with pytest.raises(FastsimError, match=rf"{option}: found "):
            outcome({**plain, option: value})
        return
    key = (engine, condition, option if (option, engine) in IN_PART else "")
    if key not in PLAYED:
        PLAYED[key] = outcome(plain)
    before, told_before = PLAYED[key]
    after, told = outcome({**plain, option: value})
    same = before.keys() == after.keys() and all(frame.equals(after[name]) for name, frame in before.items())
    assert same == (use != USED)
    assert told_before == []
    assert any(option in text for text in told) == (use == IGNORED)
    assert len(told) <= 1, "one line with all options"


def test_the_table_has_every_field_and_every_engine() -> None:
    assert list(cells("options")) == [item.name for item in dataclasses.fields(Scenario)]
    every = [cell for row in cells("options").values() for cell in row.values()]
    assert all(tuple(row) == ENGINES_OF_SCENARIOS for row in cells("options").values())
    assert {cell.use for cell in every} == {USED, REFUSED, IGNORED, DESCRIBES}
    assert {cell.otherwise for cell in every} == {"", IGNORED, DESCRIBES, REFUSED}
    assert {cell.condition for cell in every} - {""} == CONDITIONS.keys() == MET.keys() == UNMET.keys()
    assert OTHER.keys() | {"cluster", "workload", "policy"} == cells("options").keys()


def test_policies_know_their_engine() -> None:
    assert [registry.engine_of(registry.parse(PLAIN[engine]["policy"])) for engine in ENGINES_OF_SCENARIOS] == [
        *ENGINES_OF_SCENARIOS
    ]


def test_defaults_are_no_request() -> None:
    assert given(Scenario(workload="w")) == ("workload",)
    for engine in ENGINES_OF_SCENARIOS:
        refuse_options(Scenario(workload="w"), engine)


@pytest.mark.parametrize(
    ("policy", "changed", "text"),
    [
        ("isolated", {"queue": "fifo"}, "queue: found 'fifo', expected nothing: policy isolated is for rounds"),
        ("fgd", {"round_s": 60.0}, "round_s: found 60.0, expected nothing: policy fgd is for pods"),
        ("las", {"interference": 0.5}, "interference: found 0.5, expected nothing: the jobs of policy las are not"),
        ("las", {"realloc_s": 9.0}, "realloc_s: found 9.0, expected nothing: policy las gives all GPUs out anew in"),
        ("las", {"log": "a"}, "log: found 'a', expected nothing: policy las has no shares"),
        ("isolated", {"begin_s": 9.0}, "begin_s: found 9.0, expected nothing: policy isolated shares time out"),
        ("sia", {"window": "1:3"}, "window: found '1:3', expected nothing: the jobs of policy sia are adaptive"),
        ("sia", {"quotas": "a:gpu_milli=1"}, "expected nothing: policy sia is for rounds"),
        ("isolated", {"ideal": True, "telemetry": 9.0}, "telemetry: found 9.0, expected none: the ideal places jobs"),
        *(
            ("monitored", changed, "is for pods that share monitored GPUs")
            for changed in ({"round_s": 60.0}, {"queue": "fifo"}, {"sample_s": 1.0})
        ),
    ],
)
def test_a_refusal_says_why(policy: str, changed: dict[str, Any], text: str) -> None:
    scenario = Scenario(workload="w", policy=policy, **changed)
    with pytest.raises(ScenarioError) as refused:
        refuse_options(scenario, registry.engine_of(registry.parse(policy)))
    assert text in str(refused.value)


def test_options_of_all_engines_are_welcome() -> None:
    for policy in ("fgd", "isolated", "monitored", "pollux"):
        refuse_options(Scenario(workload="w", prices="fixed?T4=1"), registry.engine_of(registry.parse(policy)))
    refuse_options(Scenario(workload="w", policy="pollux", interference=0.5), "adaptive")


def test_one_line_names_all_options_and_what_they_need() -> None:
    given = {"restart_s": 5.0, "weights": "b=2", "compat": "gavel", "queue": "fifo", "preempt": "priority"}
    _, told = outcome({**PLAIN["pods"], **given})
    assert told == [
        "options without effect: preempt (without a column priority), restart_s (without pods that are stopped: "
        "preemption by a column priority, or requeued pods of lost nodes), weights (without queue=drf), compat (gavel) "
        "(without an engine or a policy that reads each of its words)"
    ]
    _, told = outcome({**PLAIN["orders"], "compat": "late_shares,synergy"})
    assert told[0].startswith("options without effect: compat (late_shares) (without")
