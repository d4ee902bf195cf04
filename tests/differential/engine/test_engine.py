"""Samples taken while a run goes on are those worked out afterwards, one by one, from its placements."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import given, settings

import fastsim as fs
from fastsim.engine.online.options import OnlineOptions
from fastsim.engine.online.run import run_online
from fastsim.engine.result import Result
from fastsim.telemetry.reading_model import Device
from fastsim.telemetry.telemetry import Telemetry
from fastsim.telemetry.usage_profile import Phase, Profile
from fastsim.workload import Workload
from tests.reference.telemetry import reference_samples
from tests.strategies import MODELS, Scenario, scenarios, scenarios_per_run

PROFILES = {
    "slow": Profile("slow", (Phase(1.5), Phase(2.0, 300, 20, 3), Phase(math.inf, 700.25, 60, -2))),
    "full": Profile("full", (Phase(math.inf, 400, 100),)),
}
DEVICES = {model: Device(1000 + 100 * number, 20, 90 + number, kept_mib=number) for number, model in enumerate(MODELS)}
DEVICES["T4"] = Device(1500, 27, 300, util_pct=(0, 4, 35), power_w=(27, 39, 47, 50), tau_s=3)


def telemetries() -> st.SearchStrategy[Telemetry]:
    gaps = st.sampled_from(((), (), (1.0,), (0.75, 2.0)))
    every = st.sampled_from((1.0, 0.5, 2.0, 3.0))
    return st.builds(lambda every_s, refresh_s: Telemetry(every_s, PROFILES, DEVICES, refresh_s), every, gaps)


def with_applications(workload: Workload, names: list[str | None]) -> Workload:
    """The pods, with applications in turn."""
    pods = pl.DataFrame(pl.from_arrow(workload.table()))
    given_names = [names[row % len(names)] for row in range(len(pods))]
    return Workload.from_arrow(pods.with_columns(workload=pl.Series(given_names, dtype=pl.String)))


def samples_of(result: Result, telemetry: Telemetry, cluster: fs.Cluster) -> dict[tuple[Any, ...], tuple[float, Any]]:
    """Value and pod by second, position of the node, device and reading."""
    names = cluster.nodes["name"].to_pylist()
    rows = result.telemetry.with_columns(ms=pl.col("ts").dt.epoch("ms") - telemetry.epoch_ms)
    found = {}
    for row in rows.rows(named=True):
        key = (row["ms"] / 1000, names.index(row["node"]), row["gpu_index"], row["metric"])
        assert key not in found
        found[key] = row["value"], None if row["pod"] is None else int(row["pod"])
    return found


def agree(
    result: Result, telemetry: Telemetry, cluster: fs.Cluster, stays: Any, span: tuple[float, float], seed: int
) -> None:
    found = samples_of(result, telemetry, cluster)
    rows = list(reference_samples(telemetry, cluster, stays, *span, seed))
    pods = {(row["t_s"], row["node"], row["gpu_index"]): row["value"] for row in rows if row["metric"] == "pod"}
    values = [row for row in rows if row["metric"] != "pod"]
    assert len(values) == len(found)
    for row in values:
        value, pod = found[row["t_s"], row["node"], row["gpu_index"], row["metric"]]
        # Memory there is summed in whole 1/1024 MiB, the rest as logarithms and exponentials in another order.
        assert value == pytest.approx(row["value"], rel=1e-9, abs=1e-6), row
        assert pod == pods[row["t_s"], row["node"], row["gpu_index"]], row


@settings(max_examples=scenarios_per_run(25))
@given(scenarios(), telemetries(), st.lists(st.sampled_from((None, "slow", "full")), min_size=1, max_size=5))
def test_samples_of_pods(scenario: Scenario, telemetry: Telemetry, names: list[str | None]) -> None:
    pods = with_applications(scenario.workload, names)
    options = OnlineOptions(seed=scenario.seed, until_s=scenario.until_s, telemetry=telemetry)
    result = run_online(scenario.cluster, pods, scenario.plan, scenario.typical, options)
    plain = run_online(
        scenario.cluster, pods, scenario.plan, scenario.typical, dataclasses.replace(options, telemetry=None)
    )
    for name in ("placements", "jobs", "summary", "timeline"):
        assert result.frames[name].equals(plain.frames[name])
    assert not plain.recorded("telemetry")
    by_id = {row["pod_id"]: row for row in pods.table().to_pylist()}
    stays = [by_id[row["pod_id"]] | row for row in result.placements.rows(named=True) if row["node_id"] is not None]
    begin_s = min(row["submit_s"] for row in by_id.values())
    end_s = float(result.timeline["t_s"].max())  # type: ignore[arg-type]
    if end_s >= begin_s:
        agree(result, telemetry, scenario.cluster, stays, (begin_s, end_s), scenario.seed)


@pytest.mark.long
@pytest.mark.parametrize(
    ("cluster", "workload", "policy", "options"),
    [
        ("gavel:2:2:2", "synth:gavel?jobs=12&rate_per_hour=40&seed=1", "max_min_fairness(mode=packed)", {}),
        ("synergy:2", "synth:synergy?jobs=12&rate_per_hour=40&seed=1", "srtf", {"rates": "synergy"}),
        ("sia:2:1:1", "synth:sia?jobs=8&seed=1", "sia", {}),
    ],
)
def test_samples_of_jobs_in_rounds(cluster: str, workload: str, policy: str, options: dict[str, Any]) -> None:
    telemetry = Telemetry(3600.0, refresh_s=(300.0, 777.0), epoch="2024-01-01T00:00:00Z")
    result = fs.simulate(cluster, workload, policy, telemetry=telemetry, **options)
    jobs = (
        result.jobs.select("pod_id", "workload") if "workload" in result.jobs.columns else result.jobs.select("pod_id")
    )
    stays = result.placements.join(jobs, on="pod_id").rows(named=True)
    begin_s = float(result.jobs["submit_s"].min())  # type: ignore[arg-type]
    span = begin_s, begin_s + float(result.summary["makespan_s"][0])
    from fastsim.cluster.cluster import Cluster

    agree(result, telemetry, Cluster.from_text(cluster), stays, span, 0)
