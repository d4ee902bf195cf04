"""Typical pods: the target workload against which fragmentation is measured.

The typical pods of a workload are its most popular requests. They are chosen once, before a run,
and give the probability of each request of a future pod; memory plays no part in them. Published as the
target workload M of "Beware of Fragmentation" (USENIX ATC 2023).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from fastsim.errors import InputError, ScenarioError, reading
from fastsim.foundation.limits.forked_process import whole_process

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

COLUMNS = ("cpu_milli", "gpu_milli", "num_gpu", "gpu_models", "count", "frequency")
PARTS = 16
"""How many counts of batches are held before they are added up."""
SCHEMA_KEY = b"fastsim.schema"
SCHEMA_NAME = b"typical_pods"


class PodStream(Protocol):
    """Anything that streams pods as record batches, such as a workload."""

    def batches(self) -> Iterable[pa.RecordBatch]:
        """Record batches in submission order."""


class RequestShape(NamedTuple):
    """One distinct request: milli-CPU, milli-GPU of each device, devices, accepted GPU models."""

    cpu_milli: int
    gpu_milli: int
    num_gpu: int
    gpu_models: tuple[str, ...]


@whole_process
@dataclass(frozen=True)
class TypicalPods:
    """The most popular requests of a workload, most popular first, as columns of equal length.

    ``count`` is the weight of each request (an exact integer), ``frequency`` its share of all kept
    requests. An empty ``gpu_models`` entry accepts every model.
    """

    cpu_milli: tuple[int, ...]
    gpu_milli: tuple[int, ...]
    num_gpu: tuple[int, ...]
    gpu_models: tuple[tuple[str, ...], ...]
    count: tuple[int, ...]
    frequency: tuple[float, ...]

    @property
    def kept(self) -> int:
        """Weight of all kept requests together."""
        return sum(self.count)

    def __len__(self) -> int:
        """Number of distinct kept requests."""
        return len(self.count)

    @classmethod
    def of(
        cls, workload: PodStream, threshold: int = 95, step: int = 1, cpu_pods: bool = True, gpu_weight: int = 0
    ) -> TypicalPods:
        """The typical pods of a workload.

        Requests are taken by falling popularity, ``step`` at a time, until they cover ``threshold``
        per cent of the total weight. A pod weighs 1; with a positive ``gpu_weight`` w, one that requests
        n whole GPUs weighs 1 + n w. ``cpu_pods=False`` leaves out pods without a GPU request.
        """
        _refuse_bad_options(threshold, step, gpu_weight)
        weights = _weights(workload.batches(), cpu_pods, gpu_weight)
        ranked = sorted(weights.items(), key=_popularity, reverse=True)
        total = sum(weights.values())
        most = ranked[: _cut(ranked, total * (threshold / 100), step)]
        return cls._from_ranked(most, _frequencies([count for _, count in most], total))

    @classmethod
    def from_parquet(cls, path: str | Path) -> TypicalPods:
        """The typical pods that :meth:`to_parquet` wrote."""
        import polars as pl

        from fastsim.foundation.columns.physical_types import plain
        from fastsim.foundation.limits.work_budget import Work
        from fastsim.foundation.parquet import parquet_table

        table = parquet_table(path, Work.TABLE_ROWS)
        missing = [name for name in COLUMNS if name not in table.column_names]
        if missing:
            raise InputError(str(path), f"no column {missing[0]!r}", f"the columns {', '.join(COLUMNS)}")
        columns: dict[str, Any] = {}
        for name in COLUMNS:
            with reading(f"{path}: {name}", "values of typical pods", (ValueError,)):
                columns[name] = pl.from_arrow(plain(table.column(name)))
        frame = pl.DataFrame(columns)
        _refuse_bad_rows(frame, str(path))
        rows = frame.select(COLUMNS).iter_rows()
        ranked = [(RequestShape(cpu, milli, gpus, tuple(models)), count) for cpu, milli, gpus, models, count, _ in rows]
        return cls._from_ranked(ranked, frame["frequency"].to_list())

    def to_parquet(self, path: str | Path) -> None:
        """Write one row per request; the file appears complete or not at all."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        types = (pa.int64(), pa.int16(), pa.int16(), pa.list_(pa.string()), pa.int64(), pa.float64())
        arrays = [pa.array(list(getattr(self, name)), type=kind) for name, kind in zip(COLUMNS, types, strict=True)]
        table = pa.table(arrays, names=list(COLUMNS)).replace_schema_metadata({SCHEMA_KEY: SCHEMA_NAME})
        target = Path(path)
        partial = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            pq.write_table(table, partial, compression="zstd", compression_level=3)
            os.replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)

    @classmethod
    def _from_ranked(cls, ranked: list[tuple[RequestShape, int]], frequency: list[float]) -> TypicalPods:
        return cls(
            cpu_milli=tuple(request.cpu_milli for request, _ in ranked),
            gpu_milli=tuple(request.gpu_milli for request, _ in ranked),
            num_gpu=tuple(request.num_gpu for request, _ in ranked),
            gpu_models=tuple(request.gpu_models for request, _ in ranked),
            count=tuple(count for _, count in ranked),
            frequency=tuple(frequency),
        )


