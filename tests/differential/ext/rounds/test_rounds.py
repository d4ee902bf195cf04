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

from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.node_outages import NodeOutages
from fastsim.engine.rounds.options import LATE_SHARES, QUIRKS, Job, RoundOptions, Setting
from fastsim.engine.shares.plan import ALONE, VISITS, Allocation, RoundView, SharePlan
from fastsim.engine.shares.run import run_rounds
from fastsim.errors import PolicyError
from fastsim.performance.oracle import Oracle
from tests.reference.rounds import share_rounds
from tests.rounds import Swing, outages, twin_nodes
from tests.strategies import scenarios_per_run
from tests.tenures import held_in_rounds, same_tenures, tenures

MODELS = ("k80", "p100", "v100")


@dataclasses.dataclass
class Fancy:
    """Takes every job for any; ``log`` tells which pairs it had been told of whenever it was asked."""

    seed: int
    kinds: int
    seen: set[tuple[int, int, int]] = dataclasses.field(default_factory=set)
    gone: set[int] = dataclasses.field(default_factory=set)
    log: list[tuple[list[tuple[int, int, int]], list[int]]] = dataclasses.field(default_factory=list)

    def arrive(self, job: int, kind: int) -> int:
        """Any kind, now and then its own."""
        draw = np.random.default_rng((self.seed, job))
        return int(draw.integers(self.kinds)) if draw.random() < 0.8 else kind

    def observe(self, job_a: int, job_b: int, model: int) -> None:
        """A pair, the older job first."""
        self.seen.add((job_a, job_b, model))

    def leave(self, job: int) -> None:
        """Once is enough."""
        assert job not in self.gone
        self.gone.add(job)

    def __call__(self, view: RoundView, first: npt.NDArray[Any], second: npt.NDArray[Any]) -> tuple[Any, Any]:
        """No rates: who asks has no sense."""
        self.log.append((sorted(pair for pair in self.seen if not self.gone & set(pair[:2])), sorted(self.gone)))
        return np.zeros((0, 0)), np.zeros((0, 0))

    def state(self) -> dict[str, Any]:
        """All but the log."""
        return {"seen": sorted(self.seen), "gone": sorted(self.gone)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take it back."""
        self.seen, self.gone = {tuple(pair) for pair in state["seen"]}, set(state["gone"])


@dataclasses.dataclass
class Whim:
    """A policy without sense: some shares are 0, some jobs get none, some pairs get one."""

    seed: int
    pairs: bool
    calls: int = 0

    def allocate(self, view: RoundView) -> Allocation | None:
        """Shares at random, rarely none."""
        self.calls += 1
        if view.partner_rates is not None:
            view.pair_rates(np.zeros(0, np.int64), np.zeros(0, np.int64))
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
        time = [share[[job in pair for pair in zip(first, second, strict=True)]].sum() for job in view.job_id]
        share /= max([1.0, *time])
        return Allocation(np.array(first, np.int64), np.array(second, np.int64), share)

    def state(self) -> dict[str, Any]:
        """How often it was asked."""
        return {"calls": self.calls}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on counting."""
        self.calls = state["calls"]


@dataclasses.dataclass(frozen=True)
class Case:
    """Everything that decides a run."""

    setting: Setting
    jobs: list[Job]
    options: RoundOptions
    plan: SharePlan
    servers: tuple[int, ...]
    nodes: NodeOutages | None = None

    def again(self) -> SharePlan:
        """The same plan with an allocator that remembers nothing."""
        fresh = dataclasses.replace(self.plan.allocator)  # type: ignore[type-var]
        guess = self.plan.estimates
        estimates = Fancy(guess.seed, guess.kinds) if isinstance(guess, Fancy) else None
        return dataclasses.replace(self.plan, allocator=fresh, estimates=estimates)


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
    return Case(setting, jobs, draw(options(len(jobs), width)), draw(plans(len(kinds))), (1,) * width)


@st.composite
def options(draw: st.DrawFn, jobs: int, width: int) -> RoundOptions:
    """Any options; the quirks one by one."""
    first = draw(st.integers(0, jobs - 1))
    window = draw(st.none() | st.just((first, jobs)))
    prices = Swing(width) if draw(st.booleans()) else None
    return RoundOptions(
        round_s=draw(st.sampled_from([360.0, 100.0])),
        realloc_s=draw(st.sampled_from([None, 1920.0, 0.0, 500.1])),
        restart_s=draw(st.sampled_from([0.0, 0.0, 20.0])),
        until_s=draw(st.sampled_from([float("inf"), 5000.0])),
        window=window,
        global_queue=draw(st.booleans()),
        prices=prices,
        compat=frozenset(name for name in (*QUIRKS, LATE_SHARES) if draw(st.booleans())),
        endless=draw(st.booleans()),
    )


@st.composite
def plans(draw: st.DrawFn, kinds: int = 1) -> SharePlan:
    """Any way of turning shares into rounds."""
    pairs = draw(st.booleans())
    whim = Whim(draw(st.integers(0, 2**20)), pairs)
    estimates = Fancy(whim.seed, kinds) if pairs and draw(st.booleans()) else None
    strict, prompt = draw(st.booleans()), draw(st.booleans())
    visit = draw(st.sampled_from(VISITS))
    return SharePlan(whim, pairs, visit, strict, estimates=estimates, prompt=prompt, overcommitted=True)


def twin(case: Case, plan: SharePlan | None = None) -> share_rounds.Rounds:
    nodes = None if case.nodes is None else twin_nodes(case.nodes, case.setting.gpu_models)
    rounds = share_rounds.Rounds(case.setting, plan or case.again(), case.options, case.jobs, case.servers, nodes)
    rounds.run()
    return rounds


@settings(max_examples=scenarios_per_run(300))
@given(cases())
def test_compiled_and_plain_rounds_are_equal(case: Case) -> None:
    check(case)


@settings(max_examples=scenarios_per_run(300))
@given(cases(), st.integers(0, 2**32))
def test_they_are_where_nodes_come_and_go(case: Case, seed: int) -> None:
    random = np.random.default_rng(seed)
    sizes = [random.multinomial(count, [0.5, 0.3, 0.2]) for count in case.setting.gpus__g]
    nodes = outages(random, [row[row > 0].tolist() for row in sizes], MODELS)
    check(dataclasses.replace(case, nodes=nodes))


def check(case: Case) -> None:
    """Every figure and every task of both runs is the same."""
    plans = [case.again(), case.again()]
    try:
        expected = twin(case, plans[0])
    except PolicyError:
        with pytest.raises(PolicyError, match="nothing runs"):
            run_rounds(case.setting, case.again(), [JobBatch.of(case.jobs)], case.options, nodes=case.nodes)
        return
    batches = [JobBatch.of(case.jobs[:3]), JobBatch.of(case.jobs[3:])]
    run = run_rounds(case.setting, plans[1], batches, case.options, record_tasks=True, nodes=case.nodes)
    figures = (run.rounds, run.calls, run.makespan_s, run.max_active, run.extensions, run.opportunities)
    assert figures == (expected.rounds, expected.calls, expected.now_s, expected.max_active, expected.extensions,
                       expected.opportunities)  # fmt: skip
    assert run.busy_s.tolist() == expected.busy_s
    assert run.wasted_gpu_s is not None
    assert np.isclose(run.wasted_gpu_s, expected.wasted_gpu_s, rtol=1e-9, atol=1e-6)
    told = [plan.estimates.log for plan in plans if isinstance(plan.estimates, Fancy)]
    assert told[1:] == told[:-1]
    assert run.jobs[["rounds", "run"]].tolist() == [(o.rounds, o.steps_run) for o in expected.outcomes]
    leased = case.options.quirk("lease_cost")
    if leased:
        assert run.jobs["cost"].tolist() == [o.lease_cost for o in expected.outcomes]
    ends = [o.completion_s for o in expected.outcomes]
    held = tenures(len(run.jobs), held_in_rounds(expected.history, ends, expected.now_s))
    assert same_tenures(run.jobs, held, not leased)
    assert same_times(run.jobs["finish_s"], [o.completion_s for o in expected.outcomes])
    assert same_times(run.jobs["first_s"], [o.first_s for o in expected.outcomes])
    assert [task[:-1] for task in run.tasks.tolist()] == [
        (turn, task.candidate[0], task.candidate[1] if len(task.candidate) == 2 else ALONE, now, task.finish_s,
         task.priority, task.deficit, task.model, case.jobs[task.candidate[0]].num_gpu)
        for turn, now, task in expected.history
    ]  # fmt: skip


def same_times(found: Any, expected: list[float | None]) -> bool:
    return np.array_equal(found, np.array([np.nan if t is None else t for t in expected]), equal_nan=True)
