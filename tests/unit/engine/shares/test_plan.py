"""The rounds engine's sockets: settings and views say what they promise."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastsim.cluster.cluster import Cluster
from fastsim.engine.rounds.outcome import GANG
from fastsim.engine.shares.plan import ALONE, Allocation, RoundView, setting_of, view_of
from fastsim.performance.oracle import Oracle
from tests.views import setting

ORACLE = Oracle(
    (("w", 1), ("u", 1)), ("T4", "P100", "G3"), np.array([[1.0, 2, 3], [4, 5, 9]]),
    np.arange(12, dtype=float).reshape(2, 2, 3),
)  # fmt: skip
WHERE = setting((2, 1), [[1.0, 2.0]])


def view() -> RoundView:
    nodes: list[tuple[int, dict[str, Any]]] = [
        (2, {"gpu_model": "T4", "num_gpu": 2}), (1, {"gpu_model": "P100", "num_gpu": 3}), (1, {"num_gpu": 0})
    ]  # fmt: skip
    shape = {"cpu_milli": 1000, "memory_mib": 1024}
    cluster = Cluster.mix([(count, {"name": f"n{i}", **shape, **node}) for i, (count, node) in enumerate(nodes)])
    ints, floats = np.array([0, 1]), np.array([1.0, 1.0])
    setting = setting_of(cluster, ORACLE, seed=3)
    return RoundView(setting, 0.0, ints + 7, ints, ints * 0 + 1, floats, floats, floats, floats, np.zeros(2))


def test_a_setting_has_the_clusters_models_by_name() -> None:
    setting = view().setting
    assert setting.gpu_models == ("P100", "T4")
    assert setting.gpus__g.tolist() == [3, 4]
    assert setting.oracle.alone__kg.tolist() == [[2, 1], [5, 4]]
    assert setting.reference__k.tolist() == [3, 9]  # of G3, which the cluster does not have


def test_a_view_gives_rates_alone_and_shared() -> None:
    seen = view()
    assert len(seen) == 2
    assert seen.rate__jg.tolist() == [[2, 1], [5, 4]]
    one, two = seen.pair_rates(np.array([0]), np.array([1]))
    assert one.tolist() == [[4, 3]]
    assert two.tolist() == [[7, 6]]


def test_singles_are_clipped_to_shares() -> None:
    allocation = Allocation.of_singles(np.array([7, 8]), np.array([[1.0 + 1e-9], [-1e-12]]))
    assert allocation.share__rg.tolist() == [[1.0], [0.0]]
    assert allocation.second.tolist() == [ALONE, ALONE]


def rows() -> Any:
    made = np.zeros(3, GANG)
    made["id"], made["total"], made["run"], made["tenant"] = [4, 5, 9], 10, [0, 3, 10], [1, -1, 0]
    return made


def test_a_view_does_not_change_with_the_loop() -> None:
    records = rows()
    price = np.array([1.0, 2.0])
    seen = view_of(records, WHERE, 7.0, price, ["red", "blue"])
    records["id"] = price[:] = 0
    assert seen.job_id.tolist() == [4, 5, 9]
    assert seen.steps_left.tolist() == [10, 7, 0]
    assert seen.price__g.tolist() == [1, 2]
    assert seen.tenant == ("blue", "", "red")
    assert view_of(records, WHERE, 7.0, price, ()).tenant == ()
