"""Recorded policy calls of the Gavel simulator, as the views that our policies look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from fastsim.engine.rounds.options import Setting
from fastsim.engine.shares.plan import ALONE, Allocation, RoundView
from tests.golden.gavel.gavel import GAVEL, oracle, settings

PRUNED = 1e-7
"""Pairs whose recorded shares are all smaller were left out of the ``lp`` files."""

Row = tuple[int, int]


@dataclass(frozen=True)
class Call:
    """What a policy was asked, and the shares it answered with: (job, partner or -1) -> share of each model."""

    number: int
    view: RoundView
    recorded: dict[Row, tuple[float, ...]]


def recorded_runs(folder: str, ending: str, policies: set[str]) -> list[str]:
    """Names ``scenario__policy`` of the files of a folder, of these policies of the original."""
    names = [path.name.removesuffix(ending) for path in sorted((GAVEL / folder).glob(f"*{ending}"))]
    return [name for name in names if name.partition("__")[2] in policies]


def golden_setting(run: str) -> Setting:
    """The cluster and the seed of a recorded run."""
    scenario, _, policy = run.partition("__")
    row = settings().filter((pl.col("name") == scenario) & (pl.col("policy") == policy)).row(0, named=True)
    v100, p100, k80 = map(int, row["cluster"].split(":"))
    rates = oracle()
    return Setting(rates.gpu_models, np.array([k80, p100, v100]), rates, rates.alone__kg[:, -1], row["seed"])


def sampled_calls(run: str) -> Iterator[Call]:
    """The calls of ``lp``: complete inputs."""
    setting = golden_setting(run)
    shares = pl.read_parquet(GAVEL / f"lp/{run}.alloc.parquet").partition_by("snap", as_dict=True)
    inputs = pl.read_parquet(GAVEL / f"lp/{run}.inputs.parquet")
    for (number,), jobs in inputs.partition_by("snap", as_dict=True, maintain_order=True).items():
        recorded = shares.get((number,))
        yield Call(int(number), _view(setting, jobs), {} if recorded is None else _recorded(recorded))


def all_calls(run: str) -> Iterator[Call]:
    """The calls of ``replay``: every one, but of the jobs only what they are, not how far they got."""
    scenario, _, _ = run.partition("__")
    setting = golden_setting(run)
    kinds = pl.read_parquet(GAVEL / f"traces/{scenario}.parquet", columns=["job_id", "job_type", "scale_factor"])
    table = pl.read_parquet(GAVEL / f"replay/{run}.parquet")
    for (number,), shares in table.partition_by("call", as_dict=True, maintain_order=True).items():
        singles = shares.filter(pl.col("job1") == ALONE).select(job_id=pl.col("job0").cast(pl.Int64))
        yield Call(int(number), _view(setting, singles.join(kinds, on="job_id").sort("job_id")), _recorded(shares))


def answered(allocation: Allocation) -> dict[Row, tuple[float, ...]]:
    """Shares that are not 0, and those of every job alone."""
    rows = zip(allocation.first.tolist(), allocation.second.tolist(), allocation.share__rg.tolist(), strict=True)
    return {(one, two): tuple(share) for one, two, share in rows if two == ALONE or max(share) > 0}


def _recorded(table: pl.DataFrame) -> dict[Row, tuple[float, ...]]:
    rows = table.select("job0", "job1", "k80", "p100", "v100").iter_rows()
    return {(one, two): tuple(share) for one, two, *share in rows if two == ALONE or max(share) >= PRUNED}


def _view(setting: Setting, jobs: pl.DataFrame) -> RoundView:
    def floats(name: str, default: float) -> Any:
        column = (
            jobs[name].cast(pl.Float64) if name in jobs.columns else pl.Series([None] * len(jobs), dtype=pl.Float64)
        )
        return column.fill_null(default).to_numpy()

    index = setting.oracle.kind_index
    kind = np.array([index[row] for row in jobs.select("job_type", "scale_factor").iter_rows()], np.int64)
    return RoundView(
        setting=setting,
        now_s=0.0,  # so that ages come out as they were recorded
        job_id=jobs["job_id"].to_numpy(),
        kind=kind,
        num_gpu=jobs["scale_factor"].to_numpy(),
        weight=floats("priority_weight", 1.0),
        submit_s=-floats("time_since_start", 0.0),
        steps_left=floats("num_steps_remaining", 1.0),
        deadline_s=floats("slo_remaining_s", np.inf),
        price__g=np.zeros(len(setting.gpu_models)),
    )
