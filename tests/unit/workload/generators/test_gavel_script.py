"""Jobs of the stand-alone generator: what a plain loop over CPython's numbers draws, and refusals."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from fastsim.errors import ScenarioError
from fastsim.performance.gavel_job_types import JOB_NAMES
from fastsim.performance.oracle import Oracle
from fastsim.workload.generators.gavel_script import ScriptRecipe, script_jobs

ORACLE = Oracle.default()


def by_hand(recipe: ScriptRecipe, count: int) -> list[tuple[Any, ...]]:
    jobs, gaps, lasting, sizes = (random.Random(recipe.seed + n) for n in range(4))
    hours = [recipe.min_h + n * (recipe.max_h - recipe.min_h) / (recipe.lengths - 1) for n in range(recipe.lengths)]
    rows, submit_s = [], 0.0
    for _ in range(count):
        workload, num_gpu = jobs.choice(JOB_NAMES), 1
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
def test_odd_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        ScriptRecipe(ORACLE, **options)
