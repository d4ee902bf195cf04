"""What holds in every run in ordered rounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import given, settings

from fastsim.engine.driving.drive import Stop
from fastsim.engine.orders.run import ordered_loop_of
from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.outcome import GANG
from tests.strategies import scenarios_per_run
from tests.turns import Case, cases

SLACK = 1e-9
"""Relative: shares of gangs are quotients, and their sums are rounded."""


def rounds(case: Case) -> Iterator[Any]:
    """The loop after each round; nobody tells it anything."""
    loop = ordered_loop_of(case.needs, case.plan, case.options, {"record_tasks": True})
    loop.feed(*JobBatch.of(case.jobs), True, None, np.concatenate(case.values()))
    while loop.advance(1) == Stop.PAUSE:
        yield loop
        loop.drained()
        loop.log.drained()
    yield loop


@settings(max_examples=scenarios_per_run(100))
@given(cases("greedy") | cases("tune") | cases("fair"))
def test_no_server_gives_more_than_it_has(case: Case) -> None:
    for loop in rounds(case):
        loop.verify()
        used = np.zeros(case.needs.cap__sr.shape)
        gpus = [0] * len(case.needs.num_gpu__s)
        for _, server, bits, share in loop.allocation.taken():
            assert bits & gpus[server] == 0 and bits < 1 << case.needs.num_gpu__s[server]
            gpus[server] |= bits
            used[server] += share
        assert (used <= case.needs.cap__sr * (1 + SLACK)).all()


@settings(max_examples=scenarios_per_run(300))
@given(cases("tune"))
def test_tuning_gives_nobody_less_than_his_fair_share(case: Case) -> None:
    fair = case.needs.cap__sr[0] / case.needs.num_gpu__s[0]
    for loop in rounds(_endless(case)):
        kinds = np.frombuffer(loop.table.rows(), GANG)["kind"]
        given_to: dict[int, Any] = {}
        for row, _, bits, share in loop.allocation.taken():
            has, count = given_to.get(row, (0.0, 0))
            given_to[row] = (has + np.array(share), count + bits.bit_count())
        for row, (has, count) in given_to.items():
            promised = np.minimum(fair * count, case.needs.need__kr[kinds[row]])
            assert (has >= promised * (1 - SLACK)).all()


@settings(max_examples=scenarios_per_run(300))
@given(cases("tune"))
def test_who_gives_back_has_worked_at_one_speed_only(case: Case) -> None:
    """A job lowered after it got its seat does a round's work at its fair share, and none of the faster work before."""
    case = _endless(case)
    case = dataclasses.replace(case, options=dataclasses.replace(case.options, restart_s=0.0))
    before: dict[int, float] = {}
    for loop in rounds(case):
        for job in np.frombuffer(loop.table.rows(), GANG):
            step_s, speedup = case.needs.step_s__kg[job["kind"], 0], case.needs.speedup__k[job["kind"]]
            speeds = [case.options.round_s / step_s, case.options.round_s / (step_s / speedup)]
            allowed = [before.get(job["id"], 0.0) + steps for steps in (0.0, *speeds)]
            if case.options.quirk("whole_steps"):
                allowed = [before.get(job["id"], 0.0) + np.floor(steps) for steps in (0.0, *speeds)]
            assert job["run"] in allowed
            before[job["id"]] = job["run"]


@settings(max_examples=scenarios_per_run(100))
@given(cases("fair"))
def test_ties_stay_as_they_were(case: Case) -> None:
    case = dataclasses.replace(case, plan=dataclasses.replace(case.plan, order=("-gpus",), starving_s=1e12))
    for loop in rounds(case):
        ids = np.frombuffer(loop.table.rows(), GANG)[["id", "num_gpu"]]
        listed = [(-int(ids["num_gpu"][row]), int(ids["id"][row])) for row in loop.ordered_jobs.ordered()]
        known = [entry for entry in listed if entry[1] < loop.table.added]
        assert known == sorted(known)


def _endless(case: Case) -> Case:
    """The same with jobs that outlast 40 rounds, so that nobody leaves the table."""
    options = dataclasses.replace(case.options, until_s=min(case.options.until_s, 12_000.0), window=None)
    return dataclasses.replace(case, options=options, jobs=[job._replace(total_steps=1e9) for job in case.jobs])
