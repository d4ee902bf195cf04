"""Generated jobs: what a plain loop over CPython's numbers draws, in any pieces; own distributions; refusals."""

from __future__ import annotations

import json
import math
import random
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fastsim.errors import InputError, ScenarioError
from fastsim.performance.gavel_rates import JOB_NAMES, JOB_TABLES
from fastsim.performance.oracle import Oracle
from fastsim.workload.generators.gavel_jobs import EARLY_GPU_MIX, JobRecipe, JobStream, gavel_seconds

ORACLE = Oracle.default()
EVERY = tuple(name for name in JOB_NAMES if (name, 8) in ORACLE.kind_index)
"""Workloads that run on any number of GPUs."""


def by_hand(recipe: JobRecipe, count: int) -> list[tuple[Any, ...]]:
    """(arrival, workload, GPUs, seconds, steps, weight, factor) of each job, drawn one number after another."""
    jobs, gaps, slos = (random.Random(recipe.seed + n) for n in (2, 3, 6))
    rows, submit_s = [], 0.0
    for job in range(count):
        r = jobs.uniform(0, 1)
        num_gpu = 1 if r < 0.7 else 2 if r < 0.8 else 4 if r < 0.95 else 8
        long = jobs.random() >= 0.8
        seconds = 60 * 10 ** (jobs.uniform(3, 4) if long else jobs.uniform(1.5, 3))
        num_gpu = num_gpu if recipe.multi_gpu else 1
        workload = jobs.choice(recipe.workloads or JOB_NAMES)
        while (workload, num_gpu) not in ORACLE.kind_index:
            workload = jobs.choice(recipe.workloads or JOB_NAMES)
        steps = seconds * ORACLE.alone__kg[ORACLE.kind_index[workload, num_gpu], 2]
        weight = (5.0 if jobs.uniform(0, 1) <= 0.2 else 1.0) if recipe.priorities else None
        factor = None
        if recipe.slos:
            r = slos.uniform(0, 1)
            factor = 1.2 if r < 0.33 else 2.0 if r < 0.67 else 10.0
        rows.append((submit_s if job else 0.0, workload, num_gpu, seconds, steps, weight, factor))
        if recipe.mean_gap_s:
            submit_s += -math.log(1.0 - gaps.random()) / (1 / recipe.mean_gap_s)
    return rows