def _weights(batches: Iterable[pa.RecordBatch], cpu_pods: bool, gpu_weight: int) -> dict[RequestShape, int]:
    """Weight of each distinct request, in no particular order."""
    counted = _counted(batches)
    if counted is None:
        return {}
    weights: Counter[RequestShape] = Counter()
    models = counted["gpu_models"].to_list() if "gpu_models" in counted.columns else [None] * len(counted)
    plain = counted.select(*RequestShape._fields[:3], "rows").iter_rows()
    for (cpu, milli, gpus, rows), listed in zip(plain, models, strict=True):
        if milli > 0 or cpu_pods:  # no list and an empty one mean the same
            each = 1 + gpus * gpu_weight if milli == 1000 else 1
            weights[RequestShape(cpu, milli, gpus, tuple(listed or ()))] += rows * each
    return weights


def _counted(batches: Iterable[pa.RecordBatch]) -> pl.DataFrame | None:
    """How many rows have each request; None if there are no batches."""
    parts: list[pl.DataFrame] = []
    for batch in batches:
        parts.append(_grouped(batch))
        if len(parts) == PARTS:  # so that memory follows the requests, not the rows
            parts = [_merged(parts)]
    return _merged(parts) if parts else None


def _grouped(batch: pa.RecordBatch) -> pl.DataFrame:
    import polars as pl

    names = [name for name in RequestShape._fields if name in batch.schema.names]
    return pl.DataFrame(batch.select(names)).group_by(names, maintain_order=True).len("rows")


def _merged(parts: list[pl.DataFrame]) -> pl.DataFrame:
    import polars as pl

    names = parts[0].columns[:-1]
    return (
        pl.concat(parts, how="vertical_relaxed")
        .group_by(names, maintain_order=True)
        .agg(pl.col("rows").cast(pl.Int64).sum())
    )


def _popularity(item: tuple[RequestShape, int]) -> tuple[int, int, int, int, str]:
    """Sort key: weight first, then the larger request, then the larger list of models as text."""
    request, count = item
    return count, request.cpu_milli, request.gpu_milli, request.num_gpu, "|".join(request.gpu_models)


def _cut(ranked: list[tuple[RequestShape, int]], target: float, step: int) -> int:
    """How many of the ranked requests are needed, in steps, to reach the target weight."""
    covered = taken = 0
    while taken < len(ranked) and covered < target:
        covered += sum(count for _, count in ranked[taken : taken + step])
        taken = min(taken + step, len(ranked))
    return taken


def _frequencies(counts: list[int], total: int) -> list[float]:
    """Shares of the kept requests, in two divisions: scores are truncated, so every bit matters."""
    covered = sum(counts)
    if covered == total:
        return [count / total for count in counts]
    return [count / total / (covered / total) for count in counts]


def _refuse_bad_options(threshold: int, step: int, gpu_weight: int) -> None:
    """Options outside their range would silently keep everything or nothing."""
    if not 0 < threshold <= 100:
        raise ScenarioError("typical.threshold", threshold, "1 to 100 per cent")
    if step < 1:
        raise ScenarioError("typical.step", step, "1 or more requests")
    if not isinstance(gpu_weight, Integral) or gpu_weight < 0:
        raise ScenarioError("typical.gpu_weight", gpu_weight, "a whole number of 0 or more")


def _refuse_bad_rows(frame: pl.DataFrame, path: str) -> None:
    """Typical pods must be complete, of the type that is written, and not negative."""
    import polars as pl

    for name in COLUMNS:
        column = frame[name]
        if column.null_count():
            raise InputError(f"{path}:{column.is_null().to_list().index(True)}: {name}", "null", "a value")
        expected = {"gpu_models": pl.List(pl.String()), "frequency": pl.Float64()}.get(name)
        if column.dtype != expected and (expected or not column.dtype.is_integer()):
            raise InputError(f"{path}: {name}", column.dtype, str(expected or "an integer type"))
        least = 1 if name == "count" else 0
        bad = [] if name == "gpu_models" else [row for row, value in enumerate(column) if not value >= least]
        if bad:
            raise InputError(f"{path}:{bad[0]}: {name}", column[bad[0]], f"{least} or more")
