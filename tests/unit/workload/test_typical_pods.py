"""Typical pods: order, cut, weights, frequencies and the Parquet round trip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastsim.errors import InputError, ScenarioError
from fastsim.workload.typical_pods import RequestShape, TypicalPods

POD = {"cpu_milli": 1000, "num_gpu": 1, "gpu_milli": 500, "gpu_models": None}
SCHEMA = pa.schema(
    {"cpu_milli": pa.int64(), "num_gpu": pa.int16(), "gpu_milli": pa.int16(), "gpu_models": pa.list_(pa.string())}
)


class Pods:
    """Rows as a stream of batches of two."""

    def __init__(self, *rows: dict[str, Any]) -> None:
        self.table = pa.Table.from_pylist([POD | row for row in rows], schema=SCHEMA)

    def batches(self) -> Iterable[pa.RecordBatch]:
        """Batches of at most two rows."""
        batches: list[pa.RecordBatch] = self.table.to_batches(max_chunksize=2)
        return batches


def test_the_most_popular_request_comes_first() -> None:
    typical = TypicalPods.of(Pods({}, {"cpu_milli": 9}, {}, {"cpu_milli": 9}, {}), threshold=100)
    assert typical.cpu_milli == (1000, 9)
    assert typical.count == (3, 2)
    assert typical.frequency == (0.6, 0.4)
    assert typical.kept == 5


def test_equal_counts_are_ordered_by_cpu_then_gpu_then_devices_then_models_all_descending() -> None:
    whole: dict[str, Any] = {"gpu_milli": 1000}
    rows: list[dict[str, Any]] = [
        {"cpu_milli": 1}, {"cpu_milli": 2}, whole, whole | {"num_gpu": 8}, whole | {"num_gpu": 8, "gpu_models": ["A"]},
        whole | {"num_gpu": 8, "gpu_models": ["A", "B"]}, {},
    ]  # fmt: skip
    typical = TypicalPods.of(Pods(*rows), threshold=100)
    assert typical.cpu_milli == (1000, 1000, 1000, 1000, 1000, 2, 1)
    assert typical.gpu_models[:3] == (("A", "B"), ("A",), ())
    assert typical.num_gpu[:5] == (8, 8, 8, 1, 1)
    assert typical.gpu_milli[3:5] == (1000, 500)


def test_model_lists_are_compared_verbatim() -> None:
    rows = [{"gpu_models": ["A", "B"]}, {"gpu_models": ["B", "A"]}, {"gpu_models": ["A", "B", "B"]}]
    assert len(TypicalPods.of(Pods(*rows), threshold=100)) == 3


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0, 500, 1000]), st.sampled_from([None, [], ["A"]]))))
@example([(number % 3, 1000, None) for number in range(100)])  # more batches than are held
def test_weights_are_counts_of_rows(rows: list[tuple[int, int, list[str] | None]]) -> None:
    pods = [{"cpu_milli": cpu, "gpu_milli": milli, "gpu_models": models} for cpu, milli, models in rows]
    weights = Counter[RequestShape]()
    for cpu, milli, models in rows:
        weights[RequestShape(cpu, milli, 1, tuple(models or ()))] += 3 if milli == 1000 else 1
    typical = TypicalPods.of(Pods(*pods), threshold=100, gpu_weight=2)
    columns = zip(typical.cpu_milli, typical.gpu_milli, typical.num_gpu, typical.gpu_models, strict=True)
    found = [RequestShape(*row) for row in columns]
    assert dict(zip(found, typical.count, strict=True)) == weights and len(set(found)) == len(found)


def test_the_cut_stops_once_the_threshold_is_reached_and_frequencies_are_rescaled() -> None:
    rows: list[dict[str, Any]] = [{}] * 6 + [{"cpu_milli": 2}] * 3 + [{"cpu_milli": 1}]
    typical = TypicalPods.of(Pods(*rows), threshold=90)
    assert typical.count == (6, 3)
    assert typical.frequency == (6 / 10 / (9 / 10), 3 / 10 / (9 / 10))
    assert len(TypicalPods.of(Pods(*rows), threshold=91)) == 3
    assert len(TypicalPods.of(Pods(*rows), threshold=61, step=3)) == 3


def test_cpu_pods_may_be_left_out() -> None:
    rows = [{}, {"num_gpu": 0, "gpu_milli": 0}]
    assert TypicalPods.of(Pods(*rows), cpu_pods=False).gpu_milli == (500,)
    assert TypicalPods.of(Pods(*rows)).kept == 2


def test_gpu_weight_counts_whole_gpus_more() -> None:
    rows = [{}, {}, {"num_gpu": 4, "gpu_milli": 1000}]
    assert TypicalPods.of(Pods(*rows), threshold=100, gpu_weight=2).count == (9, 2)


def test_an_empty_workload_has_no_typical_pods() -> None:
    typical = TypicalPods.of(Pods())
    assert len(typical) == typical.kept == 0


@pytest.mark.parametrize("options", [{"threshold": 0}, {"threshold": 101}, {"step": 0}, {"gpu_weight": -1}])
def test_options_out_of_range_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ScenarioError, match=f"typical.{next(iter(options))}"):
        TypicalPods.of(Pods({}), **options)  # type: ignore[arg-type]


def test_parquet_round_trip_keeps_every_bit(tmp_path: Path) -> None:
    typical = TypicalPods.of(Pods(*[{}] * 6, {"gpu_models": ["A", "B"]}, {"cpu_milli": 2}), threshold=80)
    typical.to_parquet(tmp_path / "typical.parquet")
    assert TypicalPods.from_parquet(tmp_path / "typical.parquet") == typical
    assert [path.name for path in tmp_path.iterdir()] == ["typical.parquet"]


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("count", 0, "count: found 0, expected 1 or more"),
        ("cpu_milli", -1, "found -1"),
        ("gpu_models", None, "found null"),
        ("frequency", "x", "found String"),
    ],
)
def test_bad_rows_name_file_row_and_column(tmp_path: Path, column: str, value: object, message: str) -> None:
    TypicalPods.of(Pods({})).to_parquet(tmp_path / "t.parquet")
    frame = pl.read_parquet(tmp_path / "t.parquet")
    dtype = pl.List(pl.String) if column == "gpu_models" else None
    frame.with_columns(pl.Series(column, [value], dtype=dtype)).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match=rf"t.parquet:.*{message}"):
        TypicalPods.from_parquet(tmp_path / "t.parquet")


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1 cut short")
    with pytest.raises(InputError, match=r"t.parquet: found .*, expected a complete Parquet file"):
        TypicalPods.from_parquet(tmp_path / "t.parquet")
    pl.DataFrame({"count": [1]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="no column 'cpu_milli'"):
        TypicalPods.from_parquet(tmp_path / "t.parquet")
