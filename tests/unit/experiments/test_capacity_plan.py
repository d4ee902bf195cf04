"""Capacity planning: the search by itself, and whole searches against trying every size."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.cluster.cluster import Cluster
from fastsim.errors import InputError, ScenarioError
from fastsim.experiments.assumed_durations import UnknownDurations
from fastsim.experiments.capacity_plan import (
    ENOUGH,
    FOUND,
    MORE,
    NEVER,
    Search,
    enlarged,
    smallest_additions,
    unit_of,
)  # fmt: skip
from fastsim.simulation.simulate import simulate
from fastsim.workload import Workload
from tests.unit.decisions.test_kube_extender import node, pod


def searched(good: Any, most: int) -> Search:
    """A search whose runs are answered by a function."""
    search = Search("x", most)
    for _ in range(100):
        sizes = search.probes()
        if not sizes:
            return search
        assert len(sizes) <= 4 and not set(sizes) & set(search.figures) and max(sizes) <= most
        for size in sizes:
            search.learn(size, good(size), {})
        search.close()
    raise AssertionError("no end")


@given(st.integers(0, 3000), st.integers(1, 2500))
def test_the_least_size_is_found(least: int, most: int) -> None:
    search = searched(lambda size: size >= least, most)
    if least > most:
        assert (search.size, search.end) == (None, MORE)
    else:
        assert (search.size, search.end) == (least, FOUND if least else ENOUGH)
        assert len(search.figures) <= 40


@given(st.sets(st.integers(0, 60)))
def test_what_is_found_suffices_and_one_less_does_not(good: set[int]) -> None:
    search = searched(lambda size: size in good, 64)
    if search.size is not None:
        assert search.size in good and search.size - 1 not in good
    else:
        assert not good & set(search.figures)


def workload(**columns: Any) -> Workload:
    """Pods that request two GPUs each."""
    count = 7
    made = {"pod_id": range(count), "submit_s": [10.0 * i for i in range(count)], "cpu_milli": [1000] * count,
            "memory_mib": [1024] * count, "num_gpu": [2] * count, "gpu_milli": [1000] * count, **columns}  # fmt: skip
    import pyarrow as pa

    return Workload.from_arrow(pa.table({name: list(values) for name, values in made.items()}))


def test_every_pod_fits() -> None:
    cluster = Cluster.mix(t4=1)
    table = smallest_additions({"cluster": cluster, "workload": workload()}, ["t4", "2*t4+g2", "g2"])
    assert table["outcome"].to_list() == [FOUND, FOUND, FOUND]
    assert table["additions"].to_list() == [6, 1, 2] and table["nodes"].to_list() == [6, 3, 2]
    assert table["gpus"].to_list() == [12, 12, 16] and table["pods_unplaced"].to_list() == [0, 0, 0]
    unit = unit_of("t4", cluster)
    for size in range(7):
        result = simulate(enlarged(cluster, unit, size), workload())
        assert bool(result.summary["pods_unplaced"][0]) == (size < 6)


def test_pods_wait_less() -> None:
    base: dict[str, Any] = {"cluster": Cluster.mix(t4=1), "workload": workload(duration_s=[100.0] * 7)}
    waits = [
        simulate(enlarged(Cluster.mix(t4=1), Cluster.mix(t4=1), size), base["workload"], queue="fifo")
        .summary["wait_p95_s"][0]
        for size in range(7)
    ]  # fmt: skip
    for limit in (1e-9, 50.0, 200.0, 1e6):
        table = smallest_additions(base, ["t4"], p95_wait_s=limit)
        assert table["additions"][0] == next(size for size in range(7) if waits[size] < limit)


def test_pods_of_a_cluster_as_it_is_end_if_a_duration_is_assumed(tmp_path: Path) -> None:
    held = {**pod("held", 1), "spec": {**pod("held", 1)["spec"], "nodeName": "n"}, "status": {"phase": "Running"}}
    (tmp_path / "now.json").write_text(json.dumps({"kind": "List", "items": [node("n", 1), held, pod("waits", 1)]}))
    text = f"kubernetes:{tmp_path / 'now.json'}"
    base: dict[str, Any] = {"cluster": text, "workload": text, "queue": "fifo"}
    with pytest.warns(UnknownDurations, match="durations of 2 of 2 pods are unknown"):
        table = smallest_additions(base, ["node:n"], p95_wait_s=1e6)
    assert table["additions"].to_list() == [1]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnknownDurations)
        table = smallest_additions(base, ["node:n"], p95_wait_s=1e6, pod_duration_s=100)
    assert table["outcome"].to_list() == [ENOUGH] and 0 < table["wait_p95_s"][0] <= 100
    with pytest.raises(ScenarioError, match="pod_duration_s: found 0, expected more than 0 s"):
        smallest_additions(base, ["node:n"], pod_duration_s=0)


def test_the_same_on_any_number_of_workers() -> None:
    base = {"cluster": "openb:3", "workload": "synth:openb?pods=300", "queue": "fifo"}
    tables = [smallest_additions(base, ["g2", "t4"], p95_wait_s=900, workers=workers) for workers in (1, 3)]
    assert tables[0].equals(tables[1]) and tables[0]["outcome"].to_list() == [FOUND, FOUND]


def test_what_will_never_do() -> None:
    additions = smallest_additions({"cluster": "mix?t4=1", "workload": workload(num_gpu=[3] * 7)}, ["t4", "g2"])
    assert additions["outcome"].to_list() == [NEVER, FOUND] and "larger than any node" in additions["why"][0]
    few = smallest_additions({"cluster": "mix?t4=1", "workload": workload()}, ["t4"], most=3)
    assert few["outcome"][0] == MORE and few["why"][0] == "3 pods find no place with 3 of them"
    enough = smallest_additions({"cluster": "mix?g2=9", "workload": workload()}, ["t4"])
    assert enough.select("outcome", "additions", "nodes").row(0) == (ENOUGH, 0, 0)


def test_alternatives_have_prices_energy_and_emissions(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("node_type,reserved,spot\ng2,7.5,4\nt4,1,\n")
    base = {"cluster": "mix?t4=1", "workload": workload(duration_s=[36_000.0] * 7), "carbon": "500?pue=1.2"}
    table = smallest_additions(base, ["t4", "g2"], node_prices=str(path), objective="cost")
    assert table.select("add", "tariff", "nodes", "price_per_h").rows() == [
        ("t4", "reserved", 6, 6.0), ("g2", "spot", 2, 8.0), ("g2", "reserved", 2, 15.0), ("t4", "spot", 6, None),
    ]  # fmt: skip
    first = table.row(0, named=True)
    assert first["price"] == pytest.approx(6.0 * first["makespan_s"] / 3600)
    assert first["co2_kg"] == pytest.approx(first["energy_kwh"] * 1.2 * 0.5) and first["energy_kwh"] > 0
    by_nodes = smallest_additions(base, ["t4", "g2"], objective="nodes")
    assert by_nodes["add"].to_list() == ["g2", "t4"] and by_nodes["tariff"].to_list() == [None, None]
    energies = smallest_additions(base, ["t4", "g2"], objective="energy")["energy_kwh"].to_list()
    assert energies == sorted(energies)


def test_an_intensity_that_changes_is_weighed(tmp_path: Path) -> None:
    path = tmp_path / "grid.csv"
    path.write_text("since_s,g_per_kwh\n0,100\n30,400\n")
    base: dict[str, Any] = {
        "cluster": "mix?t4=1", "workload": workload(duration_s=[100.0] * 7), "carbon": str(path),
    }  # fmt: skip
    row = smallest_additions(base, ["t4"]).row(0, named=True)
    full = simulate(enlarged(Cluster.mix(t4=1), Cluster.mix(t4=1), 6), base["workload"], carbon=str(path))
    assert row["co2_kg"] == full.summary["co2_kg"].item() > 0


def test_pods_that_need_the_last_addition_are_named() -> None:
    table = smallest_additions({"cluster": "mix?t4=1", "workload": workload()}, ["t4", "g2"])
    assert table["blocking"].to_list() == ["6", "5, 6"]  # a t4 hosts one pod, a g2 four
    few = smallest_additions({"cluster": "mix?t4=1", "workload": workload()}, ["t4"], most=3)
    assert few["blocking"][0] == "4, 5, 6"
    waits = {"cluster": Cluster.mix(t4=1), "workload": workload(duration_s=[100.0] * 7)}
    assert smallest_additions(waits, ["t4"], p95_wait_s=50.0)["blocking"][0]
    enough = smallest_additions({"cluster": "mix?g2=9", "workload": workload()}, ["t4"])
    assert enough["blocking"].to_list() == [""]


def test_nodes_of_a_kubernetes_cluster(tmp_path: Path) -> None:
    """A copy has the labels and taints of the constraints; an object in a file is a kind of node, too."""
    tainted = node("n1", zone="a")
    tainted["spec"]["taints"] = [{"key": "team", "value": "a", "effect": "NoSchedule"}]
    ours: dict[str, Any] = {"nodeSelector": {"zone": "a"}, "tolerations": [{"operator": "Exists"}]}
    objects = [tainted, *(pod(f"p{i}", 2, **ours) for i in range(4))]
    (tmp_path / "all.json").write_text(json.dumps({"kind": "List", "items": objects}))
    (tmp_path / "node.json").write_text(json.dumps(node("big", gpus=8, zone="a")))
    text = f"kubernetes:{tmp_path / 'all.json'}"
    table = smallest_additions({"cluster": text, "workload": text}, ["node:n1", str(tmp_path / "node.json")])
    assert table["additions"].to_list() == [3, 1]
    for name in ("node", "node.json", "big", "T4"):
        prices = {name: 32.0, "n1": 4.0}
        table = smallest_additions(
            {"cluster": text, "workload": text}, [str(tmp_path / "node.json")], node_prices=prices
        )
        assert table["price_per_h"].to_list() == [32.0]


def test_names_of_added_nodes() -> None:
    cluster = enlarged(Cluster.mix(t4=2), Cluster.mix(g2=1, t4=1), 2)
    assert cluster.nodes["name"].to_pylist()[2:] == [
        "added-0-g2-0000", "added-0-t4-0000", "added-1-g2-0000", "added-1-t4-0000",
    ]  # fmt: skip
    assert cluster.nodes["node_id"].to_pylist() == list(range(6))


@pytest.mark.parametrize(
    ("kinds", "options", "found"),
    [
        (["g22"], {}, "g22: found an unknown node type"),
        (["g2 + "], {}, "expected a node type such as g2"),
        (["node:n9"], {}, "no such node in the cluster"),
        ([], {}, "0 kinds of nodes"),
        (["g2"], {"most": 0}, "at most 0"),
        (["g2"], {"p95_wait_s": 0.0}, "plan: p95_wait_s"),
        (["g2"], {"objective": "beauty"}, "objective: found 'beauty'"),
        (["g2"], {"objective": "cost"}, "without prices of nodes"),
        (["g2"], {"node_prices": "t4=1"}, "node prices: found none of 'g2'"),
    ],
)
def test_what_is_refused(kinds: list[str], options: dict[str, Any], found: str) -> None:
    with pytest.raises((ScenarioError, InputError), match=found):
        smallest_additions({"cluster": "mix?t4=1", "workload": workload()}, kinds, **options)


def test_a_copy_of_any_node() -> None:
    cluster = Cluster.mix(g2=2, t4=2)
    for name in cluster.nodes["name"].to_pylist():
        assert enlarged(cluster, unit_of(f"node:{name}", cluster), 2).nodes["name"].to_pylist()[4:] == [
            f"added-0-{name}", f"added-1-{name}"
        ]  # fmt: skip
