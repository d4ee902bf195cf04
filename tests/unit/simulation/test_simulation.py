"""simulate and simulate_many: texts and objects, warnings, provenance, equal bytes on any number of workers."""

from __future__ import annotations

import dataclasses
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.engine.online.plan import OnlinePlan, ScoreTerm
from fastsim.errors import InputError, ResultError, ScenarioError
from fastsim.simulation.simulate import PodTooLarge
from tests.engines import RUNS, small_run

CLUSTER = "uniform?nodes=6&gpu=T4&gpus=2"
FEW = "synth:openb?pods=60&seed=1&arrivals=order&durations=forever"


def pods(count: int = 20, **columns: Any) -> fs.Workload:
    """Equal pods, one per second, for ever."""
    base = {"cpu_milli": 4000, "memory_mib": 1024, "num_gpu": 1, "gpu_milli": 500} | columns
    rows = pl.DataFrame({"pod_id": range(count), "submit_s": [float(i) for i in range(count)]})
    return fs.Workload.from_arrow(rows.with_columns(**{name: pl.lit(value) for name, value in base.items()}))


def most_memory(nodes: Any, pod: Any) -> Any:
    """Points of a user's policy."""
    return np.asarray(nodes.memory_free)


def test_objects_and_texts_give_the_same_run() -> None:
    cluster = fs.Cluster.uniform(nodes=6, gpu="T4", gpus=2)
    workload = fs.Workload.synth("openb", pods=60, seed=1, arrivals="order", durations="forever")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PodTooLarge)
        by_object = fs.simulate(cluster, workload, 0.9 * fs.policies.FGD() + 0.1 * fs.policies.PWR(), seed=3)
        by_text = fs.simulate(CLUSTER, FEW, "900*fgd + 100*pwr", seed=3)
    assert by_object.placements.equals(by_text.placements) and by_object.timeline.equals(by_text.timeline)
    assert by_object.summary.equals(by_text.summary)


def test_provenance_and_citations_name_what_ran() -> None:
    scenario = fs.Scenario("openb:20", pods(), "0.9*fgd + 0.1*pwr", name="mine")
    result = fs.simulate_many([scenario, fs.Scenario("openb:20", "synth:openb?pods=3&seed=1", "random")])
    assert result[0].provenance["policy"] == "0.9*fgd + 0.1*pwr" and result[0].provenance["objects"] == ["workload"]
    assert result[1].provenance["scenario_id"] == fs.Scenario("openb:20", "synth:openb?pods=3&seed=1", "random").id
    cited = result[0].cite()
    assert "weng2023fgd" in cited and "lettich2025pwr" in cited and cited.endswith("}")
    assert "weng2023fgd" not in result[1].cite() and "@software{fastsim" in result[1].cite()


def test_queue_and_gpu_pick_override_the_policy() -> None:
    full = pods(40)
    assert fs.simulate(CLUSTER, full).summary["pods_unplaced"].item() == 16
    assert fs.simulate(CLUSTER, full, queue="fifo-skip").provenance["plan"]["queue"] == "fifo_skip"
    waiting = fs.simulate(CLUSTER, full, queue="fifo", gpu_pick="worst")
    assert waiting.summary["pods_pending"].item() == 16
    assert (waiting.provenance["plan"]["queue"], waiting.provenance["plan"]["gpu_pick"]) == ("fifo", "worst")
    first = waiting.placements.filter(pl.col("node_id") == 0)["gpu_ids"].to_list()[:2]
    assert first == [[0], [1]]
    split = fs.simulate(CLUSTER, full, gpu_pick="dot_product").provenance["plan"]
    assert (split["gpu_pick"], split["gpu_dim"]) == ("dot_product", "share")


def test_record_and_times_reach_the_engine() -> None:
    result = fs.simulate(CLUSTER, pods(), record="timeline", sample_s=5.0, until_s=10.0)
    assert result.timeline["event"].cast(pl.String).unique().sort().to_list() == ["end", "sample"]
    assert not result.recorded("placements") and result.timeline["t_s"].max() == 10.0


def test_typical_pods_come_from_where_they_are_asked_for() -> None:
    other = fs.simulate(CLUSTER, pods(), typical=pods(5, gpu_milli=900), record="summary").summary
    same = fs.simulate(CLUSTER, pods(), record="summary").summary
    given = fs.simulate(CLUSTER, pods(), typical=fs.TypicalPods.of(pods(5, gpu_milli=900)), record="summary").summary
    assert other.equals(given) and not other.equals(same)


