"""Usage by tenant: figures worked out by hand, quotas, refusals, and the verb."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.cli.main import exit_code
from fastsim.decisions.tenant_usage import COLUMNS, tenant_usage
from fastsim.errors import ResultError

CLUSTER = fs.Cluster.uniform(nodes=1, gpu="T4", gpus=4, cpu_milli=64_000, memory_mib=65_536)
COLUMNS_OF_PODS = ("pod_id", "tenant", "submit_s", "duration_s", "num_gpu", "gpu_milli")
FRAME = pl.DataFrame(
    [
        (0, "red", 0.0, 3600.0, 2, 1000), (1, "blue", 0.0, 7200.0, 1, 500), (2, "red", 0.0, None, 1, 1000),
        (3, "blue", 0.0, 1800.0, 3, 1000), (4, None, 0.0, None, 4, 1000),
    ],
    schema=COLUMNS_OF_PODS, orient="row",
).with_columns(cpu_milli=1000, memory_mib=1)  # fmt: skip
"""GPUs 0 to 2 are taken until 3,600 s, half a GPU until 7,200 s, so that pod 3 waits for 7,200 s and pod 4 forever."""
PODS = fs.Workload.from_polars(FRAME)
RUN: dict[str, Any] = {"cluster": CLUSTER, "workload": PODS, "policy": "best_fit", "queue": "fifo_skip"}
pytestmark = pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.DurationMissing")


def test_figures_by_hand() -> None:
    table = tenant_usage(fs.simulate(**RUN, quotas={"red": {"gpu_milli": 4000}}, prices={"T4": 2.0}))
    assert table.columns == [name for name, _ in COLUMNS]
    rows = {row["tenant"]: row for row in table.to_dicts()}
    end_h = 2.5  # pod 3 leaves at 9,000 s
    hours = {"red": 2.0 + end_h, "blue": 0.5 * 2 + 1.5, None: 0.0}
    assert {tenant: row["gpu_hours"] for tenant, row in rows.items()} == pytest.approx(hours)
    assert {tenant: row["cost"] for tenant, row in rows.items()} == pytest.approx(
        {name: 2 * h for name, h in hours.items()}
    )
    assert table["tenant"].to_list() == ["red", "blue", None]
    assert [rows["red"][name] for name in ("pods", "waiting", "gpus", "quota_gpus", "quota_pct")] == [2, 0, 1, 4, 25]
    assert [rows["blue"][name] for name in ("pods", "waiting", "gpus", "quota_gpus", "quota_pct")] == [
        2,
        0,
        0,
        None,
        None,
    ]
    assert (rows["blue"]["wait_mean_s"], rows["blue"]["wait_p95_s"]) == pytest.approx((3600, 6840))
    assert (rows[None]["waiting"], rows[None]["wait_mean_s"]) == (1, None)
    assert table["share_pct"].sum() == pytest.approx(100)


def test_carbon_is_divided_by_gpu_hours() -> None:
    result = fs.simulate(**RUN, carbon=400.0)
    table = tenant_usage(result)
    assert table["co2_kg"].sum() == pytest.approx(result.summary["co2_kg"].item())
    assert table["co2_kg"].to_list() == pytest.approx((table["share_pct"] * table["co2_kg"].sum() / 100).to_list())


def test_shares_are_of_the_gpus_held_where_no_time_passes() -> None:
    still = FRAME.filter(pl.col("pod_id").is_in([0, 1])).with_columns(duration_s=pl.lit(None, pl.Float64))
    table = tenant_usage(fs.simulate(CLUSTER, fs.Workload.from_polars(still), quotas={"*": {"gpu_milli": 4000}}))
    assert table.select("tenant", "gpus", "quota_pct", "share_pct").rows() == [
        ("red", 2.0, 50.0, 80.0),
        ("blue", 0.5, 12.5, 20.0),
    ]


def test_jobs_in_rounds_have_tenants_and_gpu_hours() -> None:
    jobs = pl.DataFrame(pl.from_arrow(fs.Workload.synth("gavel", jobs=8, seed=1).table())).with_columns(
        tenant=pl.Series(["a", "b"] * 4)
    )
    result = fs.simulate("gavel:2:2:2", fs.Workload.from_polars(jobs), policy="las")
    table = tenant_usage(result)
    assert table["gpu_hours"].sum() == pytest.approx(result.jobs["gpu_hours"].sum())
    assert table["pods"].sum() == 8


def test_a_run_without_tenants_is_refused() -> None:
    bare = fs.Workload.from_polars(FRAME.drop("tenant"))
    with pytest.raises(ResultError, match="found no tenant of any pod, expected a workload with tenants"):
        tenant_usage(fs.simulate(CLUSTER, bare, policy="best_fit", queue="fifo_skip"))


def test_the_verb_prints_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    folder = fs.simulate(**RUN).save(tmp_path / "run")
    assert exit_code(["tenants", str(folder), "--csv", str(tmp_path / "teams.csv")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "quota" not in lines[0] and lines[2].split()[:3] == ["red", "2", "0"]
    assert exit_code(["tenants", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == tenant_usage(folder).to_dicts()
    assert len(pl.read_csv(tmp_path / "teams.csv")) == 3
