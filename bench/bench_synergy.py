"""Ordered rounds: single rounds of large clusters, whole runs at Synergy's reference size, the loop beside its twin."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.conftest import Timed, shortest_s
from fastsim.engine.orders.plan import OrderPlan
from fastsim.engine.orders.run import OrderedOutcome, ordered_loop_of, run_ordered
from fastsim.engine.orders.server_demands import ServerDemands
from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.options import Job, RoundOptions, Setting
from fastsim.policies import registry
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.engines.rounds import PreparedRounds, driven, prepared_rounds
from tests.reference.rounds.ordered_rounds import Turns as Twin

ORIGINAL_ROUNDS_PER_S = 33.0
"""Rounds of Synergy's own simulator in a second of CPU time: fifo + tune, 128 GPUs, 9 jobs an hour, 1,135 jobs."""
LEAST = 200.0
"""How many times as many ours plays, at least."""
REFERENCE = Scenario(
    "synergy:16", "synth:synergy?jobs=1000&rate_per_hour=9&log=10000", "fifo + tune", round_s=300.0, rates="synergy",
    compat="synergy", record="summary", window="0:1000",
)  # fmt: skip


def crowd(servers: int, jobs: int) -> tuple[PreparedRounds, JobBatch]:
    """So many single-GPU jobs at once that outlast the run, models in turn."""
    scenario = Scenario(f"synergy:{servers}", REFERENCE.workload, "fifo + tune", round_s=300.0, rates="synergy")
    made = prepared_rounds(scenario, registry.parse(scenario.policy))
    kinds = [k for k, (_, num_gpu) in enumerate(made.setting.oracle.kinds) if num_gpu == 1]
    return made, JobBatch.of([Job(0.001 * j, kinds[j % len(kinds)], 1, 1e12) for j in range(jobs)])


def tables(made: PreparedRounds) -> tuple[Setting, OrderPlan, ServerDemands]:
    """Arguments of the loop."""
    assert isinstance(made.plan, OrderPlan) and made.needs is not None
    return made.setting, made.plan, made.needs


@pytest.mark.parametrize(
    ("servers", "jobs", "policy", "most_ms"),
    [(16, 500, "fifo + tune", 0.5), (16, 500, "las + tune", 0.5), (64, 1024, "fifo + tune", 3.0),
     (256, 2048, "fifo + fair", 10.0), (256, 2048, "fifo + tune", 10.0), (256, 2048, "las + tune + place", 10.0)],
)  # fmt: skip
def bench_round(
    timed: Timed, benchmark: BenchmarkFixture, servers: int, jobs: int, policy: str, most_ms: float
) -> None:
    """Rounds of a cluster with 8 GPUs a server and more jobs than GPUs."""
    made, batch = crowd(servers, jobs)
    _, _, needs = tables(made)
    rounds = 200
    order: Any = registry.parse(policy)
    plan = order.begin(made.setting)

    def played() -> Any:
        loop = ordered_loop_of(needs, plan, RoundOptions(round_s=300.0, begin_s=300.0), {})
        loop.feed(*batch, True)
        loop.advance(rounds)
        return loop

    assert played().rounds == rounds
    timed(played, items=rounds)
    if not benchmark.disabled:
        assert 1000 * shortest_s(played, 3) / rounds <= most_ms


def bench_reference_size(timed: Timed, benchmark: BenchmarkFixture) -> None:
    """1,000 jobs, nine an hour, on 128 GPUs: rounds a second of the whole run, beside the original's."""
    made = prepared_rounds(REFERENCE, registry.parse(REFERENCE.policy))

    def played() -> OrderedOutcome:
        run = driven(REFERENCE, made, {})
        assert isinstance(run, OrderedOutcome)
        return run

    rounds = played().rounds
    timed(played, items=rounds)
    if not benchmark.disabled:
        per_s = rounds / shortest_s(played, 3)
        benchmark.extra_info.update(original_rounds_per_s=ORIGINAL_ROUNDS_PER_S, rounds_per_s=round(per_s))
        assert per_s >= LEAST * ORIGINAL_ROUNDS_PER_S, (
            f"{per_s:.0f} rounds a second, expected {LEAST:g} times the original's"
        )


def bench_twin(timed: Timed) -> None:
    """The same rounds in plain Python; ours have to be far faster."""
    made, batch = crowd(16, 200)
    setting, plan, needs = tables(made)
    options = RoundOptions(round_s=300.0, until_s=3000.0)
    jobs = [Job(*row) for row in zip(*(column.tolist() for column in batch[:6]), strict=True)]
    timed(
        lambda: Twin(plan, needs, options, jobs).play(), items=10 * 200, rounds=2,
        than=lambda: run_ordered(setting, plan, needs, [batch], options), least=10,
    )  # fmt: skip