def test_stages_follow_the_main_run() -> None:
    result = fs.simulate(
        CLUSTER, pods(), deschedule=["frag_one_pod:0.1", "cos_sim:0.2"], inflation=1.2, retarget=pods(3, gpu_milli=900)
    )
    stages = result.stages["stage"].to_list()
    assert stages[:3] == ["schedule", "inflation", "retarget"] and stages.count("post_deschedule") == 2


def test_pods_larger_than_any_node_are_announced_and_counted() -> None:
    with pytest.warns(PodTooLarge, match=r"20 pods are larger than any node .* 3 x 1000 milli-GPU"):
        result = fs.simulate(CLUSTER, pods(num_gpu=3, gpu_milli=1000))
    assert result.summary["pods_unplaced"].item() == 20
    assert result.jobs["reason"].unique().to_list() == ["too_large"]
    with pytest.warns(PodTooLarge, match="1 pod is larger"):
        fs.simulate_many([fs.Scenario(CLUSTER, pods(1, cpu_milli=10**6))])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fs.simulate_many([fs.Scenario(CLUSTER, pods(1, cpu_milli=10**6), policy) for policy in ("fgd", "pwr")])
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fs.simulate(CLUSTER, pods())


def test_a_python_scorer_runs_alone_and_mixed() -> None:
    scorer = fs.policies.PythonScorer(most_memory, normalise="min_max_100")
    alone = fs.simulate(CLUSTER, pods(), scorer)
    assert sorted(alone.placements["node_id"].to_list()[:6]) == list(range(6))
    mixed = fs.simulate(CLUSTER, pods(), 0.5 * fs.policies.FGD() + 0.5 * scorer)
    assert mixed.provenance["policy"] == f"fgd + python(scorer='{__name__}:most_memory', normalise=min_max_100)"


def test_any_object_with_a_plan_is_a_policy() -> None:
    class Mine:
        """A policy of its own."""

        def plan(self, cluster: fs.Cluster, workload: fs.Workload) -> OnlinePlan:
            """Best fit with a queue."""
            return OnlinePlan((ScoreTerm("best_fit", normalise="min_max_0"),), queue="fifo")

    assert fs.simulate(CLUSTER, pods(40), Mine()).summary["pods_pending"].item() == 16

    class Wrong:
        """A policy that forgets to answer."""

        def plan(self, cluster: fs.Cluster, workload: fs.Workload) -> None:
            """Nothing."""

    anything: Any = Wrong()
    with pytest.raises(fs.PolicyError, match="OnlinePlan"):
        fs.simulate(CLUSTER, pods(), anything)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"policy": "fdg"}, "did you mean 'fgd'"),
        ({"policy": 3}, "a method plan"),
        ({"cluster": "opneb"}, "did you mean 'openb'"),
        ({"queue": "lifo"}, "one of drop"),
        ({"gpu_pick": "nearest"}, "one of best"),
        ({"record": "everything"}, "one of none"),
        ({"seed": -1}, "whole number"),
        ({"deschedule": ["frag_one_pd:0.1"]}, "did you mean 'frag_one_pod'"),
        ({"deschedule": ["cos_sim"]}, "a text such as"),
        ({"deschedule": ["cos_sim:2"]}, "from 0 to 1"),
        ({"deschedule": ["cos_sim:0.1@-3"]}, "expected a time of 0 or more"),
        ({"compat": "slurm"}, "expected one of fgd, gavel, gavel-2020-05, monitored"),
        ({"sample_s": -1.0}, "above 0"),
    ],
)
def test_bad_arguments_are_one_clear_error(change: dict[str, Any], part: str) -> None:
    given: dict[str, Any] = {"cluster": CLUSTER, "workload": pods(1), **change}
    with pytest.raises(fs.FastsimError) as caught:
        fs.simulate(**given)
    assert part in str(caught.value) and caught.value.exit_code == 2


def test_progress_is_told_the_pods() -> None:
    reported: list[int] = []
    fs.simulate(CLUSTER, pods(), progress=reported.append)
    assert reported[-1] == 20 and reported == sorted(reported)


