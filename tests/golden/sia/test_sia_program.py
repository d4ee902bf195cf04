"""The recorded decisions of Sia: values, programs and placements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastsim.policies.deciders.configurations import Configurations, NodeShape, placed
from fastsim.policies.deciders.sia_program import (
    NONE,
    Ints,
    SiaInstance,
    best_choices,
    objective_of,
    only_former,
    values,
)
from fastsim.policies.solvers.multiple_choice import ChoiceSolver
from tests.golden.sia.sia import lines
from tests.golden.sia.sia_replay import GPUS_PER_NODE

SOLVER_GAP = 1e-4
"""Relative gap at which the recordings' solver stops."""


def adaptive(call: dict[str, Any]) -> SiaInstance:
    """Wishes of the jobs that take any configuration."""
    jobs, configs = call["jobs"], call["configs"]
    group = np.array([call["gpu_types"].index(model) for model, _, _ in configs], np.int64)
    former = np.array([NONE if job["prev_config"] is None else job["prev_config"] for job in jobs], np.int64)
    goodput = np.array(call["G"], np.float32).reshape(len(jobs), len(configs))
    value = values(goodput, [job["realloc_factor"] for job in jobs], former, call["p"])
    gpus = np.array([gpus for _, _, gpus in configs], np.int64)
    return SiaInstance(value, group, gpus, former, np.array([job["forced"] for job in jobs], np.bool_))


def rigid(call: dict[str, Any]) -> SiaInstance:
    """Wishes of the jobs whose number of GPUs is fixed."""
    jobs, models = call["rigid_jobs"], len(call["gpu_types"])
    former = np.array([NONE if job["prev_type"] is None else job["prev_type"] for job in jobs], np.int64)
    forced = np.array([job["forced"] for job in jobs], np.bool_)
    goodput = only_former(np.array([job["goodput"] for job in jobs], np.float64).reshape(-1, models), former, forced)
    value = values(goodput, [job["realloc_factor"] for job in jobs], former, call["p"])
    gpus = np.array([job["num_gpus"] for job in jobs], np.int64).reshape(-1, 1).repeat(models, axis=1)
    return SiaInstance(value, np.arange(models), gpus, former, forced)


def recorded_choice(call: dict[str, Any], jobs: str, answer: str) -> Ints:
    """What the recorded solver chose."""
    found = [call[answer].get(job["name"]) for job in call[jobs]]
    return np.array([NONE if choice is None else choice for choice in found], np.int64)


def test_values_are_exact(shared: Callable[[str], Path]) -> None:
    for call in lines(shared("golden/sia/functions") / "sia_ilp_snapshots.jsonl"):
        expected = np.array(call["A"], np.float32).reshape(len(call["jobs"]), -1)
        assert np.array_equal(adaptive(call).value__jq, expected), call["id"]


def test_choices_are_as_good_and_the_same_unless_tied(shared: Callable[[str], Path]) -> None:
    solver, calls, same = ChoiceSolver(), 0, 0
    for call in lines(shared("golden/sia/functions") / "sia_ilp_snapshots.jsonl"):
        instances, without = (rigid(call), adaptive(call)), call["lambda_no_alloc"]
        capacity = np.array(call["total_gpus"], np.int64)
        found = best_choices(instances, capacity, without, solver)
        theirs = (
            recorded_choice(call, "rigid_jobs", "chosen_type"),
            recorded_choice(call, "jobs", "chosen_config"),
        )
        assert found.objective == pytest.approx(call["optimum_highs"], abs=1e-6)
        assert found.objective <= call["objective"] + 1e-6
        assert call["objective"] - found.objective <= SOLVER_GAP * abs(call["objective"])
        equal = all(np.array_equal(ours, their) for ours, their in zip(found.chosen, theirs, strict=True))
        if not equal:
            tied = sum(
                objective_of(instance, their, without) for instance, their in zip(instances, theirs, strict=True)
            )
            assert tied == pytest.approx(found.objective, abs=1e-6)
        used = np.zeros(len(capacity), np.int64)
        for instance, chosen in zip(instances, found.chosen, strict=True):
            some = np.flatnonzero(chosen != NONE)
            gpus = np.broadcast_to(instance.gpus__jq, instance.value__jq.shape)[some, chosen[some]]
            np.add.at(used, instance.group__q[chosen[some]], gpus)
            assert (chosen[instance.forced__j] == instance.former__j[instance.forced__j]).all()
        assert (used <= capacity).all()
        calls, same = calls + 1, same + equal
    assert calls > 0 and same > calls / 2  # ties are common: new jobs, and values rounded to two decimals


def test_configurations(shared: Callable[[str], Path]) -> None:
    for call in lines(shared("golden/sia/functions") / "sia_ilp_snapshots.jsonl"):
        groups = tuple(
            NodeShape(model, gpus // GPUS_PER_NODE[model][0], *GPUS_PER_NODE[model])
            for model, gpus in zip(call["gpu_types"], call["total_gpus"], strict=True)
        )
        found = Configurations(groups)
        names = [groups[g].gpu_model for g in found.group__q]
        assert [list(row) for row in zip(names, found.nodes__q, found.gpus__q, strict=True)] == call["configs"]
        assert found.gpus__g.tolist() == call["total_gpus"]


def test_placements(shared: Callable[[str], Path]) -> None:
    for case in lines(shared("golden/sia/functions") / "placement_fast.jsonl"):
        sizes = {name: gpus for name, (_, gpus) in case["jobs"].items()}
        found = placed(list(sizes.values()), [case["gpus_per_node"]] * case["num_nodes"])
        assert dict(zip(sizes, found, strict=True)) == case["placement"], case["id"]
