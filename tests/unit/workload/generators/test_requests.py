"""Requests from a small table: chances, means, tails within their bounds, and sets of models that can be served."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fastsim.cluster.node_types import openb_types
from fastsim.foundation.draws.random_streams import Stream
from fastsim.workload import Workload
from fastsim.workload import schema as s
from fastsim.workload.generators.requests import (
    CLASSES,
    FREQUENT,
    SET,
    ModelSets,
    Requests,
    RequestTable,
    constraint_model,
    request_class,
    request_model,
)

TAIL = {
    "p": 0.5, "ln_cpu_milli": [9.0, 0.5], "ln_mib_per_milli": [1.0, 0.3], "correlation": 0.4,
    "cpu_milli": [4000, 16_000], "devices": [[2, 1000, 0.5], [4, 1000, 0.25]], "qos": [0.0, 1.0],
}  # fmt: skip
TABLE: dict[str, Any] = {
    "qos": ["LS", "BE"],
    "frequent": [[1000, 10, 1, 500, 0.3, 0.5, 0.5], [2000, 20, 0, 0, 0.2, 1.0, 0.0]],
    "tail": {"multi": TAIL},
}
Pod = tuple[int, int, int, int, str]


def table(**change: Any) -> RequestTable:
    return RequestTable(TABLE | change)


def drawn(count: int, **change: Any) -> dict[str, Any]:
    return Requests(table(**change), seed=1).take(np.zeros(count, bool))


def test_every_cell_is_a_request_with_a_service_class() -> None:
    requests = table()
    assert requests.chance == pytest.approx([0.15, 0.15, 0.2, 0.0, 0.0, 0.5], rel=1e-15)  # rounding
    assert requests.gpus == pytest.approx([0.5, 0.5, 0, 0, 8 / 3, 8 / 3], rel=1e-15)  # (2 x 0.5 + 4 x 0.25) / 0.75


def test_means_by_hand() -> None:
    requests = table()
    assert requests.mean_gpus() == pytest.approx(0.3 * 0.5 + 0.5 * 8 / 3, rel=1e-15)  # rounding, as below
    assert requests.mean_seconds([10.0, 100.0]) == pytest.approx(0.35 * 10 + 0.65 * 100, rel=1e-15)
    assert requests.mean_gpu_seconds([10.0, 100.0]) == pytest.approx(0.075 * 10 + (0.075 + 4 / 3) * 100, rel=1e-15)
    # Among running pods a class counts by how long it lasts.
    resident = requests.resident_chance([10.0, 100.0])
    assert resident == pytest.approx(np.array([1.5, 15, 2, 0, 0, 50]) / 68.5, rel=1e-15)


def test_shares_that_miss_one_by_rounding_are_scaled() -> None:
    scaled = table(frequent=[[*row[:4], row[4] * 1.01, *row[5:]] for row in TABLE["frequent"]])
    assert scaled.chance.sum() == pytest.approx(1, rel=1e-15)  # rounding
    assert scaled.chance[0] == pytest.approx(0.1515 / 1.005, rel=1e-15)


def test_frequent_requests_are_drawn_as_they_are_and_never_with_an_impossible_class() -> None:
    columns = drawn(4000)
    fixed = columns[s.NUM_GPU] < 2
    rows = {tuple(int(columns[name][i]) for name in (*FREQUENT, s.QOS)) for i in np.flatnonzero(fixed)}
    assert rows == {(1000, 10, 1, 500, 0), (1000, 10, 1, 500, 1), (2000, 20, 0, 0, 0)}
    assert (columns[s.QOS][~fixed] == 1).all()
    assert (columns[SET] == -1).all()


def test_a_flag_repeats_the_request_before_even_across_pieces() -> None:
    plain, repeats = drawn(6), np.array([True, False, True, True, False, True])  # the first has nothing to repeat
    whole = Requests(table(), seed=1).take(repeats)
    pieces = Requests(table(), seed=1)
    cut = [pieces.take(repeats[i:j]) for i, j in ((0, 0), (0, 1), (1, 3), (3, 3), (3, 6))]
    for name, column in whole.items():
        assert column.tolist() == plain[name][[0, 1, 1, 1, 4, 4]].tolist()
        assert np.concatenate([piece[name] for piece in cut]).tolist() == column.tolist()


def test_a_tail_keeps_to_its_bounds_its_devices_and_to_what_a_node_holds() -> None:
    columns = drawn(4000)
    tail = columns[s.NUM_GPU] >= 2
    cpu = columns[s.CPU_MILLI][tail]
    assert cpu.min() == 4000 and cpu.max() == 16_000 and (cpu % 100 == 0).all()
    assert set(columns[s.NUM_GPU][tail].tolist()) == {2, 4} and set(columns[s.GPU_MILLI][tail].tolist()) == {1000}
    # Weights 0.5 and 0.25: a third has four devices; sd of the share of 2,000 is 0.0105, so 0.05 is nearly five.
    assert (columns[s.NUM_GPU][tail] == 4).mean() == pytest.approx(1 / 3, abs=0.05)


def test_what_no_node_could_hold_is_cut() -> None:
    huge = TAIL | {"ln_cpu_milli": [20.0, 0.1], "ln_mib_per_milli": [9.0, 0.1], "cpu_milli": [4000, 10**8],
                   "devices": [[8, 1000, 1.0]]}  # fmt: skip
    columns = drawn(50, frequent=[[1000, 10, 1, 500, 0.0, 0.5, 0.5]], tail={"multi": huge})
    eight = [kind for kind in openb_types().values() if kind.num_gpu >= 8]
    most = max(kind.cpu_milli for kind in eight)
    assert set(columns[s.CPU_MILLI].tolist()) == {most}
    assert set(columns[s.MEMORY_MIB].tolist()) == {max(k.memory_mib for k in eight if k.cpu_milli == most)}


SETS = {
    "share": 0.5, "share_by_class": {"share": 0.5, "one": 1.0, "multi": 1.0}, "sets": [[["T4"], 0.5], [["G2"], 0.5]],
}  # fmt: skip


def pods(count: int, num_gpu: int, gpu_milli: int, cpu_milli: int = 1000) -> dict[str, Any]:
    cells = {s.CPU_MILLI: cpu_milli, s.MEMORY_MIB: 1, s.NUM_GPU: num_gpu, s.GPU_MILLI: gpu_milli}
    return {name: np.full(count, value) for name, value in cells.items()}


def test_only_sets_that_some_node_could_serve_are_named() -> None:
    sets = ModelSets(SETS, seed=1, share=0.5)
    assert set(sets.take(pods(200, 8, 1000)).tolist()) == {1}  # no node has eight T4
    assert set(sets.take(pods(200, 2, 1000)).tolist()) == {0, 1}
    assert set(sets.take(pods(200, 2, 1000, cpu_milli=10**9)).tolist()) == {-1}  # no node at all
    assert set(sets.take(pods(200, 0, 0)).tolist()) == {-1}


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0.0), (0.25, 0.25), (0.5, 0.5), (1.0, 1.0)])
def test_the_share_asked_for_scales_the_recorded_chances(share: float, expected: float) -> None:
    named = ModelSets(SETS, seed=2, share=share).take(pods(2000, 1, 500)) >= 0
    flags = Stream(2, "models.has").uniform(2000) < expected
    assert named.tolist() == flags.tolist()


def test_no_chance_grows_beyond_certainty() -> None:
    assert (ModelSets(SETS, seed=2, share=1.0).take(pods(100, 1, 1000)) >= 0).all()


def test_chosen_sets_become_lists_and_none_becomes_null() -> None:
    sets = ModelSets(SETS, seed=1, share=0.5)
    assert sets.column(np.array([1, -1, 0])).to_pylist() == [["G2"], None, ["T4"]]
    assert sets.column(np.array([-1])).to_pylist() == [None]


def workload(pods: list[Pod], models: list[list[str] | None] | None = None) -> Workload:
    columns: dict[str, Any] = {
        name: [pod[k] for pod in pods]
        for k, name in enumerate(("cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "qos"))
    }
    count = len(pods)
    table = {"pod_id": list(range(count)), "submit_s": [0.0] * count, **columns}
    return Workload.from_arrow(pa.table(table | ({"gpu_models": models} if models else {})))


COMMON: list[Pod] = [(1000, 10, 1, 500, "LS")] * 3 + [(1000, 10, 1, 500, "BE")] + [(500, 5, 0, 0, "LS")] * 2


def test_classes_split_at_one_whole_device() -> None:
    count, milli = np.array([0, 1, 1, 1, 2, 8]), np.array([0, 1, 999, 1000, 1000, 1000])
    assert [CLASSES[k] for k in request_class(count, milli)] == ["cpu", "share", "share", "one", "multi", "multi"]


def test_frequent_requests_have_their_share_and_mix() -> None:
    model = request_model(workload(COMMON))
    assert model["qos"] == ["LS", "BE"]  # the commonest first
    assert model["frequent"] == [[1000, 10, 1, 500, 0.6667, 0.75, 0.25], [500, 5, 0, 0, 0.3333, 1.0, 0.0]]
    assert model["tail"] == {}


def test_equally_common_requests_stand_in_order_of_size() -> None:
    pods: list[Pod] = [(2000, 1, 0, 0, "LS"), (1000, 2, 0, 0, "LS"), (1000, 1, 0, 0, "LS")]
    frequent = request_model(workload(pods), tuples=2)["frequent"]
    assert [row[:2] for row in frequent] == [[1000, 1], [1000, 2]]


def test_the_rest_is_fitted_class_by_class() -> None:
    rare: list[Pod] = [(1000, 1000, 2, 1000, "BE"), (4000, 16_000, 8, 1000, "LS"), (2000, 2000, 0, 0, "LS")]
    model = request_model(workload(COMMON + rare), tuples=2)
    assert set(model["tail"]) == {"cpu", "multi"}
    multi = model["tail"]["multi"]
    assert (multi["p"], multi["cpu_milli"], multi["qos"]) == (round(2 / 9, 4), [1000, 4000], [0.5, 0.5])
    assert multi["devices"] == [[2, 1000, 0.5], [8, 1000, 0.5]]
    # ln 1000 and ln 4000: their mean and half their distance; ln(memory/cpu) is 0 and ln 4.
    assert multi["ln_cpu_milli"] == [round(math.log(2000), 4), round(math.log(2), 4)]
    assert multi["ln_mib_per_milli"] == [round(math.log(2), 4), round(math.log(2), 4)]
    assert multi["correlation"] == 1.0


def test_a_class_of_one_pod_varies_with_nothing() -> None:
    rare: list[Pod] = [(2000, 2000, 0, 0, "LS")]
    tail = request_model(workload(COMMON + rare), tuples=2)["tail"]["cpu"]
    assert (tail["ln_cpu_milli"], tail["correlation"]) == ([round(math.log(2000), 4), 0.0], 0.0)


def test_pods_that_ask_for_nothing_are_left_out_of_the_logarithms() -> None:
    rare: list[Pod] = [(0, 100, 0, 0, "LS"), (2000, 0, 0, 0, "LS"), (4000, 8000, 0, 0, "LS")]
    tail = request_model(workload(COMMON + rare), tuples=2)["tail"]["cpu"]
    assert tail["ln_cpu_milli"] == [round(math.log(4000), 4), 0.0] and tail["cpu_milli"] == [0, 4000]
    assert tail["p"] == round(3 / 9, 4)


def test_model_sets_forget_order_and_repeats() -> None:
    pods: list[Pod] = [(1, 1, 1, 500, "LS")] * 4 + [(1, 1, 1, 1000, "LS")] * 2 + [(1, 1, 0, 0, "LS")]
    models = [["T4", "A10"], ["A10", "T4", "T4"], ["T4"], None, None, None, ["G2"]]
    model = constraint_model(workload(pods, models))
    assert model["share"] == 0.5
    assert model["share_by_class"] == {"share": 0.75, "one": 0.0, "multi": 0.0}  # of no pods, none name any
    assert model["sets"] == [[["A10", "T4"], 0.5], [["G2"], 0.25], [["T4"], 0.25]]


@pytest.mark.parametrize("tuples", [1, 2, 40])
def test_shares_of_frequent_and_rest_are_everything(tuples: int) -> None:
    rare: list[Pod] = [(1000, 1000, 2, 1000, "BE"), (4000, 16_000, 8, 1000, "LS"), (2000, 2000, 0, 0, "LS")]
    model = request_model(workload(COMMON + rare), tuples=tuples)
    shares = [row[4] for row in model["frequent"]] + [tail["p"] for tail in model["tail"].values()]
    assert sum(shares) == pytest.approx(1, abs=5e-5 * len(shares))  # each is rounded to 4 decimals
