"""Jobs in rounds: the loop alone, whole runs of policies with and without a solver, the loop beside its plain twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastsim as fs
from bench.conftest import Timed
from fastsim.engine.rounds.job_batches import JobBatch, JobBatches
from fastsim.engine.rounds.options import Job, RoundOptions, Setting
from fastsim.engine.rounds.outcome import RoundOutcome
from fastsim.engine.shares.plan import Allocation, RoundView, SharePlan, setting_of
from fastsim.engine.shares.run import run_rounds
from fastsim.performance.oracle import Oracle
from tests.reference.rounds.share_rounds import Rounds

GPUS = 36
"""GPUs of each of three models."""
RUNS = [("fifo(mode=perf)", 1.2), ("allox", 1.4), ("gandiva", 1.5), ("max_min_fairness", 4.5),
        ("finish_time_fairness", 5.0)]  # fmt: skip
"""Policies of whole runs and the ratio a run may not exceed."""


class Held:
    """Shares computed once, so that the loop is timed and not the policy."""

    def allocate(self, view: RoundView) -> Allocation | None:
        """Equal shares of every model."""
        share = view.setting.gpus__g / max(len(view), GPUS)
        return Allocation.of_singles(view.job_id, np.tile(np.minimum(share, 1 / 3), (len(view), 1)))

    def state(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def restore(self, state: Any) -> None:
        """Nothing."""


def crowd(jobs: int, rounds: int) -> tuple[Setting, JobBatch, RoundOptions]:
    """So many jobs at once that last longer than the run; one allocation."""
    oracle = Oracle.default()
    kinds = [k for k, (_, num_gpu) in enumerate(oracle.kinds) if num_gpu == 1]
    setting = setting_of(fs.Cluster.mix(k80=GPUS, p100=GPUS, v100=GPUS), oracle)
    listed = [Job(0.0, kinds[j % len(kinds)], 1, 1e12) for j in range(jobs)]
    return setting, JobBatch.of(listed), RoundOptions(realloc_s=1e12, until_s=360.0 * rounds)


@pytest.mark.parametrize(("jobs", "rounds", "budget"), [(71, 10_000, 3.5), (1_000, 2_000, 4.0), (10_000, 200, 4.5)])
def bench_loop(timed: Timed, jobs: int, rounds: int, budget: float) -> None:
    """Rounds of jobs a second with everything already decided."""
    setting, batch, options = crowd(jobs, rounds)
    run = timed(
        lambda: run_rounds(setting, SharePlan(Held()), [batch], options), items=jobs * rounds, budget=budget,
    )  # fmt: skip
    assert run.job_rounds == pytest.approx(jobs * rounds, rel=0.02)


def bench_twin(timed: Timed) -> None:
    """The same rounds in plain Python; ours have to be far faster."""
    setting, batch, options = crowd(71, 300)
    jobs = [Job(*row) for row in zip(*(column.tolist() for column in batch[:6]), strict=True)]
    timed(
        lambda: Rounds(setting, SharePlan(Held()), options, jobs).run(), items=71 * 300, rounds=2,
        than=lambda: run_rounds(setting, SharePlan(Held()), [batch], options), least=50,
    )  # fmt: skip


@pytest.mark.parametrize(("policy", "budget"), RUNS)
def bench_run(timed: Timed, policy: str, budget: float) -> None:
    """400 jobs on 36 GPUs of each model, four an hour: rounds a second of a whole run, policy included."""
    cluster = fs.Cluster.mix(k80=GPUS, p100=GPUS, v100=GPUS)
    setting = setting_of(cluster, Oracle.default())
    jobs = fs.Workload.synth("gavel", jobs=400, rate_per_hour=4.0, seed=1)
    batches = JobBatches(jobs.name, jobs.batches, setting.oracle, setting.reference__k)
    begin: Any = fs.policies.parse(policy)

    def played() -> RoundOutcome:
        return run_rounds(setting, begin.begin(setting), batches, RoundOptions())

    timed(played, items=played().rounds, budget=budget)
