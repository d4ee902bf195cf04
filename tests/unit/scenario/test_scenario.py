"""Scenarios: round trips, identity, and every mistake listed."""

from __future__ import annotations

import dataclasses
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim import Scenario  # through the package, which registers what texts mean
from fastsim.errors import FastsimError, PolicyError, ScenarioError
from fastsim.foundation.option_texts import settings_of
from fastsim.policies.deschedule import deschedule_from
from fastsim.scenario import scenario as spec
from fastsim.scenario.compat import SWITCHES, switches_on
from fastsim.scenario.outages import failures_from
from fastsim.scenario.scenario import DURATIONS, Problem
from fastsim.telemetry.telemetry import telemetry_from

FULL = Scenario(
    cluster="openb:100?seed=2",
    workload='pods "new".parquet',
    policy="0.9*fgd + 0.1*pwr",
    seed=7,
    typical="old.parquet?threshold=60",
    queue="fifo_skip",
    gpu_pick="worst",
    sample_s=60.0,
    until_s=86400.5,
    record="timeline",
    deschedule=("frag_one_pod:0.05", "cos_sim:0.1"),
    inflation=1.1,
    compat="fgd",
    name="löad",
)


class Table:
    """An object in memory with a checksum, as clusters and workloads are."""

    def checksum(self) -> str:
        """Digest of the content."""
        return "abc"


@pytest.mark.parametrize("scenario", [FULL, Scenario(workload="pods.parquet")])
def test_round_trips(scenario: Scenario, tmp_path: Path) -> None:
    assert Scenario.from_json(scenario.to_json()) == scenario
    path = tmp_path / "scenario.toml"
    path.write_text(scenario.to_toml(), encoding="utf-8")
    assert Scenario.from_toml(path) == scenario
    assert Scenario.from_dict(scenario.to_dict()) == scenario
    assert pickle.loads(pickle.dumps(scenario)) == scenario
    assert Scenario.from_toml(path).id == scenario.id


@given(st.text(max_size=20), st.integers(0, 2**64 - 1), st.floats(0.001, 1e12))
def test_any_text_and_number_survives_toml(text: str, seed: int, sample_s: float) -> None:
    import tomllib

    scenario = Scenario(workload="w", name=text, seed=seed, sample_s=sample_s)
    if seed < 2**63:
        assert Scenario.from_dict(tomllib.loads(scenario.to_toml())) == scenario
    assert Scenario.from_json(scenario.to_json()) == scenario


def test_only_what_differs_from_the_defaults_is_written() -> None:
    assert Scenario(workload="w").to_dict() == {"cluster": "openb", "workload": "w", "policy": "fgd"}


def test_identity_is_what_is_run() -> None:
    base = Scenario(workload="w", seed=1)
    assert base.id == Scenario(workload="w ", seed=1, name="first").id == base.with_(queue="drop").id
    assert len({base.id, base.with_(seed=2).id, base.with_(policy="pwr").id, base.with_(typical="t").id}) == 4
    # Written down so that results stored by one version are found by the next.
    assert Scenario(workload="pods.parquet").id == "67df715e1a123f43"


def test_objects_are_identified_by_content_and_cannot_be_written() -> None:
    scenario = Scenario(cluster=Table(), workload=Table())
    assert scenario.id == Scenario(cluster=Table(), workload=Table()).id != Scenario(workload=Table()).id
    with pytest.raises(ScenarioError, match="save it to a file"):
        scenario.to_json()


def test_every_mistake_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(value: object) -> None:
        raise PolicyError(f"policy {value!r}", "an unknown name", "fgd")

    monkeypatch.setattr(spec, "CHECKS", {"policy": check, "queue": lambda value: None})
    anything: Any = {"workload": "", "policy": "fdg", "seed": -1, "sample_s": 0, "record": "some", "queue": 3}
    wrong = Scenario(**anything, until_s=float("nan"), inflation=0.5, deschedule=3)  # type: ignore[arg-type]
    problems = wrong.problems()
    assert [problem.path for problem in problems] == [
        *("workload", "seed", "record", "sample_s", "until_s", "inflation", "deschedule", "queue", "policy")
    ]
    with pytest.raises(ScenarioError, match="9 mistakes") as caught:
        wrong.check()
    assert "\n" not in str(caught.value)
    with pytest.raises(PolicyError, match="policy 'fdg'"):
        Scenario(workload="w", policy="fdg").check()


