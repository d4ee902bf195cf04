"""Metrics of the cluster in rounds are those that follow from what each job held, and when."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from fastsim.engine.tables import FRAG_COLUMNS, TOTALS
from fastsim.errors import PolicyError
from tests.differential.ext.rounds.test_ordered_loop import held_in_order
from tests.differential.ext.rounds.test_ordered_snapshot import played
from tests.differential.ext.rounds.test_rounds import Case as ShareCase
from tests.differential.ext.rounds.test_rounds import cases as share_cases
from tests.differential.ext.rounds.test_rounds import twin
from tests.differential.ext.rounds.test_snapshot import played as played_shares
from tests.strategies import scenarios_per_run
from tests.tenures import held_in_rounds
from tests.turns import Case, cases

SUMS = {
    "cpu_milli_capacity": ("cpu_cap",), "gpu_milli_alloc": ("gpu_alloc",), "gpu_milli_capacity": ("gpu_cap",),
    "frag": tuple(name for name in FRAG_COLUMNS if name != "q3_satisfied"), "power_mw": ("cpu_mw", "gpu_mw"),
}  # fmt: skip
"""Quantities over time that are sums over the nodes. A GPU in use has as much of each as its place in ``TOTALS``."""


@pytest.mark.parametrize("admit", [math.inf, 1.0])  # read after their arrival, too, while jobs before them must wait
@settings(max_examples=scenarios_per_run(300))
@given(cases(), st.integers(0, 3))
def test_quantities_over_time(admit: float, case: Case, cut: int) -> None:
    case = dataclasses.replace(case, plan=dataclasses.replace(case.plan, admit=admit))
    expected, run = case.twin(), played(case, cut)
    assume(len(expected.known) == len(case.jobs))  # otherwise some jobs may never have been read
    assert run.metrics is not None
    *_, found = run.metrics.state()
    held = list(held_in_order(expected))
    ends = [run.makespan_s if math.isnan(a.finish_s) else a.finish_s for a in expected.known]
    stays_s = sum(end_s - a.job.submit_s for end_s, a in zip(ends, expected.known, strict=True))
    gpu_s = sum(len(one.gpus) * (one.end_s - one.begin_s) for one in held)
    figures = {name: gpu_s * sum(map(TOTALS.index, parts)) for name, parts in SUMS.items()} | {
        "seconds": run.makespan_s - expected.known[0].job.submit_s, "cpu_milli_alloc": expected.cpu_milli_s,
        "pods_pending": stays_s - sum(one.end_s - one.begin_s for one in held),
    }  # fmt: skip
    assert found == pytest.approx(figures, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("dropped", [False, True])
@settings(max_examples=scenarios_per_run(300))
@given(share_cases())
def test_quantities_over_time_of_jobs_with_shares(dropped: bool, case: ShareCase) -> None:
    case = with_gangs_that_starve(case) if dropped else case
    try:
        expected = twin(case)
    except PolicyError:
        reject()
    run = played_shares(case)
    assert run.metrics is not None
    *_, found = run.metrics.state()
    ends = [outcome.completion_s for outcome in expected.outcomes]
    held = list(held_in_rounds(expected.history, ends, expected.now_s))
    left_s = {one.job: one.end_s for one in held if run.jobs["ended"][one.job]}  # the last time counts
    stays_s = sum(
        (left_s.get(row, expected.now_s) if end_s is None else end_s) - case.jobs[row].submit_s
        for row, end_s in enumerate(ends)
    )
    together_s: dict[tuple[int, tuple[int, ...]], float] = {}
    for one in held:
        key = one.round, one.gpus
        together_s[key] = max(together_s.get(key, 0.0), one.end_s - one.begin_s)
    gpu_s = sum(len(gpus) * span_s for (_, gpus), span_s in together_s.items())
    figures = {name: gpu_s * sum(map(TOTALS.index, parts)) for name, parts in SUMS.items()} | {
        "seconds": expected.now_s - case.jobs[0].submit_s, "cpu_milli_alloc": 0.0,
        "pods_pending": stays_s - sum(one.end_s - one.begin_s for one in held),
    }  # fmt: skip
    assert found == pytest.approx(figures, rel=1e-9, abs=1e-6)


def with_gangs_that_starve(case: ShareCase) -> ShareCase:
    """The case with jobs of so few steps that a GPU of each gang has none: it is dropped after some rounds."""
    jobs = [job._replace(total_steps=max(job.num_gpu - 1.0, 1.0)) for job in case.jobs]
    options = dataclasses.replace(case.options, compat=case.options.compat | {"gang_last_chunk_failure"})
    return dataclasses.replace(case, jobs=jobs, options=options)
