"""Pod classes: dense, stable, exact."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from fastsim.workload import Workload
from fastsim.workload.pod_classes import PodClasses

Pod = tuple[int, int, int, int]
"""CPU, memory, devices and a position in MODELS."""
MODELS = [None, ["A"], ["A", "B"], ["B", "A"], ["A", "B", "B"], ["A|B"]]
POD = st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from([0, 1, 4]), st.integers(0, 5))


def batch(pods: list[Pod]) -> pa.RecordBatch:
    milli = [0 if g == 0 else 1000 if g > 1 else 500 + c for c, _, g, _ in pods]
    columns: dict[str, Any] = {
        "cpu_milli": [c for c, _, _, _ in pods],
        "memory_mib": [m for _, m, _, _ in pods],
        "num_gpu": pa.array([g for _, _, g, _ in pods], pa.int16()),
        "gpu_milli": pa.array(milli, pa.int16()),
        "gpu_models": pa.array([MODELS[i] for *_, i in pods], pa.list_(pa.string())),
    }
    return pa.record_batch(columns)


@given(st.lists(st.lists(POD, min_size=1, max_size=20), max_size=4))
@settings(max_examples=80, deadline=None)
def test_ids_are_dense_by_first_appearance_and_give_back_the_request(pieces: list[list[Pod]]) -> None:
    classes = PodClasses()
    seen: dict[tuple[str, ...], int] = {}
    for pods in pieces:
        piece = batch(pods)
        ids = classes.intern(piece)
        assert ids.dtype == "int32" and len(ids) == len(pods)
        for row, number in enumerate(ids.tolist()):
            cells = {name: piece[name][row].as_py() for name in piece.schema.names}
            key = tuple(str(value) for value in cells.values())
            assert seen.setdefault(key, number) == number
            *numbers, models = classes.row(number).item()
            assert numbers == [cells[name] for name in ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")]
            assert classes.model_lists[models] == tuple(cells["gpu_models"] or ())
    assert list(seen.values()) == list(range(len(seen))) and len(classes) == len(seen)
    later = min(2, len(classes))
    assert classes.rows(later).tolist() == [classes.row(k).item() for k in range(later, len(classes))]


def test_no_model_column_and_no_rows() -> None:
    classes = PodClasses()
    plain = batch([(1, 1, 0, 0)]).drop_columns(["gpu_models"])
    assert classes.intern(plain).tolist() == [0] and classes.model_lists == [()]
    assert classes.intern(plain.slice(0, 0)).tolist() == []
    assert classes.intern(batch([(1, 1, 0, 0)])).tolist() == [0]


def test_batching_does_not_change_the_numbers() -> None:
    pods = Workload.synth("openb", pods=3000, seed=1, gpu_spec_share=0.3)
    numbers = []
    for rows in (3000, 7):
        classes = PodClasses()
        numbers.append([i for piece in pods.batches(rows) for i in classes.intern(piece).tolist()])
    assert numbers[0] == numbers[1]
