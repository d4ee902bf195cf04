"""Decisions as a table: what a node lacks, how points add up, why the winner won, and when a run cannot be replayed."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.decisions.explain import CHECKS, explain, explained, ranks
from fastsim.engine.tables import REASONS
from fastsim.errors import InputError, ResultError, ScenarioError
from fastsim.scenario.scenario import Scenario
from tests.unit.decisions.test_replay import named, pods
from tests.unit.ext.select.test_scan import mixed
from tests.unit.ext.state.test_node_table import t4

TEXTS: dict[str, Any] = {"cluster": "openb:10?seed=1", "workload": "synth:openb?pods=60&seed=2", "policy": "fgd"}


def table(
    workload: fs.Workload, cluster: fs.Cluster, pod: int, policy: Any = "best_fit", **options: Any
) -> pl.DataFrame:
    """The decision about one pod."""
    return explain(Scenario(cluster, workload, policy, **options), pod)


def column(frame: pl.DataFrame, name: str) -> list[Any]:
    """Values of a column, node by node."""
    return frame[name].to_list()


def test_what_every_node_lacks() -> None:
    workload = pods({"cpu_milli": 9000, "num_gpu": 0, "gpu_milli": 0}, {"cpu_milli": 5000})
    frame = table(workload, mixed(), 11)
    assert column(frame, "failed") == ["no_cpu", None, "no_gpu"]
    assert column(frame, "found") == [4000, None, 0] and column(frame, "needed") == [5000, None, 1]
    assert column(frame, "why") == [
        "4,000 milli-CPU free, needs 5,000", "only feasible node", "0 GPUs have room, needs 1"
    ]  # fmt: skip
    assert column(frame, "rank") == [None, 1, None] and column(frame, "total") == [None, 0, None]
    assert column(frame, "best_fit_raw") == [None, 80, None]  # 3 of 128 CPUs and 3 of 8 GPUs stay free
    assert column(frame, "gpu_ids") == [None, [0], None] and column(frame, "chosen") == [False, True, False]


def test_models_memory_slots_and_absent_nodes_in_words() -> None:
    late = pa.table({"cpu_milli": [1, 9], "memory_mib": [1, 9], "num_gpu": [0, 0], "add_s": [9.0, None]})
    frame = table(pods({"cpu_milli": 1, "num_gpu": 0, "gpu_milli": 0}), fs.Cluster.from_arrow(late), 10)
    assert column(frame, "why") == ["the node is not there", "only feasible node"]
    models = pa.table({"gpu_models": [["A10", "H100", "A10"]]})
    asks = fs.Workload.from_arrow(pods({}).table().append_column("gpu_models", models["gpu_models"]))
    frame = table(asks, mixed(), 10)
    assert column(frame, "why") == ["has T4, needs A10 or H100", "only feasible node", "has no GPU, needs A10 or H100"]
    assert column(frame, "found") == [None] * 3
    cpu = {"num_gpu": 0, "gpu_milli": 0}
    frame = table(pods({**cpu, "cpu_milli": 9000}, {**cpu, "memory_mib": 20}), mixed(), 11)
    assert column(frame, "why") == ["10 MiB free, needs 20", "only feasible node", "0 pod slots free, needs 1"]


def test_points_of_a_sum_of_policies() -> None:
    policy = "0.25*best_fit + 0.75*gpu_packing"
    frame = table(pods({"gpu_milli": 500}, {"gpu_milli": 500}), t4(2), 11, policy)
    parts = [name for name in frame.columns if name.startswith(("best_fit", "gpu_packing"))]
    kernels = ("gpu_packing", "best_fit")  # the order of the plan
    assert parts == [f"{kernel}_{part}" for kernel in kernels for part in ("raw", "points", "weighted")]
    weighted = frame["best_fit_weighted"] + frame["gpu_packing_weighted"]
    assert column(frame, "total") == weighted.to_list() and frame["total"][0] > frame["total"][1]
    assert (frame["gpu_packing_weighted"] == 3 * frame["gpu_packing_points"]).all()
    behind = frame["total"][0] - frame["total"][1]
    assert column(frame, "why") == ["highest total", f"total {behind:,} below the winner's"]


def test_a_kernel_that_comes_twice_is_numbered() -> None:
    dots = "0.5*dot_product(dim=merge) + 0.5*dot_product(dim=share)"
    names = table(pods({}), t4(1), 10, dots).columns
    assert "dot_product_raw" in names and "dot_product_2_weighted" in names


def test_ties_and_draws() -> None:
    frame = table(pods({}), t4(3), 10)
    assert column(frame, "why") == ["smallest position of 3 nodes with the highest total",
                                    "as many points, larger position", "as many points, larger position"]  # fmt: skip
    winners = {}
    for seed in range(6):
        drawn = table(pods({}), t4(3), 10, "random", seed=seed)
        row = drawn.row(by_predicate=pl.col("chosen"), named=True)
        winners[row["position"]] = row["why"]
        assert (row["rank"], row["total"]) == (1, 100)
    assert len(winners) > 1 and set(winners.values()) == {"random draw among 3 feasible nodes"}


def test_a_draw_that_decides_nothing_is_not_the_reason() -> None:
    frame = table(pods({"gpu_milli": 500}, {"gpu_milli": 500}), t4(2), 11, "0.999*gpu_packing + 0.001*random", seed=1)
    assert column(frame, "why")[0] == "highest total"


def test_pods_that_fit_nowhere() -> None:
    full = pods({}, {}, {"cpu_milli": 1})
    frame = table(full, t4(1), 12)
    assert column(frame, "outcome") == ["no_gpu"] and not frame["chosen"].any()
    large = explained(Scenario(t4(1), pods({"num_gpu": 9}), "best_fit"), 10)
    assert column(large.frame(), "outcome") == ["too_large"]
    assert large.reason(large.decisions[0]) == "no empty node could host it"
    late = fs.Cluster.from_arrow(pa.table({"cpu_milli": [1], "memory_mib": [1], "num_gpu": [0], "add_s": [9.0]}))
    assert column(table(pods({"num_gpu": 0, "gpu_milli": 0}), late, 10), "outcome") == ["no_node"]


def test_ranks_go_by_total_then_position() -> None:
    total, host = np.array([5, 9, 9, 100, 5]), np.array([True, True, True, False, True])
    assert ranks(total, host).tolist() == [3, 1, 2, 0, 4]


def test_one_row_for_every_node_of_every_pod() -> None:
    frame = fs.explain(Scenario(**TEXTS), sample=4)
    assert len(frame) == 40 and frame["pod_id"].unique(maintain_order=True).to_list() == [0, 20, 39, 59]
    assert frame.filter("chosen").height == frame.filter(pl.col("outcome") == "placed")["pod_id"].n_unique()
    assert frame.schema["failed"] == pl.Enum(CHECKS) and set(CHECKS) - set(REASONS) == {
        "absent",
        "beside_gang",
        "reserved",
    }
    again = fs.explain(Scenario(**TEXTS), frame["pod_id"].unique().to_list())
    assert again.equals(frame)


def test_every_row_agrees_with_the_placements_of_the_run() -> None:
    result = fs.simulate(**TEXTS, seed=5)
    chosen = fs.explain(result, sample=60).filter("chosen")
    placed = result.placements.filter(pl.col("node_id").is_not_null())
    found = chosen.select("pod_id", "node", pl.col("position").alias("node_id"), "gpu_ids")
    assert found.equals(placed.select("pod_id", "node", "node_id", "gpu_ids"))


def test_names_in_the_source() -> None:
    frame = table(named("job-a", "job-b"), t4(1), 11)
    assert frame["native_id"][0] == "job-b"
    assert explain(Scenario(t4(1), named("job-a", "job-b"), "best_fit"), "job-b").equals(frame)


def test_a_saved_run_by_its_folder(tmp_path: Path) -> None:
    result = fs.simulate(**TEXTS)
    folder = result.save(tmp_path / "run")
    assert explain(folder, [7, 8]).equals(explain(result, [7, 8]))
    assert explain(str(folder), 7).equals(explain(Scenario(**TEXTS), 7))


def test_a_users_scorer_is_asked_again() -> None:
    def leave_cpu(nodes: Any, pod: Any) -> Any:
        return nodes.cpu_free - pod.cpu_milli

    frame = table(pods({}, {}), mixed(), 11, fs.policies.PythonScorer(leave_cpu))
    assert column(frame, "python_raw") == [4000, 8000, None] and column(frame, "chosen") == [False, True, False]


def test_a_pod_that_was_never_tried_is_a_warning() -> None:
    queue = Scenario(t4(1), pods({}, {}, {}, {}), "best_fit", queue="fifo")
    with pytest.warns(fs.NeverTried, match="never tried: pod 13; the run ended while others were ahead") as caught:
        frame = explain(queue, 13)
    assert caught[0].filename == __file__
    assert frame.is_empty() and frame.columns == explain(queue, 10).columns


def test_a_pod_of_an_incomplete_gang_says_how_many_members_it_has() -> None:
    columns = {"submit_s": [0.0] * 6, "num_gpu": [0] * 6, "cpu_milli": [1] * 6, "job_id": [7, 7, 8, 8, 8, 9],
               "gang_size": [4, 4, 2, 2, 2, 1]}  # fmt: skip
    scenario = Scenario(t4(1), fs.Workload.from_polars(pl.DataFrame(columns)), "best_fit", queue="fifo")
    for pod, text in ((1, "pod 1; its gang, that of job 7, has 2 of 4 members"), (4, "job 8, has 1 of 2 members")):
        with pytest.warns(fs.NeverTried, match=text) as caught:
            assert explain(scenario, pod).is_empty()
        assert caught[0].filename == __file__
    for pod in (3, 5):
        assert not explain(scenario, pod).is_empty()


@pytest.mark.parametrize(("names", "sample"), [((), 0), ([1], 2), ((), -1)])
def test_pods_or_a_sample(names: Any, sample: int) -> None:
    with pytest.raises(ScenarioError, match="expected either pods or a sample of them"):
        explain(Scenario(**TEXTS), names, sample=sample)


def test_a_run_of_objects_is_explained_from_its_result_and_from_its_folder(tmp_path: Path) -> None:
    workload = pods({})
    result = fs.simulate(t4(1), workload)
    folder = result.save(tmp_path / "run")
    whole = explain(Scenario(t4(1), workload), 10)
    assert whole["chosen"].to_list() == [True]
    assert all(explain(source, 10).equals(whole) for source in (result, fs.Result.load(folder), folder))


def test_an_object_that_the_folder_does_not_keep_is_given(tmp_path: Path) -> None:
    policy = fs.policies.PythonScorer(lambda nodes, pod: nodes.cpu_free)
    folder = fs.simulate(t4(1), pods({}), policy).save(tmp_path / "run")
    with pytest.raises(InputError, match=r"run: policy: found an object in memory .* give it: policy=\.\.\."):
        explain(folder, 10)
    with pytest.raises(InputError, match="run: seed: found a new value, expected nothing: the run has it"):
        explain(folder, 10, policy=policy, seed=1)
    assert explain(folder, 10, policy=policy)["chosen"].to_list() == [True]


def test_inputs_that_changed_since(tmp_path: Path) -> None:
    file = tmp_path / "pods.parquet"
    pods({}, {}).write(file)
    result = fs.simulate("uniform?nodes=2&gpu=T4", str(file), "best_fit")
    pods({}, {"gpu_milli": 400}).write(file)
    with pytest.raises(InputError, match=r"workload '.*pods.parquet': found content with checksum .*run it again"):
        explain(result, 10)


def test_a_replay_that_goes_another_way_is_refused() -> None:
    result = fs.simulate(**{**TEXTS, "policy": "best_fit"})
    scenario = {**result.provenance["scenario"], "policy": "random"}
    other = dataclasses.replace(result, provenance={**result.provenance, "scenario": scenario}, scenario=None)
    with pytest.raises(ResultError, match=r"pod .*: found position .* when repeated, expected .* as saved"):
        explain(other, sample=60)


def test_a_folder_without_a_run(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"provenance": {}, "timing": {}}))
    with pytest.raises(ResultError, match="found no readable"):
        explain(tmp_path, 1)
