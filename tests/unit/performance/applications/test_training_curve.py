"""Training curves: recorded batch sizes, what lies between, one axis of progress."""

from __future__ import annotations

import pytest

from fastsim.errors import InputError
from fastsim.performance.applications.training_curve import EpochRow, TrainingCurve

ROWS = [
    EpochRow(100, 0, 10.0, 10, 0.9, 1.0, 50.0),
    EpochRow(100, 1, 20.0, 20, 0.5, 0.5, 50.0),
    EpochRow(300, 1, 21.0, 8, 0.7, 0.7, 90.0),
    EpochRow(300, 0, 9.5, 4, 0.6, 2.0, 90.0),
]


@pytest.fixture
def curve() -> TrainingCurve:
    return TrainingCurve("sample", ROWS)


def test_sizes_come_from_the_records(curve: TrainingCurve) -> None:
    assert (curve.init_batch, curve.max_batch, curve.epochs) == (100, 300, 2)


def test_all_batch_sizes_share_the_least_progress(curve: TrainingCurve) -> None:
    assert [curve.progress(epochs) for epochs in range(3)] == [0.0, 9.5, 20.0]
    assert [curve.epoch_of(progress) for progress in (0, 9.4, 9.5, 20, 25)] == [0, 0, 1, 2, 2]


def test_between_two_batch_sizes_all_is_linear(curve: TrainingCurve) -> None:
    assert curve.gradients(100, 1) == (0.5, 50.0)
    assert curve.gradients(150, 0) == (1.25, 60.0)
    assert curve.iteration(200, 1) == 14.0
    assert curve.iteration_at(200, 0, 4.75) == round(3.5)
    assert curve.iteration_at(300, 1, 20.0) == 8


def test_the_best_metric_is_the_least_of_one_that_falls(curve: TrainingCurve) -> None:
    assert curve.best_metric(100, 0) is None
    assert [curve.best_metric(batch, 2) for batch in (100, 200, 300)] == [0.5, pytest.approx(0.55), 0.6]


@pytest.mark.parametrize("batch", [99, 301])
def test_nothing_is_known_outside(batch: int, curve: TrainingCurve) -> None:
    with pytest.raises(InputError, match=f"sample: batch size: found {batch}, expected 100 to 300"):
        curve.gradients(batch, 0)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        ROWS[:3],
        [*ROWS, ROWS[0]],
        [ROWS[0]._replace(batch_size=0), ROWS[1]._replace(batch_size=0)],
        [ROWS[0], ROWS[1]._replace(progress=10.0)],
        [ROWS[0], ROWS[1]._replace(grad_sqr=-1.0)],
        [ROWS[0]._replace(metric=float("nan"))],
    ],
)
def test_records_that_cannot_be_are_refused(rows: list[EpochRow]) -> None:
    with pytest.raises(InputError, match="sample"):
        TrainingCurve("sample", rows)