def test_a_problem_says_its_place_once() -> None:
    assert str(Problem("seed", "found -1")) == "seed: found -1"
    assert str(Problem("seed", "seed: found -1")) == "seed: found -1"


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"workload = ", "TOML"),
        (b'polcy = "fgd"\nsede = 3', "unknown field polcy, sede"),
        (b"\xff\xfe", "UTF-8"),
        (None, "No such file"),
    ],
)
def test_unreadable_files(content: bytes | None, part: str, tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ScenarioError, match=part) as caught:
        Scenario.from_toml(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("text", ["{", "[]", "3"])
def test_unreadable_json(text: str) -> None:
    with pytest.raises(ScenarioError, match="JSON object"):
        Scenario.from_json(text)


def test_compat_names_are_checked() -> None:
    assert switches_on("") == switches_on("fgd, pwr") == frozenset()
    assert all(not switch.default for switch in SWITCHES)
    with pytest.raises(FastsimError, match=r"one of .*fgd, .*pwr"):
        switches_on("slurm")


@pytest.mark.parametrize("until_s", [-1.0, 1e300, float("inf"), True, "9 m", 10**400])
def test_the_end_of_a_run_has_a_limit(until_s: Any) -> None:
    [problem] = Scenario(workload="synth:openb?pods=1", until_s=until_s).problems()
    assert problem.path == "until_s" and "expected seconds of 0 or more, at most 2**53 s" in problem.text


def test_every_length_of_time_may_have_a_unit() -> None:
    defaults = {item.name: item.type for item in dataclasses.fields(Scenario)}
    assert [name for name in defaults if name.endswith("_s")] == list(DURATIONS)
    for name in DURATIONS:
        assert getattr(Scenario(**{name: "1.5h"}), name) == 5400.0  # type: ignore[arg-type]
        [problem] = Scenario(workload="synth:openb?pods=1", **{name: "5 m"}).problems()  # type: ignore[arg-type]
        assert problem.path == name and "or a length of time such as 90s, 30min, 1h or 1d12h" in problem.text


def test_prices_and_failures_may_be_mappings() -> None:
    given = {"prices": {"A100": 3, "T4/2": 0.25}, "failures": {"mtbf": "1d", "mttr": 3600.0}}
    scenario = Scenario(workload="synth:openb?pods=1", **given)  # type: ignore[arg-type]
    assert scenario.prices == "fixed?A100=3&T4/2=0.25" and scenario.failures == "mtbf=1d,mttr=3600"
    assert not scenario.problems() and failures_from(scenario.failures) == (86_400.0, 3600.0)
    with pytest.raises(ScenarioError, match=r"prices: A100: found '3', expected \$ for an hour of one GPU"):
        Scenario(prices={"A100": "3"})


@pytest.mark.parametrize(("field", "value", "message"), [
    ("failures", "mtbf=1d", "expected both means, as seconds or with units, such as 'mtbf=86400,mttr=3600' or"),
    ("failures", "mtbf=1m,mttr=1h", "found 'mtbf=1m,mttr=1h', expected both means"),
    ("telemetry", "15 m", "found '15 m', expected seconds such as 15"),
    ("deschedule", ("frag_one_pod:0.05@1m",), "found '1m', expected a time of 0 or more: seconds, or a"),
    ("compat", "sia", "found 'sia', expected one of fgd, gavel, gavel-2020-05, monitored, pwr, synergy, or a switch"),
    ("compat", "gavle", "did you mean 'gavel'"),
])  # fmt: skip
def test_texts_with_wrong_units_or_words_say_what_is_right(field: str, value: Any, message: str) -> None:
    [problem] = Scenario(workload="synth:openb?pods=1", **{field: value}).problems()
    assert message in problem.text


def test_units_in_texts_mean_the_same_as_seconds() -> None:
    assert telemetry_from("1min?refresh_s=6s:8s") == telemetry_from("60?refresh_s=6:8")
    assert deschedule_from("frag_one_pod:0.05@1h").at_s == 3600.0
    assert settings_of("w", ["mean_gap_s=2min", "name=2min"]) == {"mean_gap_s": 120.0, "name": "2min"}


def test_a_path_is_written_down_like_its_text() -> None:
    scenario = Scenario(cluster=Path("nodes.csv"), workload=Path("pods") / "a.parquet", carbon=Path("grid.csv"))
    assert scenario.to_dict() == {
        "cluster": "nodes.csv", "workload": os.path.join("pods", "a.parquet"), "carbon": "grid.csv", "policy": "fgd"
    }  # fmt: skip
    assert Scenario.from_dict(scenario.to_dict()) == scenario


@pytest.mark.parametrize("name", ["openb", "a.parquet?as=trace", "csv:a.csv"])
def test_a_path_that_would_mean_something_else_as_a_text_stays_a_path(name: str) -> None:
    assert Scenario(workload=Path(name)).workload == Path(name)
