"""Servers and needs as tables: their order, their units, and what each mechanism has to know."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastsim as fs
from fastsim.engine.orders.plan import OrderPlan
from fastsim.engine.orders.server_demands import needs_of, servers_of
from fastsim.engine.rounds.options import Setting
from fastsim.engine.shares.plan import setting_of
from fastsim.errors import InputError, PolicyError
from fastsim.performance.oracle import Oracle
from fastsim.performance.sensitivity import Sensitivity

EQUAL = fs.Cluster.from_synergy("2")


def node(name: str, gpu_model: str, num_gpu: int, cpu_milli: int, memory_mib: int) -> tuple[int, dict[str, Any]]:
    columns = {"gpu_model": gpu_model, "num_gpu": num_gpu, "cpu_milli": cpu_milli, "memory_mib": memory_mib}
    return 1, {"name": name, **columns}


MIXED = fs.Cluster.mix(
    [node("x", "v100", 2, 8000, 1024), node("y", "k80", 4, 4000, 2048), node("z", "v100", 1, 2000, 512)]
)


def setting(cluster: fs.Cluster, oracle: Oracle) -> Setting:
    return setting_of(cluster, oracle)


def test_servers_stand_by_model_and_then_by_position() -> None:
    num_gpu, cap, base = servers_of(MIXED, ("k80", "v100"))
    assert (num_gpu, base) == ((4, 2, 1), (0, 1, 3))
    assert cap.tolist() == [[4000, 2048, 0], [8000, 1024, 0], [2000, 512, 0]]


def test_storage_is_an_extra_resource_of_the_node() -> None:
    assert servers_of(EQUAL, ("v100",))[1].tolist() == [[24_000, 512_000, 500]] * 2


def test_profiles_become_needs_of_gangs() -> None:
    model = Sensitivity.default()
    needs = needs_of(EQUAL, setting(EQUAL, model.oracle(("v100",))), model, None, ())
    k = [*model.oracle(("v100",)).kinds].index(("alexnet", 2))
    assert needs.need__kr[k].tolist() == [24_000, 256_000, 125]
    assert (needs.speedup__k[k], needs.step_s__kg[k].tolist(), needs.size__k[k]) == (2.94, [0.6], 2)
    assert needs.gpus__g == (16,) and needs.known == "speedups"


def test_profiles_need_equal_servers() -> None:
    model = Sensitivity.default()
    with pytest.raises(InputError, match="shares are those of equal servers"):
        needs_of(MIXED, setting(MIXED, model.oracle(("k80", "v100"))), model, None, ())


def test_a_kind_that_cannot_be_attached_is_told_when_it_comes() -> None:
    cluster, model = fs.Cluster.from_synergy("2", cpus=48), Sensitivity.default(6)
    needs = needs_of(cluster, setting(cluster, model.oracle(("v100",))), model, None, {"clip_by_cpu"})
    kinds = model.oracle(("v100",)).kinds
    assert {kinds[k] for k, _ in needs.refused} >= {("m5", 4), ("m5", 8)}
    assert np.isnan(needs.need__kr[needs.refused[0][0]]).all()


def test_pods_need_what_they_ask_for() -> None:
    oracle = Oracle((("pod", 1),), ("k80", "v100"), np.ones((1, 2)), np.zeros((1, 1, 2)))
    needs = needs_of(MIXED, setting(MIXED, oracle), None, [(1, 500, 64)], ())
    assert needs.need__kr.tolist() == [[500, 64, 0]] and needs.step_s__kg.tolist() == [[1, 1]]
    assert needs.known == "requests"


@pytest.mark.parametrize("mechanism", ["fair", "greedy", "tune", "opt"])
@pytest.mark.parametrize(
    ("known", "allowed"),
    [("gpus", {"fair"}), ("requests", {"fair", "greedy"}), ("speedups", {"fair", "greedy", "tune", "opt"})],
)
def test_a_mechanism_says_what_it_has_to_know(known: str, mechanism: str, allowed: set[str]) -> None:
    model = Sensitivity.default()
    where = setting(EQUAL, model.oracle(("v100",)))
    requests = [(1, 1, 1)] * len(where.oracle.kinds) if known == "requests" else None
    needs = needs_of(EQUAL, where, model if known == "speedups" else None, requests, ())
    assert needs.known == known
    if mechanism in allowed:
        needs.check(OrderPlan(("arrival",), mechanism))
        return
    with pytest.raises(
        PolicyError, match=rf"mechanism {mechanism}: found .*, expected .* model|mechanism {mechanism}: "
    ):
        needs.check(OrderPlan(("arrival",), mechanism))