def test_a_folder_is_no_part_of_what_is_run(tmp_path: Path) -> None:
    plain = fs.Scenario("openb:30", FEW)
    placed: Any = tmp_path / "a"
    there = plain.with_(out=placed)
    assert there.id == plain.id and there.out == str(tmp_path / "a")
    assert fs.Scenario.from_toml(_written(tmp_path / "s.toml", there.to_toml())) == there
    result = fs.simulate_many([there])[0]
    assert result.provenance["scenario"] == plain.to_dict()
    with pytest.raises(fs.ScenarioError, match="more than once"):
        fs.simulate_many([there, there])
    with pytest.raises(fs.ResultError, match="exists already"):
        fs.simulate_many([there])
    nothing: Any = ""
    with pytest.raises(fs.ScenarioError, match="out: found '', expected a folder"):
        fs.simulate(CLUSTER, FEW, out=nothing)


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_rules_reach_the_engine_however_they_are_spelled(tmp_path: Path) -> None:
    rows = pods(6, tenant="anna", cpu_milli=1000, duration_s=5.0)
    common: dict[str, Any] = {
        "queue": "drf",
        "failures": "mtbf=50,mttr=5",
        "on_node_loss": "requeue",
        "restart_s": 1.0,
    }
    quotas, weights = {"anna": {"cpu_milli": 2000}}, {"anna": 2.0}
    maintenance = tmp_path / "away.csv"
    maintenance.write_text("node,down_s,up_s\nnode-0000,1,9\n")
    whole = fs.simulate(CLUSTER, rows, quotas=quotas, weights=weights, maintenance=str(maintenance), **common)
    text = fs.Scenario(CLUSTER, rows, quotas="anna:cpu_milli=2000", weights="anna=2", maintenance=str(maintenance),
                       **common)  # fmt: skip
    assert fs.Scenario(CLUSTER, rows, quotas=quotas, weights=weights, **common).quotas == text.quotas
    assert whole.placements.equals(fs.simulate_many([text])[0].placements)


TENANTS = ["bert", "anna"] * 4
VIEWS = pa.DictionaryArray.from_arrays(pa.array([1, 0] * 4, pa.uint8()), pa.array(["anna", "bert"], pa.string_view()))


@pytest.mark.parametrize(
    "stored",
    [pl.Series(TENANTS, dtype=pl.Categorical), pl.Series(TENANTS, dtype=pl.Enum(["anna", "bert"])), VIEWS],
    ids=["Categorical", "Enum", "dictionary of views"],
)
@pytest.mark.parametrize(
    "rule", [{"quotas": {"anna": {"gpu_milli": 250}}}, {"weights": {"anna": 4.0}}], ids=["quotas", "weights"]
)
def test_tenants_that_are_categories_have_quotas_and_weights(stored: Any, rule: dict[str, Any]) -> None:
    """Four of eight pods run at once: the rule changes who waits, whatever way the names are stored."""

    def starts(tenants: pa.Array, **rules: Any) -> list[float]:
        table = pods(8, duration_s=50.0, gpu_milli=250).table().append_column("tenant", tenants)
        run = fs.simulate("uniform?nodes=1&gpus=1&gpu=T4", fs.Workload.from_arrow(table), queue="drf", **rules)
        waited: list[float] = run.jobs["start_s"].to_list()
        return waited

    assert starts(pa.array(stored), **rule) == starts(pa.array(TENANTS), **rule) != starts(pa.array(TENANTS))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"quotas": "anna:gpus=1"}, "quotas: anna: found a limit of 'gpus'"),
        ({"weights": {"anna": -1}}, "weights: anna: found -1"),
        ({"failures": "often"}, "failures: found 'often'"),
        ({"maintenance": [("node-9", 1.0, 2.0)]}, "maintenance: found node 'node-9'"),
        ({"preempt": "all"}, "preempt: found 'all', expected one of none, priority"),
        ({"on_node_loss": "requeue"}, "on_node_loss: found 'requeue' with queue='drop'"),
        ({"checkpoint_every_s": -1.0}, "checkpoint_every_s: found -1.0"),
        ({"checkpoint_every_s": 5e-324}, "checkpoint_every_s: found 5e-324, expected 0, or seconds from 1e-06 to"),
        ({"restart_s": float("inf")}, "restart_s: found inf"),
        ({"preempt": "priority", "queue": "easy"}, "preempt: found 'priority' with queue='easy'"),
    ],
)
def test_rules_that_mean_nothing_are_one_clear_error(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError if "maintenance" in given else ScenarioError, match=said):
        fs.simulate(CLUSTER, pods(3), **given)


@pytest.mark.parametrize("engine", sorted(RUNS))
def test_no_engine_answers_with_an_impossible_figure(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overflown(result: fs.Result, *others: object) -> fs.Result:
        summary = result.summary.with_columns(mean_power_w=pl.lit(math.inf))
        return dataclasses.replace(result, frames={**result.frames, "summary": summary})

    monkeypatch.setattr("fastsim.simulation.simulate.with_emissions", overflown)
    with pytest.raises(ResultError, match="summary: mean_power_w: found inf, expected a finite number of 0 or more"):
        small_run(engine, out=tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == []
