"""First come, first served with shared GPUs: the engine's ends of jobs of several GPUs beside those of a plain loop."""

from __future__ import annotations

import random

import polars as pl
import pytest

from fastsim.performance.oracle import Oracle
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.simulate import played
from fastsim.workload.workload import Workload
from tests.reference.rounds.packed_queue import GpuModel, QueuedJob, ends_s

SIZES, NAMES = (1, 2, 4), ("a", "b", "c", "d")


def drawn_models(draw: random.Random) -> dict[str, GpuModel]:
    models = {}
    for name, gpus in (("k80", 5), ("v100", 7)):
        alone = {workload: draw.uniform(0.5, 40) for workload in NAMES}
        together = {}
        for one in NAMES:
            for two in NAMES:
                if one <= two:
                    parts = [draw.uniform(0.5, 1.0) for _ in (one, two)]
                    both = (alone[one] * parts[0], alone[two] * parts[0 if one == two else 1])
                    together[one, two], together[two, one] = both, both[::-1]
        models[name] = GpuModel(gpus, alone, together)
    return models


def oracle_of(models: dict[str, GpuModel]) -> Oracle:
    rows = [
        (one, name, size, other, rates[0], rates[1])
        for name, model in models.items()
        for size in SIZES
        for one in NAMES
        for other, rates in [(None, (model.alone[one], None)), *((two, model.together[one, two]) for two in NAMES)]
    ]
    columns = ("workload", "gpu_model", "num_gpu", "colocated_workload", "steps_per_s", "colocated_steps_per_s")
    return Oracle.from_table(pl.DataFrame(rows, schema=list(columns), orient="row"))


@pytest.mark.parametrize("seed", range(6))
def test_jobs_end_when_they_do_in_a_plain_loop(seed: int) -> None:
    draw = random.Random(seed)
    models = drawn_models(draw)
    jobs = [QueuedJob(draw.choice(NAMES), draw.choice(SIZES), draw.uniform(1e3, 2e5)) for _ in range(40)]
    table = pl.DataFrame(
        [
            {"pod_id": place, "submit_s": 0.0, "cpu_milli": 0, "memory_mib": 0, "num_gpu": job.num_gpu,
             "gpu_milli": 1000, "workload": job.workload, "total_work": job.steps}
            for place, job in enumerate(jobs)
        ]
    )  # fmt: skip
    result = played(Scenario(
        "gavel:7:0:5", Workload.from_polars(table),
        "fifo(mode=packed)", rates=oracle_of(models), round_s=600.0, realloc_s=0.0, compat="gavel-2020-05",
    ))[0]  # fmt: skip
    ours = dict(result.jobs.select("pod_id", "end_s").rows())
    assert ours == pytest.approx(ends_s(jobs, models, 600.0), abs=1e-6)
    assert result.jobs["wait_s"].max() > 0.0  # type: ignore[operator]
