"""Scenarios of a sweep: texts with places, engines and their options, and how long a run may take."""

from __future__ import annotations

from typing import Any

import pytest

from fastsim.errors import FastsimError, ScenarioError
from fastsim.experiments.sweep.scenario_builder import effort
from fastsim.experiments.sweep.sweep import Sweep

PODS: dict[str, Any] = {
    "cluster": "openb:20?shuffle={seed}",
    "workload": "synth:openb?pods=50&tune=1.1&tune_seed={seed}",
}


def test_texts_take_other_values() -> None:
    sweep = Sweep({**PODS, "policy": "{weight}*fgd + 0.5*pwr", "seed": [3, 4], "vars": {"weight": [0.5, 0.25]}})
    assert [run.scenario.cluster for run in sweep.runs] == ["openb:20?shuffle=3", "openb:20?shuffle=4"] * 2
    assert sweep.runs[0].scenario.workload == "synth:openb?pods=50&tune=1.1&tune_seed=3&seed=3"
    assert [run.scenario.policy for run in sweep.runs][::2] == ["0.5*fgd + 0.5*pwr", "0.25*fgd + 0.5*pwr"]
    assert sweep.runs[0].name == "weight=0.5/seed=3"


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({**PODS, "seed": [1], "cluster": "openb:{nodes}"}, r"x: cluster: found \{nodes\}, expected a name among"),
        ({**PODS, "seed": 1, "vars": {"seed": [1]}}, "x: vars.seed: found 'seed', expected a name that no key has"),
        ({**PODS, "seed": 1, "vars": 3}, "x: vars: found 3, expected a table"),
        ({**PODS, "seed": 1, "policy": ["fgd", "fcfs"], "queue": "fifo"}, "x: queue: found 'fifo', expected nothing"),
        ({**PODS, "seed": 1, "round_s": [60]}, r"x: round_s\[0\]: found 60, expected nothing: policy fgd is for pods"),
        ({"cluster": "sia:1:1:1", "workload": "synth:sia", "policy": "sia", "ideal": True}, "x: ideal"),
    ],
)
def test_mistakes_between_fields(values: dict[str, Any], match: str) -> None:
    with pytest.raises(FastsimError, match=match):
        Sweep(values, "x")


def test_every_mistake_of_every_run_is_told_before_anything_runs() -> None:
    keys = {
        "cluster": ["openb:5", "openb:x"],
        "workload": "synth:openb",
        "pods": [1, -1],
        "policy": ["fgd", "fgt", "pvr"],
    }
    with pytest.raises(FastsimError) as raised:
        Sweep({**keys, "sample_s": -1, "polici": 3}, "x")
    text = str(raised.value)
    for place in ("6 mistakes", "x: polici", "cluster[1]", "policy[1]", "policy[2]", "x: sample_s", "x: pods"):
        assert place in text, (place, text)


def test_adaptive_and_ordered_jobs_may_be_swept() -> None:
    sia = Sweep(
        {"cluster": "sia:1:1:1", "workload": "synth:sia", "jobs": 5, "style": ["philly", "helios"], "policy": "sia"}
    )
    assert [run.scenario.workload for run in sia.runs] == [
        f"synth:sia?jobs=5&style={name}" for name in ("philly", "helios")
    ]
    turns = Sweep({"cluster": "synergy:1", "workload": "synth:synergy?log=100", "jobs": 5, "policy": ["fifo+tune"],
                   "rates": "synergy", "seed": [1, 2]})  # fmt: skip
    assert len(turns.runs) == 2


def test_a_window_beyond_the_jobs_is_told_before_anything_runs() -> None:
    keys = {"cluster": "gavel:2:2:2", "policy": "fifo", "rate_per_hour": 1, "jobs": 10, "window": ["0:10", "5:11"]}
    with pytest.raises(ScenarioError, match=r"window\[1\]: found 5:11, expected FIRST:LAST with LAST at most 10"):
        Sweep(keys)


@pytest.mark.parametrize(
    ("policy", "key", "value"),
    [("las", "realloc_s", [0, 960]), ("fcfs", "global_queue", True), ("las", "ideal", True), ("fifo", "begin_s", 5.0)],
)
def test_what_a_run_would_refuse_is_told_before(policy: str, key: str, value: Any) -> None:
    keys = {"cluster": "gavel:2:2:2", "rate_per_hour": 1, "jobs": 10, "policy": policy, key: value}
    with pytest.raises(ScenarioError, match=f"{key}.*expected nothing: policy {policy}"):
        Sweep(keys)


def test_what_takes_longer_begins_first() -> None:
    rates = Sweep({"cluster": "gavel:2:2:2", "policy": "fifo", "rate_per_hour": [0.1, 3.0, 0.2], "window": "0:5"}).runs
    order = sorted(rates, key=lambda run: effort(run.scenario), reverse=True)
    assert [run.listed["rate_per_hour"] for run in order] == [3.0, 0.2, 0.1]
    jobs = Sweep({"cluster": "gavel:2:2:2", "policy": "fifo", "jobs": [4, 9, 6]}).runs
    assert [effort(run.scenario)[0] for run in jobs] == [4.0, 9.0, 6.0]
    assert effort(Sweep({**PODS, "seed": 1, "policy": "fgd"}).runs[0].scenario) == pytest.approx((55.0, 0.0))
