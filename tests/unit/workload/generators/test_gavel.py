"""Generated jobs as workloads: options, what the file says of them, the endless stream behind, refusals."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
import random
from pathlib import Path
from typing import Any

import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.errors import ScenarioError
from fastsim.performance.gavel_rates import JOB_NAMES, JOB_TABLES
from fastsim.performance.oracle import Oracle
from fastsim.scenario import run_inputs
from fastsim.workload import Workload
from fastsim.workload.generators.gavel import ScriptRecipe, script_jobs, synth_gavel

ORACLE = Oracle.default()


def test_a_workload_of_jobs_can_be_read_again_and_again(tmp_path: Path) -> None:
    jobs = Workload.synth("gavel", jobs=90, rate_per_hour=6, seed=2, multi_gpu=True, priorities=True, slos=True)
    assert jobs.rows == 90 and jobs.table() == jobs.table() == pickle.loads(pickle.dumps(jobs)).table()
    assert jobs.columns[-2:] == ["slo", "weight"]
    assert jobs.write(tmp_path / "jobs.parquet") == 90
    again = Workload.scan(tmp_path / "jobs.parquet")
    assert again.checksum() == jobs.checksum()
    content = json.loads(again.metadata["fastsim.params"])
    assert (content["mean_gap_s"], content["rates"], content["durations"]) == (600.0, "rate model", "gavel")
    assert content["gpu_mix"] == {"1": 0.7, "2": 0.8, "4": 0.95, "8": 1.0}


def test_the_stream_behind_goes_on_for_ever() -> None:
    jobs = Workload.synth("gavel", jobs=10, rate_per_hour=6, seed=2)
    stream = jobs.endless()
    assert stream is not None
    longer = stream.take(25)
    assert longer.slice(0, 10).to_pylist() == jobs.table().to_pylist()
    assert longer.to_pylist() == Workload.synth("gavel", jobs=25, rate_per_hour=6, seed=2).table().to_pylist()
    assert Workload.synth("openb", pods=3).endless() is None


def test_rates_from_files(tmp_path: Path) -> None:
    Oracle.default().to_parquet(tmp_path / "rates.parquet")
    expected = synth_gavel(20).table()
    assert synth_gavel(20, rates=tmp_path / "rates.parquet").table() == expected
    assert synth_gavel(20, rates=Oracle.default().restricted(["k80"])).table()["total_work"] != expected["total_work"]


def test_a_warm_start_fills_the_cluster() -> None:
    cluster = Cluster.uniform(nodes=2, gpu="T4", gpus=4)
    times = synth_gavel(12, rate_per_hour=1, warm_start=True, cluster=cluster).table()["submit_s"].to_pylist()
    assert times[:9] == [0.0] * 9 and times[9] > 0
    text = run_inputs.workload_from("synth:gavel?jobs=12&rate_per_hour=1&warm_start=true&cluster=openb:8").workload
    assert text.table()["submit_s"].to_pylist() == [0.0] * 12


def test_the_trace_generator_as_text() -> None:
    jobs = run_inputs.workload_from("synth:gavel-trace?jobs=7&seed=3&rate_per_hour=2&max_h=8&lengths=8").workload
    assert jobs.rows == 7 and jobs.metadata["fastsim.source"] == "synth gavel-trace"
    assert {seconds % 3600 for seconds in jobs.table()["duration_s"].to_pylist()} == {0.0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jobs": -1}, "synth.jobs: found -1"),
        ({"rate_per_hour": 6, "mean_gap_s": 600}, "one of the two"),
        ({"rate_per_hour": 0}, "rate_per_hour: found 0"),
        ({"durations": "short"}, "durations: found 'short'"),
        ({"warm_start": True}, "no cluster"),
        ({"warm_start": True, "cluster": "uniform?nodes=2"}, "a cluster without GPUs"),
        ({"gpu_mix": "1:2", "multi_gpu": True}, "jobs.gpu_mix"),
        ({"gpu_mix": "1:1"}, "synth.gpu_mix: found multi_gpu=False, expected multi_gpu=True"),
        ({"weight_mix": {2.0: 1}}, "synth.weight_mix: found priorities=False"),
        ({"slo_mix": {2.0: 1}}, "synth.slo_mix: found slos=False"),
        ({"seed": 1.5}, "synth.seed: found 1.5"),
        ({"table": "2020-06"}, "synth.table: found '2020-06', expected one of 2020-08, 2020-05"),
        (
            {"table": "2019-09", "multi_gpu": True},
            "2019-09, with rates that lack some, expected rates of all types on 1",
        ),
        ({"table": "2019-09", "slos": True}, "synth.slos: found True, expected none of them with table=2019-09"),
        ({"table": "2019-09", "durations": max}, "synth.durations: found max, expected none of them"),
        ({"multi_gpu": "no"}, "synth.multi_gpu: found 'no', expected true or false"),
    ],
)
def test_odd_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        synth_gavel(**{"jobs": 3, **options})
    if set(options) <= {"jobs", "seed", "rate_per_hour", "mean_gap_s", "table"}:
        with pytest.raises(ScenarioError, match=message):
            Workload.synth("gavel-trace", **{"jobs": 3, **options})


@pytest.mark.parametrize("kind", ["gavel", "gavel-trace"])
def test_jobs_are_drawn_from_the_table_of_a_month(kind: str) -> None:
    usual, early = (
        run_inputs.workload_from(f"synth:{kind}?jobs=300&multi_gpu=true{end}").workload
        for end in ("", "&table=2020-05")
    )
    moved = {name: JOB_TABLES["2020-05"][place] for place, name in enumerate(JOB_NAMES)}
    assert json.loads(early.metadata["fastsim.params"])["table"] == "2020-05"
    if kind == "gavel-trace":  # types do not depend on GPUs here
        assert early.table()["workload"].to_pylist() == [moved[name] for name in usual.table()["workload"].to_pylist()]
    assert early.table()["workload"] != usual.table()["workload"]
    assert Workload.synth(kind, jobs=300, multi_gpu=True, table="2020-08").table() == usual.table()
    few = Oracle.default().restricted(["k80"])
    few = dataclasses.replace(few, kinds=tuple(("own", n) if name == "A3C" else (name, n) for name, n in few.kinds))
    with pytest.raises(ScenarioError, match="2020-05, with rates that lack 'A3C', expected rates of all types"):
        Workload.synth(kind, jobs=3, rates=few, table="2020-05")


def test_jobs_of_2019_are_drawn_by_the_simulator_alone() -> None:
    early = run_inputs.workload_from("synth:gavel?jobs=300&table=2019-09").workload
    assert min(early.table()["duration_s"].to_pylist()) >= 6000
    assert early.table()["workload"] != Workload.synth("gavel", jobs=300, table="2020-05").table()["workload"]
    with pytest.raises(ScenarioError, match=r"synth\.table: found '2019-09', expected one of 2020-08, 2020-05$"):
        Workload.synth("gavel-trace", jobs=3, table="2019-09")


def by_hand(recipe: ScriptRecipe, count: int) -> list[tuple[Any, ...]]:
    jobs, gaps, lasting, sizes = (random.Random(recipe.seed + n) for n in range(4))
    hours = [recipe.min_h + n * (recipe.max_h - recipe.min_h) / (recipe.lengths - 1) for n in range(recipe.lengths)]
    rows, submit_s = [], 0.0
    for _ in range(count):
        workload, num_gpu = jobs.choice(recipe.workloads or JOB_NAMES), 1
        if recipe.multi_gpu and (workload, 2) in ORACLE.kind_index:
            r = sizes.uniform(0, 1)
            num_gpu = 1 if r < 0.7 else 2 if r < 0.8 else 4
        seconds = 3600 * lasting.choice(hours)
        weight = 5.0 if recipe.priorities and jobs.uniform(0, 1) <= 0.2 else 1.0
        steps = seconds * ORACLE.alone__kg[ORACLE.kind_index[workload, num_gpu], 2]
        rows.append((submit_s, workload, num_gpu, seconds, steps, weight))
        if recipe.mean_gap_s:
            submit_s += -math.log(1.0 - gaps.random()) / (1 / recipe.mean_gap_s)
    return rows


@pytest.mark.parametrize("multi_gpu", [False, True])
@pytest.mark.parametrize("priorities", [False, True])
@pytest.mark.parametrize("mean_gap_s", [0.0, 600.0])
def test_jobs_are_those_of_a_plain_loop(multi_gpu: bool, priorities: bool, mean_gap_s: float) -> None:
    recipe = ScriptRecipe(ORACLE, 5, mean_gap_s, multi_gpu, priorities)
    rows = script_jobs(recipe, 300).to_pylist()
    names = ("submit_s", "workload", "num_gpu", "duration_s", "total_work", "weight")
    assert [tuple(row[name] for name in names) for row in rows] == by_hand(recipe, 300)


def test_few_jobs() -> None:
    recipe = ScriptRecipe(ORACLE, priorities=True, multi_gpu=True, mean_gap_s=5.0)
    assert script_jobs(recipe, 0).num_rows == 0 and script_jobs(recipe, 1)["submit_s"].to_pylist() == [0.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean_gap_s": float("inf")}, "mean_gap_s: found inf"),
        ({"min_h": 3.0, "max_h": 2.0}, "4 durations from 3.0 to 2.0 h"),
        ({"lengths": 0}, "0 durations"),
    ],
)
def test_odd_options_are_refused_of_gavel_script(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        ScriptRecipe(ORACLE, **options)
