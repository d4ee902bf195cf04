"""The metric-driven scheduler: every recorded decision, the counter of memory and the order of the queue."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest

from fastsim.policies.monitored.admission import OUTCOMES, Admission
from fastsim.policies.monitored.knots import DeclaredMemory, Knots, RequestQueue
from fastsim.policies.monitored.request_limiter import RequestLimiter
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
NEAR_S = 0.005
"""Lines of the log are written some milliseconds after what they say."""
PASSES = Knots(heap_ties=True, one_release=True, api_pace=True, zero_draw=True, idle_pass=True)
"""The scheduler as it was."""


@dataclass(frozen=True)
class RecordedPass:
    """A pass as the log has it: its begin, the pods it asked about with their second, and the line that ends it.

    Without pods it was idle. ``running`` are the pods on the GPU after those that ended were looked up.
    """

    begin_s: float
    asked: list[tuple[float, int, str]]
    logged_s: float
    running: list[int]
    available_mib: int
    placed_s: float | None = None

    @property
    def failed(self) -> bool:
        """Whether a pod was admitted, and its binding failed."""
        return bool(self.asked) and self.asked[-1][2] in OUTCOMES[:3] and self.placed_s is None

    @property
    def end_s(self) -> float:
        """When the next one begins: after half a second, or five seconds after a placement."""
        return self.logged_s + PASSES.pass_s if self.placed_s is None else self.placed_s + PASSES.placed_s


def passes(experiment: int) -> list[RecordedPass]:
    """All passes of an experiment's log; the first begins before the log does."""
    states = kubernetes.frame("sched_state").filter(experiment=experiment).sort("t_s")
    asked = kubernetes.frame("sched_decisions").filter(experiment=experiment).sort("t_s")
    questions = asked.select("t_s", "job", "outcome").rows()
    events = kubernetes.frame("sched_events").filter(experiment=experiment, event="placed").sort("t_s")
    placed, found = events["t_s"].to_list(), list[RecordedPass]()
    lines = states.select("t_s", "running", "avail_mib", pl.col("t_s").shift(-1).fill_null(math.inf).alias("next_s"))
    for logged_s, running, available, next_s in lines.rows():
        begin_s, last_s = (found[-1].end_s, found[-1].logged_s) if found else (-math.inf, -math.inf)
        mine = [one for one in questions if last_s + 1e-3 < one[0] <= logged_s + 1e-3]
        bound_s = next((at for at in placed if logged_s < at < next_s), None)
        found.append(RecordedPass(begin_s, mine, logged_s, running, available, bound_s))
    assert sum(len(one.asked) for one in found) == len(questions)
    assert sum(one.placed_s is not None for one in found) == len(placed)
    return found


@pytest.mark.parametrize("experiment", kubernetes.experiments("sched_decisions"))
def test_pods_are_asked_in_the_order_of_the_heap(experiment: int) -> None:
    events = kubernetes.frame("sched_events").filter(experiment=experiment, event="found").sort("t_s")
    came: list[tuple[float, int]] = events.select("t_s", "job").rows()
    recorded_passes, queue = passes(experiment), RequestQueue(heap_ties=True)
    for before, one in pairwise(recorded_passes):
        if not one.asked:
            continue
        first_s, first, _ = one.asked[0]
        # The first pod leaves the queue when the pass begins, before the pods that run are looked up one by one; one
        # that comes while none waits is taken along by the pass before, which is idle.
        arrive(queue, came, (before if not before.asked else one).begin_s + NEAR_S)
        assert queue.pop() == first, first_s
        for asked_s, job, _ in one.asked[1:]:
            arrive(queue, came, asked_s)
            assert queue.pop() == job, asked_s
        arrive(queue, came, one.logged_s)
        for _, job, outcome in one.asked:
            if outcome not in OUTCOMES[:3]:
                queue.push(job, REQUEST_MIB)
        if one.failed:  # the pod returns after those that came during the pass
            came.append((one.end_s, one.asked[-1][1]))
            came.sort()
    assert not came and not len(queue)


