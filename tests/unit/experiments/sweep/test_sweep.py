"""Sweeps: the product of lists, names, what is left out, what is kept."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.errors import FastsimError, ResultError, ScenarioError
from fastsim.experiments.sweep import sweep
from fastsim.foundation.limits.work_budget import Work

BASE: dict[str, Any] = {"cluster": "gavel:2:2:2", "policy": "fifo", "jobs": 6}


def test_the_example_of_the_docstring_runs(tmp_path: Path) -> None:
    text = inspect.cleandoc(sweep.__doc__ or "").split("::\n")[1].split("\nFlags of")[0]
    runs = sweep.sweep_of(tomllib.loads(inspect.cleandoc(text)))
    keys = [(run.listed["policy"], run.listed["rate_per_hour"], run.listed["seed"]) for run in runs]
    assert keys == [
        ("fifo", 0.2, 0), ("fifo", 0.2, 1),  # the cutoff leaves out 0.4, as a load of 0 is left out of each
        *(("max_min_fairness_perf", rate, seed) for rate in (0.2, 0.4) for seed in (0, 1)),
    ]  # fmt: skip
    table = sweep.swept(runs, tmp_path)
    assert table["run"].to_list() == [run.name for run in runs]
    assert table["policy"].to_list() == [policy for policy, *_ in keys]
    whole = fs.simulate(
        "gavel:4:4:4", "synth:gavel?rate_per_hour=0.4&jobs=15&seed=1", "max_min_fairness(mode=perf)", seed=1,
        window="5:15", compat="gavel",
    )  # fmt: skip
    assert table["jct_mean_s"][-1] == whole.summary["jct_mean_s"][0]
    assert pl.read_parquet(tmp_path / sweep.TABLE).equals(table)


def test_a_sweep_keeps_what_a_report_draws_unless_it_says_otherwise() -> None:
    keys = {"cluster": "gavel:2:2:2", "policy": ["fifo", "isolated"], "jobs": 6}
    assert {run.scenario.record for run in sweep.sweep_of(keys)} == {"all"}
    assert {run.scenario.record for run in sweep.sweep_of({**keys, "record": "summary"})} == {"summary"}


def test_the_table_of_flags_names_keys_that_exist() -> None:
    rows = (sweep.__doc__ or "").split("flag   ")[1]
    keys = {word for words in re.findall(r"``([^`]+)``", rows) for word in re.findall(r"^([a-z_]+)(?= =|$)", words)}
    assert {"rate_per_hour", "warm_start", "until_s"} < keys <= {*sweep.KEYS, *sweep.OWN_KEYS}


def test_more_runs_than_the_budget_are_refused_before_any_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Work.RUNS, "usual", 2)
    assert len(sweep.sweep_of(BASE | {"seed": [0, 1]})) == 2
    with pytest.raises(ScenarioError, match=r"found 4 runs, expected at most 2 runs"):
        sweep.sweep_of(BASE | {"seed": [0, 1], "policy": ["fifo", "isolated"]})
    with pytest.raises(ScenarioError, match=r"rate_per_hour: found 10,000,000,000 runs, expected at most 2 runs"):
        sweep.sweep_of(BASE | {"rate_per_hour": {"from": 0, "to": 1, "points": 10**10}})
    monkeypatch.undo()
    many = {name: [*range(100)] for name in ("a", "b", "c", "d")}
    with pytest.raises(
        ScenarioError, match=r"found 10,000,000,000 runs, expected at most 1,000,000 runs; FASTSIM_BUDGET"
    ):
        sweep.sweep_of(BASE | {"vars": many, "seed": [*range(100)]})


def test_what_is_complete_is_not_run_again(tmp_path: Path) -> None:
    runs = sweep.sweep_of(BASE | {"seed": [0, 1]})
    reported: list[int] = []
    table = sweep.swept(runs, tmp_path, progress=reported.append)
    stamp = (tmp_path / "seed=0" / "run.json").stat().st_mtime_ns
    more = sweep.swept(sweep.sweep_of(BASE | {"seed": [0, 2, 1]}), tmp_path, workers=2, progress=reported.append)
    assert (tmp_path / "seed=0" / "run.json").stat().st_mtime_ns == stamp and reported == [1, 2, 3]
    assert more.filter(pl.col("seed") != 2).equals(table)
    with pytest.raises(ResultError, match="seed=0: found another run, expected the one of the sweep"):
        sweep.swept(sweep.sweep_of(BASE | {"seed": [0], "jobs": 7}), tmp_path)
    (tmp_path / "seed=5").mkdir()
    with pytest.raises(ResultError, match="no readable run"):
        sweep.swept(sweep.sweep_of(BASE | {"seed": [5]}), tmp_path)


def test_numbers_of_jobs_and_steps() -> None:
    static = sweep.sweep_of(BASE | {"jobs": {"from": 0, "to": 9, "points": 5}})
    assert [run.scenario.workload for run in static] == [f"synth:gavel?jobs={n}" for n in (3, 5, 7, 9)]
    assert [run.listed["jobs"] for run in static] == [2.25, 4.5, 6.75, 9.0]
    (one,) = sweep.sweep_of(BASE | {"jobs": {"from": 4, "to": 9, "points": 1}})
    assert (one.name, one.scenario.workload) == ("jobs=4", "synth:gavel?jobs=4")


def test_names_are_safe_and_all_different() -> None:
    (one,) = sweep.sweep_of(BASE | {"policy": ["max_min_fairness(mode=base)"]})
    assert one.name == "policy=max_min_fairness(mode%3Dbase)"
    runs = sweep.sweep_of(BASE | {"policy": ["isolated", "isolated()"], "window": ["0:5", "1:5"]})
    names = [run.name for run in runs]
    assert len(set(names)) == 4 and all(set(": ").isdisjoint(name) for name in names)
    many = sweep.sweep_of(BASE | {"policy": ["isolated"], "rate_per_hour": [0.1234567, 0.1234568]})
    assert {run.name for run in many} == {
        f"policy=isolated/rate_per_hour=0.123457~{run.scenario.id[:8]}" for run in many
    }
    assert sweep.sweep_of(BASE)[0].name == "run"


def test_pods_may_be_swept_too(tmp_path: Path) -> None:
    runs = sweep.sweep_of({"cluster": "openb:20", "workload": "synth:openb?pods=50", "policy": ["fgd", "random"],
                           "deschedule": ["frag_one_pod:0.1"], "seed": [1, 2]})  # fmt: skip
    assert [run.scenario.workload for run in runs[:2]] == [f"synth:openb?pods=50&seed={seed}" for seed in (1, 2)]
    assert runs[0].scenario.deschedule == ("frag_one_pod:0.1",) and list(runs[0].listed) == ["policy", "seed"]
    assert sweep.swept(runs, tmp_path)["pods"].to_list() == [50] * 4


def test_cutoffs_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_text(json.dumps({"2:2:2": {"fifo": 0.2}}))
    keys = BASE | {"policy": ["fifo", "isolated"], "rate_per_hour": [0.1, 0.2, 0.3]}
    runs = sweep.sweep_of(keys | {"cutoff_rates": str(tmp_path / "cut.json")})
    assert [run.name for run in runs if run.listed["policy"] == "fifo"] == ["policy=fifo/rate_per_hour=0.1"]
    assert len(runs) == 4


@pytest.mark.parametrize(
    ("keys", "match"),
    [
        ({"polici": 1}, r"x: polici: found an unknown key, .*did you mean 'policy'"),
        ({"policy": []}, "x: policy: found an empty list"),
        ({"seed": [1, 1]}, r"x: seed\[1\]: found 1 once more"),
        ({"seed": ["a"]}, r"x: seed\[0\]: found 'a'.*x: workload: synth.seed: found 'a'"),
        ({"seed": {"from": 0, "to": 3, "points": 3}}, "x: seed"),
        ({"jobs": {"from": 0, "to": 0, "points": 1}}, "x: jobs: .*a number besides 0"),
        ({"jobs": {"from": 0, "to": 10**400, "points": 2}}, "x: jobs: "),
        ({"jobs": {"from": 0, "to": "9", "points": 3}}, "x: jobs: found"),
        ({"jobs": [0]}, "x: jobs: found 0"),
        ({"policy_names": "yarn"}, "x: policy_names: found 'yarn'"),
        ({"policy_names": "gavel", "policy": {"a": 1}}, "x: policy: found {'a': 1}, expected one of allox"),
        ({"policy_names": "gavel", "policy": "fgd"}, "x: policy: found 'fgd', expected one of allox"),
        ({"workload": "pods.parquet"}, "x: jobs: found 6, expected no such key"),
        ({"cutoff_rates": {"2:2:2": 4}}, r"x: cutoff_rates\.2:2:2: found 4"),
        ({"cutoff_rates": {"2:2:2": {"fifo": "a"}}}, r"x: cutoff_rates\.2:2:2\.fifo: found 'a'"),
        ({"cutoff_rates": "none.json"}, r"x: cutoff_rates: found none\.json"),
        ({"cutoff_rates": {"2:2:2": {"fifo": 1}}, "rate_per_hour": [2]}, "no run below the cutoff rates"),
        (
            {name: list(range(1, 201)) for name in ("seed", "round_s", "restart_s")},
            "x: found 8,000,000 runs, expected at",
        ),
        ({"jobs": {"from": 1, "to": 2, "points": 10**10}}, "x: jobs: found 10,000,000,000 runs, expected at most"),
        ({"out": "runs"}, "x: out: found an unknown key"),
    ],
)
def test_mistakes_name_the_key(keys: dict[str, Any], match: str) -> None:
    with pytest.raises(FastsimError, match=match):
        sweep.sweep_of(BASE | keys, "x")


def test_jobs_are_needed_without_a_window() -> None:
    keys = {"cluster": "gavel:2:2:2", "policy": "fifo", "rate_per_hour": 1}
    with pytest.raises(ScenarioError, match="x: jobs: found nothing, expected a number, or a window"):
        sweep.sweep_of(keys, "x")
    assert sweep.sweep_of(keys | {"window": "0:5"})[0].scenario.workload == "synth:gavel?rate_per_hour=1&jobs=5"
    synergy = {"workload": "synth:synergy?log=100", "window": "0:5", "split": ["20:70:10", "50:0:50"]}
    assert [run.scenario.workload for run in sweep.sweep_of(keys | synergy)] == [
        f"synth:synergy?log=100&rate_per_hour=1&split={split}&jobs=5" for split in synergy["split"]
    ]


def test_runs_that_differ_in_unused_long_values_have_folders_of_their_own() -> None:
    values = [f"{'x' * 300}{end}" for end in ("a", "b")]
    keys = {"cluster": "openb:2", "workload": "synth:openb?pods=2", "vars": {"x": values}, "seed": [1, 2]}
    names = [run.name for run in sweep.sweep_of(keys)]
    assert len({name.lower() for name in names}) == 4
    assert all(len(part) < 256 for name in names for part in name.split("/"))