def told(batches: list[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    names = ("submit_s", "workload", "num_gpu", "duration_s", "total_work", "weight", "slo")
    rows = pa.Table.from_batches(batches).to_pylist()
    return [tuple(row.get(name) for name in names) for row in rows]


@pytest.mark.parametrize("flags", [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("seconds", [None, 7200.0])
def test_jobs_of_2019_are_drawn_in_another_order(flags: tuple[bool, bool], seconds: float | None) -> None:
    recipe = JobRecipe(
        ORACLE, 3, 0.0, *flags, durations=seconds or gavel_seconds, workloads=EVERY, gpu_mix=EARLY_GPU_MIX, early=True
    )
    jobs, rows = random.Random(5), []
    for _ in range(400):
        workload, num_gpu = jobs.choice(EVERY), 1
        lasting = 60 * 10 ** jobs.uniform(2, 4) if seconds is None else seconds
        if flags[0]:
            r = jobs.uniform(0, 1)
            num_gpu = 1 if r < 0.8 else 2 if r < 0.85 else 4 if r < 0.95 else 8
        weight = (5.0 if jobs.uniform(0, 1) <= 0.2 else 1.0) if flags[1] else None
        steps = lasting * ORACLE.alone__kg[ORACLE.kind_index[workload, num_gpu], 2]
        rows.append((0.0, workload, num_gpu, lasting, steps, weight, None))
    assert told([JobStream(recipe).take(400)]) == told(list(JobStream(recipe).batches(400, rows=7))) == rows


@pytest.mark.parametrize("seed", [0, 11])
@pytest.mark.parametrize("flags", [(False, False, False), (True, False, False), (True, True, True)])
@pytest.mark.parametrize("mean_gap_s", [0.0, 600.0])
def test_jobs_are_those_of_a_plain_loop(seed: int, flags: tuple[bool, ...], mean_gap_s: float) -> None:
    for table in JOB_TABLES.values():
        recipe = JobRecipe(ORACLE, seed, mean_gap_s, flags[0], flags[1], flags[2], workloads=table)
        assert told([JobStream(recipe).take(400)]) == by_hand(recipe, 400)


def test_pieces_and_pauses_change_nothing() -> None:
    recipe = JobRecipe(ORACLE, 4, 900.0, multi_gpu=True, priorities=True, slos=True, present_gpus=(6, 0, 9))
    whole = [JobStream(recipe).take(300)]
    assert told(list(JobStream(recipe).batches(300, rows=7))) == told(whole)
    stream, pieces = JobStream(recipe), []
    for count in (0, 1, 3, 46, 250):
        pieces.append(stream.take(count))
        stream = JobStream(recipe, json.loads(json.dumps(stream.kept())))
    assert told(pieces) == told(whole)
    assert stream.jobs == 300
    endless = stream.batches(rows=5)
    assert [len(next(endless)) for _ in range(3)] == [5, 5, 5]


def test_the_first_jobs_fill_every_gpu_model() -> None:
    recipe = JobRecipe(ORACLE, 4, 900.0, multi_gpu=True, present_gpus=(6, 0, 9))
    batch = JobStream(recipe).take(recipe.present + 3)
    sizes = batch.column("num_gpu").to_pylist()
    left, model = [6, 9], 0
    for size in sizes[: recipe.present]:
        left[model] -= size
        model += left[model] <= 0
    assert model == 2
    # The jobs themselves are those of a cold start; one more comes at 0 s, then gaps begin.
    cold = JobStream(JobRecipe(ORACLE, 4, 900.0, multi_gpu=True))
    cold_times = cold.take(3).column("submit_s").to_pylist()
    assert batch.column("submit_s").to_pylist() == [0.0] * recipe.present + cold_times


def test_a_fixed_duration_takes_no_numbers() -> None:
    recipe = JobRecipe(ORACLE, 3, durations=7200.0)
    jobs = random.Random(5)
    names = []
    for _ in range(50):
        jobs.random()
        names.append(jobs.choice(JOB_NAMES))
    batch = JobStream(recipe).take(50)
    assert batch.column("workload").to_pylist() == names
    assert set(batch.column("duration_s").to_pylist()) == {7200.0}


def test_own_distributions() -> None:
    recipe = JobRecipe(
        ORACLE, 1, durations=lambda branch, place: 10.0 + place, multi_gpu=True, gpu_mix={2: 0.5, 8: 0.5},
        priorities=True, weight_mix={3.0: 1}, slos=True, slo_mix="4:1",
    )  # fmt: skip
    batch = JobStream(recipe).take(500)
    seconds, sizes = (batch.column(name).to_numpy() for name in ("duration_s", "num_gpu"))
    assert seconds.min() >= 10 and seconds.max() < 11
    assert set(sizes.tolist()) == {2, 8} and 200 < (sizes == 2).sum() < 300
    assert set(batch.column("weight").to_pylist()) == {3.0} and set(batch.column("slo").to_pylist()) == {4.0}


def test_own_rates_bring_their_own_workloads() -> None:
    kinds, alone = (("b", 1), ("a", 1), ("c", 2)), np.array([[1, 4.0], [1, 8], [2, 2]])
    oracle = Oracle(kinds, ("x", "y"), alone, np.zeros((3, 3, 2)))
    recipe = JobRecipe(oracle, durations=2.0)
    rows = told([JobStream(recipe).take(60)])
    assert {(name, size, steps) for _, name, size, _, steps, *_ in rows} == {("a", 1, 16.0), ("b", 1, 8.0)}
    assert {row[4] for row in told([JobStream(JobRecipe(oracle, durations=2.0, reference="x")).take(9)])} == {2.0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean_gap_s": -1.0}, "mean_gap_s: found -1.0"),
        ({"durations": 0.0}, "durations: found 0.0"),
        ({"durations": lambda branch, place: -place}, "durations: found array"),
        ({"durations": lambda branch, place: place[:3]}, "durations: found array"),
        ({"gpu_mix": {1.5: 1}, "multi_gpu": True}, "whole numbers of GPUs"),
        ({"gpu_mix": {3: 1}, "multi_gpu": True}, "no workload that runs on 3 GPUs of model v100"),
        ({"reference": "t4"}, "GPU model: found 't4'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ScenarioError, InputError), match=message):
        JobStream(JobRecipe(ORACLE, **options)).take(20)


def test_a_damaged_position_is_refused() -> None:
    with pytest.raises(InputError, match="what kept"):
        JobStream(JobRecipe(ORACLE), {"jobs": 3})


def test_drawing_is_quick() -> None:
    recipe, calls = JobRecipe(ORACLE, 0, 900.0), 0

    def heard(_frame: object, event: str, _of: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    JobStream(recipe).take(1)  # what is worked out once
    before = sys.getprofile()
    sys.setprofile(heard)
    JobStream(recipe).take(5576)
    sys.setprofile(before)
    assert calls < 5 * 5576  # jobs are drawn together, not number by number
