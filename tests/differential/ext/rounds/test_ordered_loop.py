"""Ordered rounds: the compiled loop and the twin in plain Python go through the same rounds, to the bit."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from fastsim.engine.rounds.options import RoundOptions
from fastsim.errors import PolicyError
from tests.reference.rounds.ordered_rounds import Sums, Turns
from tests.strategies import scenarios_per_run
from tests.tenures import Held, same_tenures, tenures
from tests.turns import Case, cases


@settings(max_examples=scenarios_per_run(400))
@given(cases())
def test_compiled_and_plain_rounds_are_equal(case: Case) -> None:
    check(case)


@settings(max_examples=scenarios_per_run(300))
@given(cases(changing=True))
def test_they_are_where_nodes_come_and_go(case: Case) -> None:
    check(case)


def check(case: Case) -> None:
    """Every figure and every task of both runs is the same."""
    try:
        expected = case.twin()
    except PolicyError:
        with pytest.raises(PolicyError, match="nothing runs"):
            case.run()
        return
    run = case.run()
    assert [(t["t"], t["jobs"]) for t in run.round_records] == [(at, jobs) for at, jobs, _ in expected.rounds]
    assert held(run) == [(at, job, gpus) for at, _, rows in expected.rounds for job, gpus in rows]
    assert run.round_records[list(Sums._fields)].tolist() == expected.sums
    assert (run.busy_s.tolist(), run.wasted_gpu_s) == (expected.busy_s, expected.wasted_gpu_s)
    known = [(a.job.submit_s, a.done, a.rounds) for a in expected.known]
    assert run.jobs[["submit_s", "run", "rounds"]].tolist() == known
    assert same_times(run.jobs["first_s"], [a.first_s for a in expected.known])
    assert same_times(run.jobs["finish_s"], [a.finish_s for a in expected.known])
    assert same_tenures(run.jobs, tenures(len(run.jobs), held_in_order(expected)), case.options.prices is not None)


@settings(max_examples=scenarios_per_run(200))
@given(cases("fair"))
def test_the_same_rounds_pass_before_a_run_in_which_nothing_happens_is_given_up(case: Case) -> None:
    jobs = [job._replace(submit_s=100.0 * (row // 2)) for row, job in enumerate(case.jobs)]
    options = RoundOptions(round_s=100.0, begin_s=0.0, compat=frozenset({"whole_steps"}))
    needs = dataclasses.replace(case.needs, step_s__kg=case.needs.step_s__kg * 1e4)  # no step fits into a round
    plan = dataclasses.replace(case.plan, admit=1.0)
    case = dataclasses.replace(case, jobs=jobs, options=options, needs=needs, plan=plan)
    with pytest.raises(PolicyError, match="nothing runs at") as plain:
        case.twin()
    with pytest.raises(PolicyError, match=f"nothing runs at {str(plain.value.found).split()[3]} s"):
        case.run()


def held_in_order(expected: Turns) -> Iterator[Held]:
    """What jobs held in each round."""
    round_s, turn, before_s = expected.options.round_s, -1, -math.inf
    prices, model__u = expected.options.prices, np.repeat(range(len(expected.needs.gpus__g)), expected.needs.gpus__g)
    for now_s, _, rows in expected.rounds:
        turn += 1 if now_s == before_s + round_s else 2  # no round is played without jobs
        before_s = now_s
        for job, gpus in rows:
            done_s = expected.known[job].finish_s
            end_s = done_s if done_s <= now_s + round_s else now_s + round_s
            price = prices.at(now_s)[model__u[gpus[0]]] if prices is not None and gpus else 0.0
            yield Held(turn, job, -1, gpus, now_s, end_s, end_s - now_s, price, (now_s, job) in expected.vain)


def held(run: Any) -> list[tuple[float, int, tuple[int, ...]]]:
    """Time, job and its GPUs, in the order in which they were given out."""
    found: list[tuple[float, int, tuple[int, ...]]] = []
    last: dict[int, tuple[int, ...]] = {}
    for task in run.tasks:
        if task["held"] >= 0:
            last[task["id"]] = tuple(run.held[task["held"] : task["held"] + task["num_gpu"]].tolist())
        found.append((float(task["t"]), int(task["id"]), last[task["id"]]))
    return found


def same_times(found: Any, expected: list[float]) -> bool:
    return all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(found, expected, strict=True))


def test_there_is_no_difference_without_jobs() -> None:
    assert same_times(np.zeros(0), [])
