"""The metric-driven scheduler: every recorded decision, the counter of memory and the order of the queue."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import polars as pl
import pytest

from fastsim.policies.monitored.admission import OUTCOMES, Admission
from fastsim.policies.monitored.knots import DeclaredMemory, RequestQueue, SchedulerLatency
from fastsim.workload.generators.detectors import LARGEST_GB, LARGEST_MIB, declared, gaps_s, slots
from tests.golden.k8s_gpu import kubernetes

pytestmark = pytest.mark.skipif(
    not kubernetes.KUBERNETES.exists(), reason="reference data not found (set FASTSIM_SHARED)"
)


def decisions(experiment: int) -> list[dict[str, Any]]:
    """The recorded questions of one experiment, with the pod's request and what was left of declared memory."""
    jobs = kubernetes.frame("jobs").filter(mechanism="CUSTSCHED", experiment=experiment)
    request = jobs["request_mib"].unique().item()
    # The counter is logged after the questions of a pass, in whole milliseconds.
    milli = (1000 * pl.col("t_s") + 1e-3).floor().cast(pl.Int64).alias("milli")
    state = kubernetes.frame("sched_state").filter(experiment=experiment).select(milli, "avail_mib").sort("milli")
    recorded_decisions = (
        kubernetes.frame("sched_decisions").filter(experiment=experiment).with_columns(milli).sort("milli")
    )
    joined = recorded_decisions.join_asof(state, on="milli", strategy="forward")
    return joined.with_columns(request=pl.lit(request)).to_dicts()


@pytest.mark.parametrize("experiment", kubernetes.experiments("sched_decisions"))
def test_every_decision_is_made_again(experiment: int) -> None:
    admission, rows = Admission(), decisions(experiment)
    assert rows and {row["outcome"] for row in rows} >= {"direct", "correlation", "reject"}
    for row in rows:
        # Used memory is only told where stage 1 looked at it; there were as many readings of it as of free memory.
        free, used = row["free_values"] or (), row["used_sorted"] or row["free_values"] or ()
        answer = admission(row["request"], row["avail_mib"], free, used)
        if row["free_values"] is not None:
            assert agrees(answer, row), row
        elif row["cov"] is None:
            assert answer.outcome == row["outcome"] and row["outcome"] in ("direct", "not_enough_values"), row
        else:
            # The log does not tell free memory where stage 1 admits; what it lends follows from used memory alone.
            assert not answer and lent(admission, row), row


def agrees(answer: Any, row: dict[str, Any]) -> bool:
    """Whether every number equals all printed decimals."""
    line = answer.line or (None, None)
    found = (
        answer.outcome, f"{answer.variation:.6f}", answer.index, answer.percentile_mib, answer.harvested_mib,
        f"{answer.autocorrelation:.6f}".replace("nan", "NaN"), answer.forecast_mib,
        *(None if value is None else f"{value:.6f}" for value in line),
    )  # fmt: skip
    printed = (
        row["outcome"], f"{row['cov']:.6f}", row["pct_index"], row["p80"], row["harvested_mib"], row["autocorr10"],
        row["pred_mib"], row["phi0"], row["phi1"],
    )  # fmt: skip
    return found == printed


def lent(admission: Admission, row: dict[str, Any]) -> bool:
    """Whether the percentile of used memory and what it leaves over are the recorded ones, and are enough."""
    # Free memory that is constant varies least, so stage 1 answers.
    answer = admission(row["request"], row["avail_mib"], [1.0] * len(row["used_sorted"]), row["used_sorted"])
    found = (answer.outcome, answer.index, answer.percentile_mib, answer.harvested_mib)
    return row["cov"] < admission.variation and found == (
        row["outcome"], row["pct_index"], row["p80"], row["harvested_mib"]
    )  # fmt: skip


REQUEST_MIB = 1
"""All pods of an experiment declare the same."""
LOGGED_S = 0.005
"""Between the last question of a pass and the line that ends it; the half second begins after that line."""
BOUND_S = 1.0
"""Within which a pod that was admitted is bound, or is not at all: it takes half a second."""
NEXT_S = 0.2
"""Questions of one pass are a few milliseconds apart, those of two passes half a second or more."""


