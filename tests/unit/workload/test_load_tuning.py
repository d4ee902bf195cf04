"""The FGD protocol: order, shuffle, drop or clone up to a load, inflate."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastsim.cluster.cluster import Cluster
from fastsim.errors import InputError, ScenarioError
from fastsim.foundation.draws.go_random import DRAWN, GoRandom
from fastsim.foundation.draws.random_streams import Ints
from fastsim.workload import Workload, load_tuning
from fastsim.workload.load_tuning import tune_rows
from fastsim.workload.schema import REQUIRED
from tests.strategies import scenarios_per_run


class Scripted(GoRandom):
    """Draws what the test says, and then the first row for ever."""

    def __init__(self, rows: list[int]) -> None:
        super().__init__(0)
        self._rows = rows

    def below(self, bound: int) -> int:
        """The script, then row 0."""
        self.used += 1
        return self._rows.pop(0) if self._rows else 0

    def look_ahead(self, bounds: Ints) -> Ints:
        """The script, then row 0; not further than the bounds."""
        return np.array((self._rows + [0] * len(bounds))[: len(bounds)])

    def skip(self, count: int) -> None:
        """That much of the script is over."""
        self.used += count
        del self._rows[:count]


def made(names: list[str] | None = None) -> Workload:
    columns: dict[str, Any] = {
        "pod_id": [0, 1, 2, 3],
        "submit_s": [0.0, 5.0, 6.0, 9.0],
        "duration_s": [1.0, 2.0, None, 3.0],
        "cpu_milli": [1000, 2000, 3000, 4000],
        "memory_mib": [1, 2, 3, 4],
        "num_gpu": [1, 0, 8, 1],
        "gpu_milli": [500, 0, 1000, 1000],
        "orig_end_s": [1.0, 7.0, None, 12.0],
    }
    return Workload.from_arrow(pa.table(columns | ({"native_id": names} if names else {})))


def pods(workload: Workload) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = workload.table().to_pydict()
    return found


def test_the_stop_test_counts_one_device_so_a_wide_pod_overshoots() -> None:
    # 8 devices: 2,000 + 1,000 <= 3,500 passes, and takes the sum to 10,000; then nothing passes.
    kept, clones = tune_rows([1000, 1000], [1, 8], 12_500, Scripted([1, 0]))
    assert kept.tolist() == [0, 1] and clones.tolist() == [1]


def test_the_first_candidate_that_would_pass_the_target_ends_it() -> None:
    # After one clone of 400 the sum is 1,800: a 500 would reach 2,300 > 2,200 and ends it, the 100 never comes.
    _, clones = tune_rows([400, 500, 500], [1, 1, 1], 2_200, Scripted([0, 1, 0]))
    assert clones.tolist() == [0]


def test_instances_of_partitioned_gpus_count() -> None:
    # 142 + 1,000 milli; a clone of the first makes 1,284, and the second would pass the target.
    kept, clones = tune_rows([0, 1000], [0, 1], 1_300, Scripted([0, 1]), instances_milli=np.array([142, 0]))
    assert kept.tolist() == [0, 1] and clones.tolist() == [0]
    pods = {"pod_id": [0, 1], "submit_s": [0.0, 1.0], "cpu_milli": [1, 1], "memory_mib": [1, 1], "num_gpu": [0, 0],
            "gpu_milli": [0, 0], "mig": ["1g.5gb", None]}  # fmt: skip
    table = Workload.from_arrow(pa.table(pods)).tune(1.0, 1000, seed=3).table()
    assert table["mig"].to_pylist().count("1g.5gb") == 7


@pytest.mark.parametrize("ratio", [-0.1, float("nan"), float("inf")])
def test_a_ratio_that_no_load_has_is_named(ratio: float) -> None:
    pods = {name: [1] for name in REQUIRED}
    with pytest.raises(ScenarioError, match=f"workload.tune: ratio: found {ratio}, expected a finite number"):
        Workload.from_arrow(pa.table(pods)).tune(ratio, 1000)


def test_a_candidate_that_lands_on_the_target_is_taken() -> None:
    _, clones = tune_rows([500], [1], 1_000, Scripted([]))
    assert clones.tolist() == [0]


def test_cpu_only_candidates_pass_even_at_the_target() -> None:
    _, clones = tune_rows([500, 0], [1, 0], 1_000, Scripted([0, 1, 1, 0, 1]))
    assert clones.tolist() == [0, 1, 1]


def test_candidates_come_from_the_source_order() -> None:
    _, clones = tune_rows([500, 400], [1, 1], 1_400, Scripted([0]), np.array([1, 0]))
    assert clones.tolist() == [1]


def test_every_candidate_is_one_draw_and_the_last_is_no_clone() -> None:
    draws = GoRandom(1)
    _, clones = tune_rows([1], [1], 9_000, draws)
    assert len(clones) == 8_999 and draws.used == 9_000


@pytest.mark.parametrize("target", [60_000, 70_000, 900_000, 5_000_000])
def test_clones_are_drawn_one_by_one_until_one_would_pass_the_target(target: int) -> None:
    requests = [(0, 0), (1, 10), (1, 500), (2, 1000), (8, 1000)] * 5
    demand = [count * milli for count, milli in requests]
    for seed in range(5):
        expected, total, draws, plain = [], sum(demand), GoRandom(seed), GoRandom(seed)
        while total + requests[row := plain.below(len(requests))][1] <= target:
            expected.append(row)
            total += demand[row]
        _, clones = tune_rows([milli for _, milli in requests], [count for count, _ in requests], target, draws)
        assert clones.tolist() == expected and draws.used == plain.used


def test_tuning_down_drops_the_row_at_the_drawn_place_among_those_left() -> None:
    kept, _ = tune_rows([100] * 7, [1] * 7, 300, Scripted([2, 2, 4, 0]))  # rows 2, 3, 6 and 0
    assert kept.tolist() == [1, 4, 5]
    rows, left, places = 300, list(range(300)), GoRandom(5)
    while len(left) > 20:
        left.pop(places.below(len(left)))
    draws = GoRandom(5)
    assert tune_rows([10] * rows, [1] * rows, 200, draws)[0].tolist() == left and draws.used == places.used


def test_tuning_down_keeps_the_order_and_stops_as_soon_as_it_fits() -> None:
    kept, clones = tune_rows([1000] * 10, [1] * 10, 6_500, GoRandom(3))
    assert len(kept) == 6 and kept.tolist() == sorted(kept.tolist()) and not len(clones)
    others = {tuple(tune_rows([1000] * 10, [1] * 10, 6_500, GoRandom(i))[0].tolist()) for i in range(5)}
    assert len(others) > 1


def test_equal_changes_nothing() -> None:
    kept, clones = tune_rows([500, 500], [1, 1], 1_000, GoRandom(0))
    assert kept.tolist() == [0, 1] and not len(clones)


@given(
    st.lists(st.sampled_from([(0, 0), (1, 10), (1, 500), (1, 1000), (2, 1000), (8, 1000)]), min_size=1, max_size=30),
    st.floats(1, 60_000),
    st.integers(0, 99),
)
@settings(max_examples=scenarios_per_run(150), deadline=None)
def test_the_sum_ends_next_to_the_target(requests: list[tuple[int, int]], target: float, seed: int) -> None:
    count, milli = (np.array(column, np.int64) for column in zip(*requests, strict=True))
    demand = count * milli
    if not demand.sum():
        return
    kept, clones = tune_rows(milli, count, target, GoRandom(seed))
    total = demand[kept].sum() + demand[clones].sum()
    if demand.sum() > target:
        assert total <= target and not len(clones) and (np.diff(kept) > 0).all()
    elif demand.sum() < target:
        assert len(kept) == len(requests)
        # It stopped at a candidate of at most 1,000 milli per device; the last clone may have brought 7 devices extra.
        assert target - 1000 < total <= target + 7000
    else:
        assert total == target


def test_ordered_is_by_name_as_text_and_drops_times() -> None:
    result = made(["pod-9", "pod-10", "pod-2", "pod-1"]).ordered()
    assert pods(result)["native_id"] == ["pod-1", "pod-10", "pod-2", "pod-9"]
    assert pods(result)["submit_s"] == [0, 1, 2, 3] and pods(result)["pod_id"] == [3, 1, 2, 0]
    assert "duration_s" not in result.columns and "orig_end_s" not in result.columns
    assert pods(made().ordered())["cpu_milli"] == [1000, 2000, 3000, 4000]


def test_shuffled_depends_on_seed_and_names_but_not_on_the_order_before() -> None:
    names = [f"pod-{i:04d}" for i in range(4)]
    first = pods(made(names).shuffled(1))["native_id"]
    assert first == pods(made(names).shuffled(7).shuffled(1))["native_id"]
    assert sorted(first) == names
    assert len({tuple(pods(made(names).shuffled(i))["native_id"]) for i in range(12)}) > 4


def test_tuned_up_appends_named_clones() -> None:
    before = made(["d", "c", "b", "a"]).shuffled(2)
    after = before.tune(3.0, 10_000, seed=5)
    names = pods(after)["native_id"]
    assert names[:4] == pods(before)["native_id"]
    assert all(name.endswith(f"-tuned-{k}") and name[0] in "abcd" for k, name in enumerate(names[4:]))
    clones = list(range(4, len(names)))
    assert pods(after)["pod_id"] == pods(before)["pod_id"] + clones and after.rows == len(names)
    assert after.checksum() == before.tune(3.0, 10_000, seed=5).checksum()
    assert after.checksum() != before.tune(3.0, 10_000, seed=6).checksum()


def test_draws_follow_those_of_the_same_seed() -> None:
    before = made(["d", "c", "b", "a"]).shuffled(5)
    assert before.metadata[DRAWN] == "5:4"
    after = before.tune(3.0, 10_000, seed=5)
    assert pods(after) != pods(Workload.from_arrow(before.table()).tune(3.0, 10_000, seed=5))
    assert pods(before.tune(3.0, 10_000, seed=6)) == pods(Workload.from_arrow(before.table()).tune(3.0, 10_000, seed=6))
    assert (
        after.metadata[DRAWN] == f"5:{4 + len(after.table()) - 4 + 1}"
        and before.tune(0, 1, seed=5).metadata[DRAWN] == "5:4"
    )
    assert after.inflated(1.0, Cluster.mix(g2=1)).metadata[DRAWN] == after.metadata[DRAWN]
    assert DRAWN not in after.ordered().metadata


@pytest.mark.parametrize("noted", ["5", "5:", "5:-1", "five:5", f"5:{10**9}", "5:4 "])
def test_metadata_that_no_draws_wrote_is_refused(noted: str, tmp_path: Path) -> None:
    pq.write_table(made().table().replace_schema_metadata({DRAWN: noted}), tmp_path / "pods.parquet")
    with pytest.raises(InputError, match=f"workload: {DRAWN}: found '{noted}', expected the seed of its draws"):
        Workload.scan(tmp_path / "pods.parquet").tune(1.0, 10_000)


def test_draws_follow_those_of_pods_in_a_file(tmp_path: Path) -> None:
    before = made(["d", "c", "b", "a"]).shuffled(5)
    before.write(tmp_path / "pods.parquet")
    again = Workload.scan(tmp_path / "pods.parquet").tune(3.0, 10_000, seed=5)
    assert again.checksum() == before.tune(3.0, 10_000, seed=5).checksum()


def test_clones_of_nameless_pods_are_named_after_the_id() -> None:
    names = pods(made().tune(2.0, 10_000))["native_id"]
    assert names[:4] == ["0", "1", "2", "3"] and names[4].endswith("-tuned-0")


def test_no_ratio_keeps_everything_and_nonsense_is_refused() -> None:
    assert pods(made().tune(0, 10_000))["cpu_milli"] == [1000, 2000, 3000, 4000]
    with pytest.raises(ScenarioError, match="finite"):
        made().tune(float("nan"), 10_000)
    with pytest.raises(ScenarioError, match="0 or more"):
        made().tune(-1, 10_000)
    with pytest.raises(ScenarioError, match="at most 50,000,000 pods or jobs in memory"):
        made().tune(1e300, 10_000)
    with pytest.raises(ScenarioError, match="at most 50,000,000 pods or jobs in memory"):
        made().inflated(1e9, Cluster.mix(g2=1))
    cpu_only = pa.table({name: [0] for name in REQUIRED})
    with pytest.raises(ScenarioError, match="no pod that asks for a GPU"):
        Workload.from_arrow(cpu_only).tune(1.0, 1000)
    with pytest.raises(ScenarioError, match="1 or more"):
        made().inflated(0.5, Cluster.mix(g2=1))


def test_inflated_adds_clones_within_the_capacity() -> None:
    roomy = made().inflated(2.0, Cluster.mix(g2=100), seed=1)
    assert [name.split("-", 1)[1] for name in pods(roomy)["native_id"][4:]] == [f"clone-{k}" for k in range(4)]
    assert made().inflated(1.3, Cluster.mix(g2=100)).rows == 6  # ceil(4 x 1.3) = 6
    tight = Cluster.uniform(nodes=1, cpu_milli=10_000, memory_mib=1)
    assert made().inflated(2.0, tight).rows == 4
    assert made().inflated(1.0, tight).rows == 4


@pytest.mark.parametrize("rows", [1, 2, 5, 100, 3000, 70_000])
def test_rows_that_go_are_those_that_leave_a_list(rows: int) -> None:
    for seed in range(8 if rows < 70_000 else 1):
        drawn = random.Random(seed)
        demand = [drawn.choice([0, 100, 1000, 8000]) for _ in range(rows)]
        for part in (0.0, 0.3, 0.8, 1.0):
            draws, single, total, target = GoRandom(seed), GoRandom(seed), sum(demand), part * sum(demand)
            left = list(range(rows))
            while left and total > target:
                total -= demand[left.pop(single.below(len(left)))]
            stays = load_tuning._thinned(np.array(demand), sum(demand), target, draws)
            assert stays.tolist() == left and draws.used == single.used
