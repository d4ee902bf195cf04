"""What holds in every run in rounds, whatever the policy says."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict

import numpy as np
from hypothesis import given, settings

from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.outcome import RoundOutcome
from fastsim.engine.shares.run import run_rounds
from fastsim.errors import PolicyError
from tests.differential.ext.rounds.test_rounds import Case, cases
from tests.reference.rounds.share_rounds import Rounds
from tests.strategies import scenarios_per_run


def played(case: Case) -> RoundOutcome | None:
    try:
        return run_rounds(case.setting, case.again(), [JobBatch.of(case.jobs)], case.options, record_tasks=True)
    except PolicyError:
        return None  # nobody may run, and the run says so


@settings(max_examples=scenarios_per_run(150))
@given(cases())
def test_no_model_is_over_allocated_and_no_job_runs_twice(case: Case) -> None:
    run = played(case)
    if run is None:
        return
    held: dict[tuple[int, int], int] = defaultdict(int)
    seen: Counter[tuple[int, int]] = Counter()
    for task in run.tasks:
        held[task["round"], task["model"]] += task["num_gpu"]
        seen[task["round"], task["id"]] += 1
        if task["mate_id"] >= 0:
            seen[task["round"], task["mate_id"]] += 1
    assert all(used <= run.gpus__g[model] for (_, model), used in held.items())
    assert max(seen.values(), default=1) == 1


@settings(max_examples=scenarios_per_run(150))
@given(cases())
def test_jobs_get_what_they_asked_for_and_no_more(case: Case) -> None:
    run = played(case)
    if run is None:
        return
    done = ~np.isnan(run.jobs["finish_s"])
    assert (run.jobs["run"][done] >= run.jobs["total"][done]).all()
    assert (run.jobs["run"] <= run.jobs["total"] * (1 + 1e-12)).all()
    best = run.setting.oracle.alone__kg[run.jobs["kind"]].max(axis=1)
    spent = run.jobs["finish_s"] - run.jobs["first_s"]
    alone = ~np.isin(run.jobs["id"], run.tasks["mate_id"]) & ~np.isin(
        run.jobs["id"], run.tasks["id"][run.tasks["mate_id"] >= 0]
    )
    sure = done & alone
    assert (spent[sure] >= run.jobs["total"][sure] / best[sure] * (1 - 1e-9)).all()


@settings(max_examples=scenarios_per_run(150))
@given(cases())
def test_no_gpu_is_left_to_nobody_while_a_job_that_fits_waits(case: Case) -> None:
    """Promised unless only positive priorities run or an unknown job blocks GPUs."""
    case = dataclasses.replace(
        case, plan=dataclasses.replace(case.plan, strict=False),
        options=dataclasses.replace(case.options, compat=frozenset(), window=None, until_s=float("inf")),
    )  # fmt: skip
    run = played(case)
    if run is None:
        return
    rates = run.setting.oracle.alone__kg
    for turn in np.unique(run.tasks["round"]):
        tasks = run.tasks[run.tasks["round"] == turn]
        now = tasks["t"][0]
        running = {*tasks["id"].tolist(), *tasks["mate_id"].tolist()}
        free = np.array(run.gpus__g) - np.bincount(tasks["model"], tasks["num_gpu"], len(run.gpus__g)).astype(int)
        for job in run.jobs:
            active = job["submit_s"] <= now and not (job["finish_s"] <= now)
            if active and not job["ended"] * np.isnan(job["finish_s"]) and int(job["id"]) not in running:
                fits = (rates[job["kind"]] > 0) & (free >= job["num_gpu"])
                assert not fits.any(), f"job {job['id']} waits in round {turn} although {free} GPUs are free"


class Watched(Rounds):
    """Looks at deficits whenever shares are settled."""

    def _reset(self) -> None:
        half = self.options.round_s / 2
        before = {c: (list(self.deficit[c]), list(self.received[c])) for c in self.received}
        super()._reset()
        for candidate, (deficit, received) in before.items():
            for g, (old, got) in enumerate(zip(deficit, received, strict=True)):
                if got <= half:
                    assert self.deficit[candidate][g] >= old


@settings(max_examples=scenarios_per_run(100))
@given(cases())
def test_who_gets_nothing_is_owed_no_less(case: Case) -> None:
    rounds = Watched(case.setting, case.again(), case.options, case.jobs, case.servers)
    try:
        rounds.run()
    except PolicyError as error:
        assert "rounds" in str(error)
