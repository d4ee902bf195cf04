"""What rounding decides in Gavel's figures: cells that are outside, beside runs whose shares have noise of 1e-9.

``python -m bench.gavel_noise --figure 8 --data DIR`` makes a figure of ``fastsim reproduce gavel`` once as it is, and
once for each seed of the noise. A published value within the range of all of them, give or take the bar of the cell, is
one that rounding decides: shares that differ by less than any solver's tolerance lead to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import click
import numpy as np
import polars as pl

from fastsim.engine.shares.plan import Allocation, RoundView, SharePlan
from fastsim.experiments.reproduce.gavel import gavel_reproduction

NOISE = 1e-9
"""Standard deviation of the noise, relative to each share."""
KEYS = ["case", "policy", "quantity", "at"]
"""Columns that identify a cell of a figure."""


class NoisyAllocator:
    """An allocator whose shares have noise."""

    def __init__(self, allocator: Any, seed: int) -> None:
        self._allocator, self._random = allocator, np.random.default_rng(seed)

    def allocate(self, view: RoundView) -> Allocation | None:
        """The shares with noise."""
        found: Allocation | None = self._allocator.allocate(view)
        if found is None:
            return None
        noise = NOISE * self._random.standard_normal(found.share__rg.shape)
        return replace(found, share__rg=found.share__rg * (1 + noise))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._allocator, name)


@contextmanager
def noisy_shares(seed: int) -> Iterator[None]:
    """While it lasts, every plan that is made in this process has noise on its shares."""
    plain = SharePlan.__init__

    def made(plan: SharePlan, allocator: Any, *rest: Any, **named: Any) -> None:
        noisy = allocator if isinstance(allocator, NoisyAllocator) else NoisyAllocator(allocator, seed)
        plain(plan, noisy, *rest, **named)

    with mock.patch.object(SharePlan, "__init__", made):
        yield


def outside_cells(figure: str, data: Path | None, seeds: Sequence[int]) -> pl.DataFrame:
    """The cells of a figure that are outside, with the range of ours under the noise of all seeds."""
    plain = cells_of(figure, data)
    ranges = []
    for seed in seeds:
        with noisy_shares(seed):
            ranges.append(cells_of(figure, data).select(*KEYS, "ours"))
    outside = plain.filter(verdict="outside").select(*KEYS, "published", "ours", "bar")
    spread = pl.concat([plain.select(*KEYS, "ours"), *ranges]).group_by(KEYS, maintain_order=True)
    every = spread.agg(pl.min("ours").alias("least"), pl.max("ours").alias("most"))
    table = outside.join(every, on=KEYS, how="left", nulls_equal=True, maintain_order="left")
    reached = pl.col("published").is_between(pl.col("least") - pl.col("bar"), pl.col("most") + pl.col("bar"))
    return table.with_columns(reached.alias("rounding decides"))


def cells_of(figure: str, data: Path | None) -> pl.DataFrame:
    """The cells of one figure; its runs are made in this process."""
    return gavel_reproduction(data, False, 1, figures=(figure,)).cells


@click.command()
@click.option("--figure", required=True, help="A figure of `fastsim reproduce gavel --list`.")
@click.option("--data", type=click.Path(path_type=Path, exists=True), help="Folder with golden/gavel.")
@click.option("--seeds", default="1,2,3", show_default=True, help="Seeds of the noise.")
def main(figure: str, data: Path | None, seeds: str) -> None:
    """Print the table of cells that are outside."""
    table = outside_cells(figure, data, [int(seed) for seed in seeds.split(",")])
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=200, fmt_str_lengths=60, tbl_hide_dataframe_shape=True):
        print(table)
    decided = int(table["rounding decides"].sum())
    print(f"{decided} of {len(table)} cells that are outside are reached by noise of {NOISE:g} on the shares")


if __name__ == "__main__":
    main()
