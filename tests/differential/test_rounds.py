"""The compiled rounds and their plain twin do the same: every task of every round, every job, every lease."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastsim import reference_rounds
from fastsim.errors import PolicyError
from fastsim.job_batches import JobBatch
from fastsim.oracle import Oracle
from fastsim.round_options import QUIRKS, Job, RoundOptions
from fastsim.round_plan import ALONE, VISITS, Allocation, RoundPlan, RoundView, Setting
from fastsim.round_run import run_rounds

MODELS = ("k80", "p100", "v100")


@dataclasses.dataclass
class Swing:
    """Prices that change every 700 s."""

    width: int

    def at(self, now_s: float) -> npt.NDArray[np.float64]:
        """Price of one GPU of each model, $/h."""
        return np.arange(1.0, self.width + 1) * (1 + now_s // 700 % 3)

    def next_change_s(self, now_s: float) -> float:
        """The next multiple of 700 s."""
        return (now_s // 700 + 1) * 700


@dataclasses.dataclass
class Whim:
    """A policy without sense: some shares are 0, some jobs get none, some pairs get one."""

    seed: int
    pairs: bool
    calls: int = 0

    def allocate(self, view: RoundView) -> Allocation | None:
        """Shares at random, rarely none."""
        self.calls += 1
        draw = np.random.default_rng((self.seed, self.calls))
        n, width = len(view), len(view.price__g)
        if draw.random() < 0.05:
            return None
        first, second = list(view.job_id), [ALONE] * n
        if self.pairs:
            couples = [(a, b) for a in range(n) for b in range(a + 1, n) if view.num_gpu[a] == view.num_gpu[b]]
            first += [view.job_id[a] for a, _ in couples]
            second += [view.job_id[b] for _, b in couples]
        share = draw.random((len(first), width)) * (draw.random((len(first), width)) < 0.4)
        return Allocation(np.array(first, np.int64), np.array(second, np.int64), share)

    def kept(self) -> dict[str, Any]:
        """How often it was asked."""
        return {"calls": self.calls}

    def restored(self, kept: Mapping[str, Any]) -> None:
        """Go on counting."""
        self.calls = kept["calls"]


@dataclasses.dataclass(frozen=True)
class Case:
    """Everything that decides a run."""

    setting: Setting
    jobs: list[Job]
    options: RoundOptions
    plan: RoundPlan
    servers: tuple[int, ...]

    def again(self) -> RoundPlan:
        """The same plan with an allocator that remembers nothing."""
        fresh = dataclasses.replace(self.plan.allocator)  # type: ignore[type-var]
        return dataclasses.replace(self.plan, allocator=fresh)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Small crowded clusters, slow and fast kinds, zero rates, every option."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    width = draw(st.integers(1, 3))
    kinds = tuple((f"w{i}", int(size)) for i, size in enumerate(rng.choice([1, 1, 2, 4], draw(st.integers(1, 5)))))
    alone = rng.uniform(0.005, 3, (len(kinds), width)) * (rng.random((len(kinds), width)) < 0.9)
    alone[:, rng.integers(width)] += 0.01
    shared = alone[:, None, :] * rng.uniform(0, 1, (len(kinds), len(kinds), width))
    shared *= rng.random(shared.shape) < 0.7
    gpus = rng.integers(4, 9, width)
    oracle = Oracle(kinds, MODELS[:width], alone, shared)
    setting = Setting(MODELS[:width], gpus, oracle, alone[:, 0], draw(st.integers(0, 99)))
    submits = np.sort(
        rng.integers(0, 40, draw(st.integers(1, 14))) * draw(st.sampled_from([0.0, 100.0, 361.5, 3000.0]))
    )
    jobs = [
        Job(float(at), int(kind), kinds[kind][1], float(np.round(rng.exponential(900) + 1, int(rng.integers(0, 4)))))
        for at, kind in zip(submits, rng.integers(0, len(kinds), len(submits)), strict=True)
    ]
    return Case(setting, jobs, draw(options(len(jobs), width)), draw(plans()), (1,) * width)


@st.composite
def options(draw: st.DrawFn, jobs: int, width: int) -> RoundOptions:
    """Any options; the quirks one by one."""
    first = draw(st.integers(0, jobs - 1))
    window = draw(st.none() | st.just((first, jobs)))
    prices = Swing(width) if draw(st.booleans()) else None
    return RoundOptions(
        round_s=draw(st.sampled_from([360.0, 100.0])),
        realloc_s=draw(st.sampled_from([1920.0, 0.0, 500.0])),
        restart_s=draw(st.sampled_from([0.0, 0.0, 20.0])),
        until_s=draw(st.sampled_from([float("inf"), 5000.0])),
        window=window,
        global_queue=draw(st.booleans()),
        prices=prices,
        compat=frozenset(name for name in QUIRKS if draw(st.booleans())),
        endless=draw(st.booleans()),
    )


@st.composite
def plans(draw: st.DrawFn) -> RoundPlan:
    """Any way of turning shares into rounds."""
    pairs = draw(st.booleans())
    whim = Whim(draw(st.integers(0, 2**20)), pairs)
    return RoundPlan(whim, pairs, draw(st.sampled_from(VISITS)), draw(st.booleans()))


def twin(case: Case) -> reference_rounds.Rounds:
    rounds = reference_rounds.Rounds(case.setting, case.again(), case.options, case.jobs, case.servers)
    rounds.run()
    return rounds


@settings(max_examples=300)
@given(cases())
def test_compiled_and_plain_rounds_are_equal(case: Case) -> None:
    try:
        expected = twin(case)
    except PolicyError:
        with pytest.raises(PolicyError, match="nothing runs"):
            run_rounds(case.setting, case.again(), [JobBatch.of(case.jobs)], case.options)
        return
    batches = [JobBatch.of(case.jobs[:3]), JobBatch.of(case.jobs[3:])]
    run = run_rounds(case.setting, case.again(), batches, case.options, record_tasks=True)
    figures = (run.rounds, run.calls, run.makespan_s, run.max_active, run.extensions, run.opportunities)
    assert figures == (expected.rounds, expected.calls, expected.now_s, expected.max_active, expected.extensions,
                       expected.opportunities)  # fmt: skip
    assert run.busy_s.tolist() == expected.busy_s
    assert [tuple(job) for job in run.jobs[["rounds", "run", "cost"]].tolist()] == [
        (o.rounds, o.steps_run, o.cost) for o in expected.outcomes
    ]
    assert same_times(run.jobs["finish_s"], [o.completion_s for o in expected.outcomes])
    assert same_times(run.jobs["first_s"], [o.first_s for o in expected.outcomes])
    assert [task[:-1] for task in run.tasks.tolist()] == [
        (turn, task.candidate[0], task.candidate[1] if len(task.candidate) == 2 else ALONE, now, task.finish_s,
         task.priority, task.deficit, task.model, case.jobs[task.candidate[0]].num_gpu)
        for turn, now, task in expected.history
    ]  # fmt: skip


def same_times(found: Any, expected: list[float | None]) -> bool:
    return np.array_equal(found, np.array([np.nan if t is None else t for t in expected]), equal_nan=True)
