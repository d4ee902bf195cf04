"""Step times: measured placements, what lies between them, and what lies outside."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from scipy.interpolate import LinearNDInterpolator
from threadpoolctl import threadpool_info, threadpool_limits

from fastsim.errors import InputError
from fastsim.performance.applications.step_times import StepRow, StepTimes, canonical, packed, placement_of


def step_s(nodes: int, gpus: int, atomic: float) -> float:
    """A time that is linear in everything, which any interpolation finds again."""
    return 0.1 + 0.02 * nodes + 0.01 * gpus + 0.001 * atomic


def row(placement: str | None, nodes: int, gpus: int, atomic: float) -> StepRow:
    """A measurement; a tenth of it is the network."""
    found = step_s(nodes, gpus, atomic)
    return StepRow(placement, nodes, gpus, atomic, found, found / 10)


ROWS = [row(p, len(p), sum(map(int, p)), m) for p in ("1", "2", "4", "14", "44") for m in (8, 16, 32)]
ROWS += [row(None, nodes, gpus, m) for nodes, gpus in ((3, 3), (3, 12), (8, 8), (8, 32)) for m in (8, 16)]


@pytest.fixture
def times() -> StepTimes:
    return StepTimes("sample on t4", ROWS)


def test_a_measured_placement_is_linear_in_the_batch_size(times: StepTimes) -> None:
    found = times.seconds((4,), 12)
    assert found.step_s == pytest.approx(step_s(1, 4, 12))
    assert found.turn_s == pytest.approx(0.9 * step_s(1, 4, 12))
    assert times.seconds((4, 1), 16) == times.seconds((1, 0, 4), 16)


def test_other_placements_lie_between_measured_ones(times: StepTimes) -> None:
    assert times.seconds((2, 4), 12).step_s == pytest.approx(step_s(2, 6, 12))
    assert times.seconds((4, 4, 1), 10).step_s == pytest.approx(step_s(3, 9, 10))


def test_matrices_of_simplices_are_inverted_on_one_thread(times: StepTimes, monkeypatch: pytest.MonkeyPatch) -> None:
    def threads() -> set[int]:
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    class Watched(LinearNDInterpolator):  # type: ignore[misc]
        """Records the threads at each call."""

        def __call__(self, *args: float) -> Any:
            seen.append(threads())
            return super().__call__(*args)

    seen: list[set[int]] = []
    monkeypatch.setattr("scipy.interpolate.LinearNDInterpolator", Watched)
    with threadpool_limits(2, "blas"):  # also on a machine with one core
        times.seconds((2, 4), 12)
        assert seen == [{1}, {2}] and threads() == {2}


@pytest.mark.parametrize(("placement", "atomic"), [((4,), 33), ((4,), 7), ((4, 4, 4), 32), ((4,) * 9, 8), ((), 8)])
def test_nothing_is_known_outside(placement: tuple[int, ...], atomic: int, times: StepTimes) -> None:
    with pytest.raises(InputError):
        times.seconds(placement, atomic)


def test_one_node_has_nothing_around_it() -> None:
    alone = StepTimes("sample", [row("1", 1, 1, m) for m in (8, 16)])
    with pytest.raises(InputError, match="nothing measured around it"):
        alone.seconds((2,), 8)
    with pytest.raises(InputError, match="at this scale"):
        alone.largest((2,))


def test_most_samples_of_a_gpu(times: StepTimes) -> None:
    assert (times.low, times.high, times.max_nodes) == (8, 32, 8)
    assert (times.largest((4, 1)), times.largest((4, 4, 4)), times.largest((1,) * 8)) == (32, 16, 16)
    assert [times.largest_on(gpus) for gpus in (1, 3, 5, 8)] == [32, None, 32, 32]
    assert StepTimes("sample", ROWS, high=20).high == 20


def test_rate_of_one_gpu_takes_largest_batch_and_longest_step() -> None:
    rows = [StepRow("1", 1, 1, 8, 0.5, 0.0), StepRow("1", 1, 1, 16, 0.4, 0.0)]
    assert StepTimes("sample", rows).one_gpu_rate == 16 / 0.5
    with pytest.raises(InputError, match="on one GPU"):
        _ = StepTimes("sample", [row("2", 1, 2, 8)]).one_gpu_rate


def test_pipelines_take_every_stage_and_micro_batch() -> None:
    pipes = StepTimes("sample", [StepRow("2", 1, 2, 1, 0.1, 0.02), StepRow("2", 1, 2, 2, 0.2, 0.02)], stages=2)
    assert pipes.seconds((2,), 48).step_s == pytest.approx(3 * 49 * 0.1)
    assert pipes.seconds((2,), 48).sync_s == 0.02
    assert pipes.seconds((2,), 96).step_s == pytest.approx(3 * 49 * 0.2)
    for placement, atomic in (((2,), 144), ((4,), 48)):
        with pytest.raises(InputError, match="not measured"):
            pipes.seconds(placement, atomic)


@given(st.lists(st.integers(0, 8), min_size=1, max_size=6).filter(any), st.integers(0, 5))
def test_a_ring_begins_anywhere(gpus: list[int], turn: int) -> None:
    turned = gpus[turn % len(gpus) :] + gpus[: turn % len(gpus)]
    assert canonical(turned) == canonical(gpus)
    assert sorted(canonical(gpus)) == sorted(g for g in gpus if g)


def test_packed_placements_fill_nodes() -> None:
    assert [packed(gpus, 4) for gpus in (1, 4, 6, 12)] == [(1,), (4,), (4, 2), (4, 4, 4)]


@pytest.mark.parametrize(
    "wrong",
    [
        StepRow("4", 1, 3, 8, 0.1, 0.0),
        StepRow("40", 2, 4, 8, 0.1, 0.0),
        StepRow("four", 1, 4, 8, 0.1, 0.0),
        StepRow(None, 4, 2, 8, 0.1, 0.0),
        StepRow("4", 1, 4, 0, 0.1, 0.0),
        StepRow("4", 1, 4, 8, 0.0, 0.0),
        StepRow("4", 1, 4, 8, 0.1, -1.0),
    ],
)
def test_measurements_that_cannot_be_are_refused(wrong: StepRow) -> None:
    with pytest.raises(InputError, match="sample: measurement 2"):
        StepTimes("sample", [ROWS[0], wrong])


def test_no_placement_is_refused() -> None:
    with pytest.raises(InputError, match="no measured placement"):
        StepTimes("sample", [row(None, 1, 1, 8)])


def test_gpus_on_one_node_after_the_other_are_a_ring() -> None:
    assert placement_of((0, 0, 1, 2, 2, 2), 3) == (2, 1, 3)
    assert placement_of((0, 1, 0), 3) == (1, 1, 1)
    assert placement_of((), 2) == ()


def test_more_nodes_than_were_ever_measured_count_as_fewer() -> None:
    assert placement_of((0, 1, 2, 3, 4), 2) == (3, 2)
    assert placement_of((0, 1, 2, 3), 2) == (2, 2)
    assert placement_of((0, 0, 1, 2, 3, 4, 4), 3) == (3, 3, 1)
