"""No policy that shares time out lets a job wait by default while GPUs it could have are free."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.options import Job, RoundOptions
from fastsim.engine.rounds.outcome import RoundOutcome
from fastsim.engine.shares.plan import RoundPolicy, SharePlan
from fastsim.engine.shares.run import run_rounds
from fastsim.policies import registry
from fastsim.policies.shares.max_sum_throughput import MaxSumThroughput
from tests.views import setting

ROOM = setting([5, 4], [[1.0, 2.0], [0.5, 1.5]], sizes=(1, 2))


def rules() -> list[RoundPolicy]:
    """Every policy of shares, in every mode, with and without deadlines."""
    made: list[Any] = []
    for cls in registry.classes():
        if registry.engine_of(cls) == "shares":
            known = {item.name: item for item in fields(cls)}
            modes = known["mode"].metadata["choices"] if "mode" in known else ("",)
            for given in ({"mode": mode} if mode else {} for mode in modes):
                made += [cls(**given, **more) for more in ({}, {"deadlines": True}) if known.keys() >= more.keys()]
    return [rule for rule in made if isinstance(rule.begin(ROOM), SharePlan)]


RULES = rules()


def played(rule: RoundPolicy, jobs: list[Job], **options: Any) -> RoundOutcome:
    plan = rule.begin(ROOM)
    taken = [job for job in jobs if job.num_gpu <= (plan.max_num_gpu or job.num_gpu)]
    return run_rounds(ROOM, plan, [JobBatch.of(taken)], RoundOptions(**options), record_tasks=True)


def test_every_family_is_there() -> None:
    assert len({type(rule) for rule in RULES}) == 11
    assert {str(rule) for rule in RULES} >= {"fifo", "fifo(mode=perf)", "max_sum_throughput(deadlines=True)"}


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_short_jobs_on_an_empty_cluster_start_in_the_next_round(rule: RoundPolicy) -> None:
    jobs = [Job(at, 0, 1, 36.0) for at in (5.0, 6.0, 300.0, 301.0, 302.0, 900.0, 4000.0)]
    run = played(rule, jobs)
    starts = np.unique(run.tasks["t"])
    for job in run.jobs:
        working = ((run.tasks["t"] <= job["submit_s"]) & (run.tasks["finish_s"] > job["submit_s"])).any()
        assert job["first_s"] == (starts[starts >= job["submit_s"]][0] if working else job["submit_s"])


@pytest.mark.spread(10)
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_no_job_waits_while_gpus_it_could_have_are_free(rule: RoundPolicy) -> None:
    """Nor does the first in line, where others may not pass it."""
    draw = np.random.default_rng(4)
    submits, kinds, steps = np.sort(draw.uniform(0, 6000, 80)), draw.integers(0, 2, 80), draw.exponential(3000, 80)
    drawn = zip(submits.tolist(), kinds.tolist(), steps.tolist(), strict=True)
    jobs = [Job(at, kind, kind + 1, work) for at, kind, work in drawn]
    run, strict = played(rule, jobs), rule.begin(ROOM).strict
    waited = 0
    for turn in np.unique(run.tasks["round"]):
        tasks = run.tasks[run.tasks["round"] == turn]
        free = np.array(run.gpus__g) - np.bincount(tasks["model"], tasks["num_gpu"], 2).astype(int)
        here = (run.jobs["submit_s"] <= tasks["t"][0]) & ~(run.jobs["finish_s"] <= tasks["t"][0])
        waiting = run.jobs[here & ~np.isin(run.jobs["id"], [tasks["id"], tasks["mate_id"]])]
        waited += len(waiting)
        for job in waiting[:1] if strict else waiting:
            assert not (free >= job["num_gpu"]).any(), f"job {job['id']} waits in round {turn}, free: {free}"
    assert waited


def test_a_deadline_that_can_be_kept_is_kept() -> None:
    rule = MaxSumThroughput(deadlines=True)
    jobs = [*(Job(0.0, 0, 1, 9000.0) for _ in range(9)), Job(400.0, 1, 2, 300.0, deadline_s=1900.0)]
    found = [played(rule, jobs, **options).jobs["finish_s"][-1] for options in ({}, {"realloc_s": 1920.0})]
    assert found[0] <= 1900.0 < found[1]
