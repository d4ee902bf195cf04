"""Pods of a run that are moved and moved back."""

from __future__ import annotations

import pytest

from fastsim.decisions.live_cluster import rows_by_arrival
from fastsim.decisions.what_if.relocation import Relocation
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.engines.pods import prepared
from fastsim.workload import Workload
from fastsim.workload.importers.kubernetes import pods_of_rows
from tests.objects import node
from tests.unit.decisions.what_if.test_consolidation import T4, runs, state_of


@pytest.mark.parametrize("more", [{}, {"nodeSelector": {"nvidia.com/gpu.product": "Tesla-T4"}}])
def test_pods_move_to_open_nodes_and_back(more: dict[str, object]) -> None:
    nodes = [node(f"n{n}", T4, amounts={"nvidia.com/gpu": "2"}) for n in range(3)]
    pods = [runs(name, "n0", {"cpu": 4, "nvidia.com/gpu": "1"}, **more) for name in "ab"]
    state = state_of([*nodes, *pods])
    rows = state.running()
    free = [{**row, "bound_node": None, "bound_gpus": None} for row in rows]
    workload = Workload.of(pods_of_rows(state, rows_by_arrival(rows, free)))
    room = Relocation(prepared(Scenario(cluster=state.nodes, workload=workload, policy="best_fit")))
    before, power = list(room.place), room.power_mw().tolist()
    room.close([0, 1])
    room.take([1, 0])
    assert room.place == [None, None] and room.choose([0, 1])
    assert [place and place.node for place in room.place] == [2, 2]
    room.take([0, 1])
    room.close([2])
    assert not room.choose([0, 1]) and room.place == [None, None]
    room.open(range(3))
    assert room.put([(pod, place) for pod, place in enumerate(before) if place is not None])
    assert room.place == before == room.origin and room.power_mw().tolist() == power
    held = {pod: (slot, node, gpus) for slot, pod, _, node, gpus, _ in room.work.running()}
    assert sorted(one[1:] for one in held.values()) == sorted(tuple(place) for place in before if place is not None)
