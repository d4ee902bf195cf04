"""Causes of cells of Gavel's figures that are outside: the range of ours if what the original left to chance is moved.

``python -m bench.gavel_noise --figure 8 --data DIR`` makes a figure of ``fastsim reproduce gavel`` once as it is, and
once for each seed, moved. A published value within the range of all of them, give or take the bar of the cell, is one
that the cause explains. What is moved depends on the figure:

==========================  =========================================================================================
most                        shares, by noise of 1e-9: less than any solver's tolerance
11                          levels and rates of the last program of water filling, by the same noise
makespans of 2019           the steps that are left, which programs with pairs took in the order of a set of the jobs;
                            of two seeds one takes the order, the other one its inverse
==========================  =========================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import click
import numpy as np
import polars as pl

from fastsim.engine.shares.plan import Allocation, Floats, Ints, RoundView, SharePlan
from fastsim.experiments.reproduce.gavel import EARLY_TABLE, STATIC, gavel_reproduction
from fastsim.policies.programs.published_programs import last_rise

NOISE = 1e-9
"""Standard deviation of the noise, relative to each share, level or rate."""
KEYS = ["case", "policy", "quantity", "at"]
"""Columns that identify a cell of a figure."""


class MovedAllocator:
    """An allocator that is moved by a seed, as its classes say how."""

    def __init__(self, allocator: Any, seed: int) -> None:
        self._allocator, self._seed, self._random = allocator, seed, np.random.default_rng(seed)

    def allocate(self, view: RoundView) -> Allocation | None:
        """The allocation for these jobs, moved."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        return getattr(self._allocator, name)


class NoisyAllocator(MovedAllocator):
    """An allocator whose shares have noise."""

    def allocate(self, view: RoundView) -> Allocation | None:
        """The shares with noise."""
        found: Allocation | None = self._allocator.allocate(view)
        if found is None:
            return None
        noise = NOISE * self._random.standard_normal(found.share__rg.shape)
        return replace(found, share__rg=found.share__rg * (1 + noise))


class ExchangedSteps(MovedAllocator):
    """An allocator of pairs that takes the steps of the jobs in the order of a set of them: for those of others."""

    def allocate(self, view: RoundView) -> Allocation | None:
        """The shares for jobs with each other's steps."""
        order = np.arange(len(view))
        if getattr(self._allocator, "mode", "") == "packed":
            order = order_in_a_set(view.job_id)
            order = order if self._seed % 2 else np.argsort(order)
        found: Allocation | None = self._allocator.allocate(replace(view, steps_left=view.steps_left[order]))
        return found


def order_in_a_set(job_id: Ints) -> Ints:
    """Rows of jobs in the order of a set of their ids: rising while all jobs are there, other when few are left."""
    listed: set[int] = set()
    for job in job_id.tolist():
        listed.add(job)
    return np.searchsorted(job_id, list(listed))


@contextmanager
def moved_plans(kind: type[MovedAllocator], seed: int) -> Iterator[None]:
    """While it lasts, the allocator of every plan that is made in this process is of this kind."""
    plain = SharePlan.__init__

    def made(plan: SharePlan, allocator: Any, *rest: Any, **named: Any) -> None:
        moved = allocator if isinstance(allocator, MovedAllocator) else kind(allocator, seed)
        plain(plan, moved, *rest, **named)

    with mock.patch.object(SharePlan, "__init__", made):
        yield


@contextmanager
def noisy_levels(seed: int) -> Iterator[None]:
    """While it lasts, levels and rates of the last program of water filling have noise."""
    random = np.random.default_rng(seed)

    def moved(**told: Any) -> Floats | None:
        for name in ("level__j", "rate__jg"):
            told[name] = told[name] * (1 + NOISE * random.standard_normal(told[name].shape))
        return last_rise(**told)

    with mock.patch("fastsim.policies.programs.water_filling.last_rise", moved):
        yield


def moved(figure: str, seed: int) -> AbstractContextManager[None]:
    """What the figure's cause moves."""
    if figure == "11":
        return noisy_levels(seed)
    early = figure in STATIC and STATIC[figure].table == EARLY_TABLE
    return moved_plans(ExchangedSteps if early else NoisyAllocator, seed)


def outside_cells(figure: str, data: Path | None, seeds: Sequence[int]) -> pl.DataFrame:
    """The cells of a figure that are outside, with the range of ours over all seeds."""
    plain = cells_of(figure, data)
    ranges = []
    for seed in seeds:
        with moved(figure, seed):
            ranges.append(cells_of(figure, data).select(*KEYS, "ours"))
    outside = plain.filter(verdict="outside").select(*KEYS, "published", "ours", "bar")
    spread = pl.concat([plain.select(*KEYS, "ours"), *ranges]).group_by(KEYS, maintain_order=True)
    every = spread.agg(pl.min("ours").alias("least"), pl.max("ours").alias("most"))
    table = outside.join(every, on=KEYS, how="left", nulls_equal=True, maintain_order="left")
    reached = pl.col("published").is_between(pl.col("least") - pl.col("bar"), pl.col("most") + pl.col("bar"))
    return table.with_columns(reached.alias("reached"))


def cells_of(figure: str, data: Path | None) -> pl.DataFrame:
    """The cells of one figure; its runs are made in this process."""
    return gavel_reproduction(data, False, 1, figures=(figure,)).cells


@click.command()
@click.option("--figure", required=True, help="A figure of `fastsim reproduce gavel --list`.")
@click.option("--data", type=click.Path(path_type=Path, exists=True), help="Folder with golden/gavel.")
@click.option("--seeds", default="1,2,3", show_default=True, help="Seeds of the moves.")
def main(figure: str, data: Path | None, seeds: str) -> None:
    """Print the table of cells that are outside."""
    table = outside_cells(figure, data, [int(seed) for seed in seeds.split(",")])
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=200, fmt_str_lengths=60, tbl_hide_dataframe_shape=True):
        print(table)
    decided = int(table["reached"].sum())
    print(f"{decided} of {len(table)} cells that are outside are reached")


if __name__ == "__main__":
    main()