@pytest.mark.parametrize("experiment", kubernetes.experiments("sched_decisions"))
def test_pods_are_asked_in_the_order_of_the_heap(experiment: int) -> None:
    recorded_decisions = kubernetes.frame("sched_decisions").filter(experiment=experiment).sort("t_s")
    events = kubernetes.frame("sched_events").filter(experiment=experiment).sort("t_s").select("t_s", "job", "event")
    came = [(time, job) for time, job, event in events.rows() if event == "found"]
    placed = [time for time, _, event in events.rows() if event == "placed"]
    rows = recorded_decisions.select("t_s", "job", "outcome").rows()
    queue, begin = RequestQueue(heap_ties=True), -math.inf
    skipped: list[int] = []
    for (time, job, outcome), (following, _, _) in zip(rows, [*rows[1:], (math.inf, 0, "")], strict=True):
        # The first of a pass leaves the queue when the pass begins, before the pods that run are looked up one by one.
        arrive(queue, came, begin if len(queue) else time)
        assert queue.pop() == job, (time, skipped)
        admitted = outcome in OUTCOMES[:3]
        skipped += [] if admitted else [job]
        if following < time + NEXT_S:
            begin = following
            continue
        arrive(queue, came, time)
        for pod in skipped:
            queue.push(pod, REQUEST_MIB)
        bound_s = next((moment for moment in placed if time < moment < time + BOUND_S), None)
        skipped, begin = [], time + LOGGED_S + 0.5 if bound_s is None else bound_s + 5
        if admitted and bound_s is None:
            # Its binding failed. It returns at the end of its pass, after the pods that were tried before it and
            # those that came meanwhile; the log has that in whole seconds, which are often earlier than the question.
            came.append((begin, job))
            came.sort()
    assert rows and not came


def arrive(queue: RequestQueue, came: list[tuple[float, int]], time: float) -> None:
    """Pods that came up to a time enter the queue."""
    while came and came[0][0] <= time:
        queue.push(came.pop(0)[1], REQUEST_MIB)


@pytest.mark.parametrize("experiment", kubernetes.experiments())
def test_declared_memory_is_charged_and_given_back_one_at_a_time(experiment: int) -> None:
    jobs = kubernetes.frame("jobs").filter(mechanism="CUSTSCHED", experiment=experiment)
    request = jobs["request_mib"].unique().item()
    states = kubernetes.frame("sched_state").filter(experiment=experiment).sort("t_s")
    declared, released = DeclaredMemory(one_release=True), 0
    for available, running in states.select("avail_mib", "running").iter_rows():
        released += len(declared.release(partial(missing, running)))
        for pod in running:
            if pod not in declared.running:
                declared.place(pod, request)
        assert (declared.running, declared.available_mib) == (running, available)
    assert released == len(jobs) and declared.running == []


def missing(running: list[int], pod: object) -> bool:
    """Whether a pod does not run any more."""
    return pod not in running


@pytest.mark.parametrize("experiment", kubernetes.experiments())
def test_a_pass_takes_as_long_as_there(experiment: int) -> None:
    states = kubernetes.frame("sched_state").filter(experiment=experiment).sort("t_s")
    timed = states.select(running=pl.col("running").list.len(), length_s=pl.col("t_s").diff().shift(-1))
    latency = SchedulerLatency(api_pace=True)
    for running, length_s, count in timed.group_by("running").agg(
        pl.median("length_s"), pl.len().alias("count")).rows():  # fmt: skip
        # The questions of a pass and its log lines take some milliseconds each.
        assert count < 20 or abs(length_s - latency.pass_length_s(running)) < 0.025, (running, length_s)


@pytest.mark.parametrize("experiment", kubernetes.experiments("sched_events"))
def test_one_binding_fails_as_there(experiment: int) -> None:
    events = kubernetes.frame("sched_events").filter(experiment=experiment).sort("t_s")
    bound = [event == "placed" for event in events["event"].to_list() if event != "found"]
    latency = SchedulerLatency(zero_draw=True)
    assert bound == [latency.binds(attempt) for attempt in range(1, len(bound) + 1)]


def test_arrivals_and_declared_memory_are_those_of_the_experiments() -> None:
    jobs = kubernetes.frame("jobs")
    for _, run in jobs.group_by("experiment", "mechanism"):
        offsets = run.sort("arrival_index")["arrival_offset_nominal_s"].to_list()
        assert offsets == [sum(gaps_s(len(run))[:index]) for index in range(len(run))]
    # Without more than it needs a job declares what it needs.
    for column, largest in (("request_mib", LARGEST_MIB), ("request_gib", LARGEST_GB)):
        told = dict(jobs.select("overprov_pct", column).unique().rows())
        assert told == {over: declared(told[0], over, largest) for over in told}


def test_as_many_jobs_share_a_device_as_there() -> None:
    runs = kubernetes.frame("runs").filter(mechanism="ALIBABA").join(
        kubernetes.frame("jobs").select("experiment", "request_gib").unique(), on="experiment")  # fmt: skip
    assert len(runs) and runs["nominal_concurrency"].to_list() == [slots(gib) for gib in runs["request_gib"]]