def arrive(queue: RequestQueue, came: list[tuple[float, int]], time: float) -> None:
    """Pods that came up to a time enter the queue."""
    while came and came[0][0] <= time:
        queue.push(came.pop(0)[1], REQUEST_MIB)


@pytest.mark.parametrize("experiment", kubernetes.experiments("sched_decisions"))
def test_a_pod_that_comes_while_none_waits_is_taken_along_for_a_pass(experiment: int) -> None:
    events = kubernetes.frame("sched_events").filter(experiment=experiment, event="found")
    arrival_s = dict(events.select("job", "t_s").rows())
    recorded_passes, seen = passes(experiment), 0
    for earlier, idle, one in zip(recorded_passes, recorded_passes[1:], recorded_passes[2:], strict=False):
        if one.asked and not idle.asked:
            seen += 1
            begins = (idle.begin_s if earlier.asked else earlier.begin_s, idle.begin_s)
            came_s = arrival_s[one.asked[0][1]]
            assert earlier.asked or begins[0] - NEAR_S < came_s
            assert came_s < begins[1] + NEAR_S < one.begin_s < one.asked[0][0]
    assert seen


@pytest.mark.parametrize("experiment", kubernetes.experiments())
def test_declared_memory_is_charged_and_given_back_one_at_a_time(experiment: int) -> None:
    jobs = kubernetes.frame("jobs").filter(mechanism="CUSTSCHED", experiment=experiment)
    request = jobs["request_mib"].unique().item()
    declared, released = DeclaredMemory(), 0
    for one in passes(experiment):
        ended = [pod for pod in declared.running if pod not in one.running]
        assert len(ended) <= 1
        for pod in ended:
            declared.release(pod)
            released += 1
        for pod in one.running:
            if pod not in declared.running:
                declared.place(pod, request)
        assert (declared.running, declared.available_mib) == (one.running, one.available_mib)
    assert released == len(jobs) and declared.running == []


@pytest.mark.parametrize("experiment", kubernetes.experiments())
def test_a_pass_takes_as_long_as_its_requests(experiment: int) -> None:
    late_s, steady_s = list[float](), list[float]()
    limiter = RequestLimiter(PASSES.requests_per_s, PASSES.burst)
    for before, one in pairwise(passes(experiment)):
        if before.placed_s is not None:  # a binding and an event
            limiter.sent_s(limiter.sent_s(before.placed_s))
        elif before.failed:
            limiter.sent_s(one.begin_s)
        started = [pod for pod in one.running if pod not in before.running]
        now_s = one.begin_s
        for pod in (*before.running, *started):
            now_s = limiter.sent_s(now_s)
            if pod not in one.running:  # it has ended; the rest are looked up in the next pass
                break
        looked_up_s = one.asked[0][0] if one.asked else one.logged_s
        late_s.append(looked_up_s - now_s)
        steady_s.append(abs(looked_up_s - one.begin_s - (len(one.running) / PASSES.requests_per_s - PASSES.pass_s)))
    # A request takes some milliseconds itself. Once a burst was not there after the rest of a placement: from then on
    # to the next rest each request waited for the one before.
    as_known = np.minimum(late_s, steady_s) < 0.06
    assert min(late_s) > -NEAR_S and as_known.mean() > 0.9, (as_known.mean(), np.quantile(late_s, [0, 0.5, 0.95, 1]))


@pytest.mark.parametrize("experiment", kubernetes.experiments("sched_events"))
def test_one_binding_fails_as_there(experiment: int) -> None:
    events = kubernetes.frame("sched_events").filter(experiment=experiment).sort("t_s")
    bound = [event == "placed" for event in events["event"].to_list() if event != "found"]
    assert bound == [PASSES.binds(attempt) for attempt in range(1, len(bound) + 1)]


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
