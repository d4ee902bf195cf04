"""The metric-driven scheduler: every recorded decision, the counter of memory and the order of the queue."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest

from fastsim.policies.monitored.admission import OUTCOMES, Admission
from fastsim.policies.monitored.knots import DeclaredMemory, Knots, RequestQueue
from fastsim.policies.monitored.request_limiter import RequestLimiter
from fastsim.workload.generators import detectors
from fastsim.workload.generators.detectors import declared, gaps_s, slots
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
HALF_MILLI_S = 0.0005
"""The log's lines of memory are kept in whole milliseconds, rounded; all other lines in microseconds."""
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
    def looked_up_s(self) -> float:
        """The latest second at which all running pods were looked up."""
        return self.asked[0][0] if self.asked else self.logged_s + HALF_MILLI_S

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


class QueueStep(NamedTuple):
    """The scheduler takes a pod out of its queue, or finds nobody there (``job`` is None), or a pod returns.

    The lines of the log put this between two seconds.
    """

    from_s: float
    to_s: float
    job: int | None
    returns: bool = False

    def agrees(self, queue: RequestQueue) -> bool:
        """Whether a queue allows this step, which it then has made."""
        if self.returns:
            queue.push(self.job or 0, REQUEST_MIB)
            return True
        return not len(queue) if self.job is None else bool(len(queue)) and queue.pop() == self.job


def slowest_line_s(recorded_passes: list[RecordedPass]) -> float:
    """How long a pass took at most beyond its pause while nothing waited or ran: a line is no later than that."""
    quiet = [not (one.asked or one.running) for one in recorded_passes]
    steps_s = [one.logged_s - before.logged_s for before, one in pairwise(recorded_passes)]
    return max(step_s for step_s, *both in zip(steps_s, quiet, quiet[1:], strict=False) if all(both)) - PASSES.pass_s


def begin(before: RecordedPass | None, one: RecordedPass, late_s: float) -> tuple[float, float]:
    """Seconds between which a pass begins: after the pause, or once the API server has answered, before its lines."""
    if before is None:
        return -math.inf, one.looked_up_s
    if before.placed_s is not None:
        return before.end_s, one.looked_up_s
    return before.end_s - HALF_MILLI_S, one.looked_up_s if before.failed else before.end_s + HALF_MILLI_S + late_s


def queue_steps(recorded_passes: list[RecordedPass], late_s: float) -> Iterator[QueueStep]:
    """All steps of a log in their order.

    A pass takes its first pod as it begins, and then looks up the pods that run. It takes each further pod after the
    one before was refused. A pod that ends idleness is taken by an idle pass, and the next pass asks about it.
    """
    others = [None, *recorded_passes], recorded_passes, [*recorded_passes[1:], None]
    for before, one, after in zip(*others, strict=False):
        between = begin(before, one, late_s)
        if before and before.failed:
            yield QueueStep(*between, before.asked[-1][1], returns=True)
        if before and before.asked:
            yield QueueStep(*between, one.asked[0][1] if one.asked else None)
        if not one.asked:
            yield QueueStep(*between, after.asked[0][1] if after and after.asked else None)
            continue
        for asked_s, job, _ in one.asked[1:]:
            yield QueueStep(asked_s - late_s, asked_s, job)
        refused = [job for _, job, outcome in one.asked if outcome not in OUTCOMES[:3]]
        logged = one.logged_s - HALF_MILLI_S, one.logged_s + HALF_MILLI_S + late_s
        if len(refused) == len(one.asked):
            yield QueueStep(one.asked[-1][0], logged[1], None)
        for job in refused:
            yield QueueStep(*logged, job, returns=True)


@pytest.mark.parametrize("experiment", kubernetes.experiments("sched_decisions"))
def test_pods_are_asked_in_the_order_of_the_heap(experiment: int) -> None:
    """A pod can be taken as soon as it is in the queue, which nothing locks or copies; its line precedes that.

    Where the log leaves open whether a pod came before a step both is tried; one way has to agree with all steps.
    """
    events = kubernetes.frame("sched_events").filter(experiment=experiment, event="found").sort("t_s")
    came: list[tuple[float, int]] = events.select("t_s", "job").rows()
    recorded_passes = passes(experiment)
    late_s = slowest_line_s(recorded_passes)
    readings = [(0, RequestQueue(heap_ties=True))]
    for step in queue_steps(recorded_passes, late_s):
        readings = [reading for one in readings for reading in agreeing(*one, came, step, late_s)]
        assert readings, step
    assert any(count == len(came) and not len(queue) for count, queue in readings)


def agreeing(
    count: int, queue: RequestQueue, came: list[tuple[float, int]], step: QueueStep, late_s: float
) -> Iterator[tuple[int, RequestQueue]]:
    """The queue after a step that agrees with it, for each number of pods that may have come before; ``count`` had."""
    while True:
        more = count < len(came) and came[count][0] <= step.to_s
        if count == len(came) or came[count][0] + late_s >= step.from_s:
            branch = deepcopy(queue) if more else queue
            if step.agrees(branch):
                yield count, branch
        if not more:
            return
        queue.push(came[count][1], REQUEST_MIB)
        count += 1


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
    assert min(late_s) > -2 * HALF_MILLI_S, min(late_s)
    assert as_known.mean() > 0.9, (as_known.mean(), np.quantile(late_s, [0, 0.5, 0.95, 1]))


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
    needed = {
        "request_mib": (detectors.NEEDED_MIB, detectors.LARGEST_MIB),
        "request_gib": (detectors.NEEDED_GB, detectors.LARGEST_GB),
    }
    for column, (need, largest) in needed.items():
        told = dict(jobs.select("overprov_pct", column).unique().rows())
        assert told == {over: declared(need, over, largest) for over in told}


def test_as_many_jobs_share_a_device_as_there() -> None:
    runs = kubernetes.frame("runs").filter(mechanism="ALIBABA").join(
        kubernetes.frame("jobs").select("experiment", "request_gib").unique(), on="experiment")  # fmt: skip
    assert len(runs) and runs["nominal_concurrency"].to_list() == [slots(gib) for gib in runs["request_gib"]]
