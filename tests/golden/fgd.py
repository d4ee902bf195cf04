"""Reads the recorded inputs of the FGD simulator as plain frames and clusters of ours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa


@dataclass(frozen=True)
class PodTable:
    """A pod list as a stream of record batches."""

    frame: pl.DataFrame

    def batches(self) -> Iterable[pa.RecordBatch]:
        """Record batches in file order."""
        batches: list[pa.RecordBatch] = self.frame.to_arrow().to_batches(max_chunksize=4096)
        return batches


def models(spec: str = "gpu_spec") -> pl.Expr:
    """``A|B`` as the list of accepted models, empty text as null (any model)."""
    return pl.when(pl.col(spec) != "").then(pl.col(spec).str.split("|")).alias("gpu_models")


def raw_trace(folder: Path, trace: str) -> pl.DataFrame:
    """The untuned pod list of a trace, in file order, with ``gpu_models`` as lists."""
    return pl.read_parquet(folder / "inputs" / "traces" / f"{trace}.parquet").with_columns(models())
