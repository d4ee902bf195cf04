"""Power, fragmentation and allocation of rounds: tables by hand, running sums against a recount of placements."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings

import fastsim as fs
from fastsim.engine.result import Result
from fastsim.engine.rounds.node_metrics import cluster_metrics_of, node_kinds, node_of_gpu, quantities
from fastsim.engine.tables import FRAG_COLUMNS, TOTALS
from fastsim.workload.typical_pods import TypicalPods
from tests.reference.online.frag import Fragmentation, cpu_power, gpu_power
from tests.reference.online.nodes import WHOLE, empty_node
from tests.reference.online.tables import shapes
from tests.strategies import clusters, scenarios_per_run, typicals, workloads

CLUSTER = fs.Cluster.from_gavel("6:4:4", "2:1:4")
JOBS = fs.Workload.synth("gavel", jobs=40, rate_per_hour=6.0, seed=3, multi_gpu=True, gpu_mix={1: 0.7, 2: 0.3})


def test_gpus_are_numbered_model_by_model_and_node_by_node() -> None:
    models = CLUSTER.nodes["gpu_model"].to_pylist()
    found = node_of_gpu(CLUSTER, ("k80", "p100", "v100"))
    assert [models[node] for node in found] == ["k80"] * 4 + ["p100"] * 4 + ["v100"] * 6
    assert found.tolist() == [0, 0, 0, 0, 1, 2, 3, 4, 5, 5, 6, 6, 7, 7]


def test_a_nodes_part_of_each_total() -> None:
    typical = TypicalPods.of(JOBS)
    kind = node_kinds(CLUSTER)[5]  # two v100
    row = quantities(kind, 1, typical)
    assert tuple(row) == TOTALS
    assert (row["nodes_used"], row["gpus_of_used_nodes"], row["gpus_used"], row["gpu_alloc"]) == (1, 2, 1, 1000)
    assert row["gpu_mw"] == kind.gpu_idle_mw + kind.gpu_peak_mw
    assert sum(row[name] for name in TOTALS[9:16]) == 1000 * typical.kept


@given(st.data())
@settings(max_examples=scenarios_per_run(60), suppress_health_check=[HealthCheck.too_slow])
def test_classes_and_power_are_those_by_hand(data: st.DataObject) -> None:
    cluster = data.draw(clusters())
    typical = data.draw(typicals(data.draw(workloads(cluster))))
    frag = Fragmentation(typical)
    for kind, shape in zip(node_kinds(cluster), shapes(cluster), strict=True):
        for used in range(shape.num_gpu + 1):
            node = empty_node(shape)._replace(gpu_free=(0,) * used + (WHOLE,) * (shape.num_gpu - used))
            row = quantities(kind, used, typical)
            assert tuple(row[name] for name in FRAG_COLUMNS) == frag.counted(node)
            assert (row["cpu_mw"], row["gpu_mw"]) == (cpu_power(node), gpu_power(node))


def test_the_gauge_needs_every_quantity() -> None:
    from fastsim_ext.rounds.cluster_metrics import ClusterMetrics

    with pytest.raises(ValueError, match="quantities"):
        ClusterMetrics(np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros((1, 2, 3), np.int64), 0.0, True)
    metrics = cluster_metrics_of(CLUSTER, TypicalPods.of(JOBS), ("k80", "p100", "v100"), 0.0, True)
    assert metrics.verify() == 0


@pytest.fixture(scope="module")
def run() -> Result:
    return fs.simulate(CLUSTER, JOBS, "isolated", seed=1)


def test_every_round_counts_what_placements_hold(run: Result) -> None:
    timeline, stays = run.timeline, run.placements
    for row in timeline.sample(25, seed=1).iter_rows(named=True):
        now = stays.filter((pl.col("start_s") <= row["t_s"]) & (pl.col("end_s") > row["t_s"]))
        gpus = now.select("node_id", "gpu_ids").explode("gpu_ids").unique()
        assert row["active_gpus"] == gpus.height == row["gpu_milli_alloc"] / 1000
        assert row["active_nodes"] == gpus["node_id"].n_unique()
        assert row["pods_running"] == now["pod_id"].n_unique()
        assert row["power_w"] == pytest.approx(watts(gpus))


def watts(gpus: pl.DataFrame) -> float:
    """Draw of the cluster with these GPUs at work."""
    used = dict(gpus.group_by("node_id").len().iter_rows())
    total = 0.0
    for node, shape in enumerate(shapes(CLUSTER)):
        busy = used.get(node, 0)
        total += busy * shape.gpu_peak_mw + (shape.num_gpu - busy) * shape.gpu_idle_mw
        total += -(-shape.cpu_milli // 2000 // shape.cpu_cores_per_socket) * shape.cpu_idle_mw
    return total / 1000


def test_means_over_time_are_those_of_the_timeline(run: Result) -> None:
    timeline = run.timeline
    spans = np.diff([*timeline["t_s"], timeline["t_s"][0] + run.summary["makespan_s"][0]])
    spans = spans[:-1]  # the last round has nothing left to do
    mean = (timeline["power_w"].to_numpy()[:-1] * spans).sum() / spans.sum()
    assert run.summary["mean_power_w"][0] == pytest.approx(mean)
    assert run.summary["energy_kwh"][0] == pytest.approx(mean * spans.sum() / 3.6e6)


def test_at_capacity_is_the_first_round_of_the_last_arrivals_within_it(run: Result) -> None:
    came, rounds = pl.col("arrived_gpu_milli"), run.timeline.filter(pl.col("event") == "sample")
    within = rounds.filter((came != came.shift(1, fill_value=0)) & (came <= pl.col("gpu_milli_capacity")))
    (row,) = within.tail(1).to_dicts()
    found = run.summary.row(0, named=True)
    assert found["at_capacity_eopc_w"] == row["power_w"]
    assert found["at_capacity_frag_pct"] == pytest.approx(100 * row["frag_milli"] / row["gpu_milli_capacity"])
    assert found["at_capacity_grar"] == row["gpu_milli_alloc"] / row["arrived_gpu_milli"]


def test_a_thinned_timeline_has_rows_of_the_full_one(run: Result) -> None:
    thin = fs.simulate(CLUSTER, JOBS, "isolated", seed=1, sample_s=3600.0).timeline
    assert 0 < thin.height < run.timeline.height / 5
    same = thin.drop("pod_id").columns  # null in all rows, and nulls do not join
    assert thin.join(run.timeline, on=same, how="semi").height == thin.height
