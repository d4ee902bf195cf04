"""The recorded genetic search of Pollux: how good states are, and what the operators make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fastsim_ext.adaptive.fitness import evaluated
from fastsim_ext.adaptive.genetic_operators import GeneticOperators
from tests.golden.sia.sia import lines

RESTART_S = 30.0
"""What Pollux reckons with for every job."""


def cases(shared: Callable[[str], Path]) -> Iterator[dict[str, Any]]:
    """The recorded populations."""
    return lines(shared("golden/sia/functions") / "pollux_fitness.jsonl")


def counts(values: object) -> np.ndarray[Any, np.dtype[np.int8]]:
    """Recorded states as they are kept here."""
    return np.array(values, np.int8)


def breeder(case: dict[str, Any], operator: str) -> GeneticOperators:
    """The operators on the stream that a recorded call began with."""
    _, key, used, *_ = np.random.RandomState(case[operator]["seed"]).get_state()
    return GeneticOperators(
        len(case["jobs"]), case["n_vnodes"], case["gpus_per_vnode"], np.array(key, np.uint32), int(used)
    )


def test_fitness(shared: Callable[[str], Path]) -> None:
    for case in cases(shared):
        jobs, states = case["jobs"], counts(case["eval_states"])
        most = int(states.sum(axis=2).max())
        speedup = np.full((len(jobs), 2, most + 1), np.nan)
        for j, job in enumerate(jobs):
            for nodes, gpus, value in job["speedup"]:
                if gpus <= most:
                    speedup[j, int(nodes > 1), gpus] = value
        speedup[:, 0, 0] = 0.0
        age, restarts = (np.array([job[name] for job in jobs], np.float64) for name in ("age", "num_restarts"))
        keeping = np.maximum(age - restarts * RESTART_S, 0) / (age + RESTART_S)
        mean, utility = np.empty(len(states)), np.empty(len(states))
        evaluated(
            states, counts(case["base_state"]), speedup, keeping, np.array(case["dominant_share"]),
            case["gpus_per_vnode"], case["p"], mean, utility,
        )  # fmt: skip
        assert np.array_equal(-np.stack([mean, utility], axis=1), case["F"])  # to the bit: ties decide


def test_crossover(shared: Callable[[str], Path]) -> None:
    for case in cases(shared):
        first, second = counts(case["crossover"]["inp"])
        breeder(case, "crossover").crossed(first, second)
        assert np.array_equal(np.stack([first, second]), np.reshape(case["crossover"]["out"], (2, *first.shape)))


def test_mutation(shared: Callable[[str], Path]) -> None:
    for case in cases(shared):
        states = counts(case["mutation"]["inp"])
        breeder(case, "mutation").mutated(states, counts(case["base_state"]))
        assert np.array_equal(states, np.reshape(case["mutation"]["out"], states.shape))


def test_repair(shared: Callable[[str], Path]) -> None:
    for case in cases(shared):
        states = counts(case["repair"]["inp"])
        bounds = (("max_replicas", "min_replicas"), case["jobs"])
        most, least = (np.array([job[name] for job in bounds[1]], np.int32) for name in bounds[0])
        breeder(case, "repair").repaired(states, most, least)
        assert np.array_equal(states, np.reshape(case["repair"]["out"], states.shape))
