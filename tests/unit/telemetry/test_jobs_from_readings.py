"""Jobs from readings: those of a run come out of its readings again, and do the same once more."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.cli.main import exit_code
from fastsim.errors import InputError
from fastsim.telemetry.jobs_from_readings import MOST_PHASES, jobs_of, write_profiles_csv
from fastsim.telemetry.readings_table import ordered, write
from fastsim.telemetry.telemetry import Telemetry
from fastsim.telemetry.usage_profile import Phase, Profile, profiles_from_csv
from tests.telemetry import table

CLUSTER = "uniform?nodes=2&gpu=V100M32&gpus=2"
PROFILES = {
    "train": Profile("train", (Phase(5, 500), Phase(20, 9000, 80, 12), Phase(math.inf, 9000, 40))),
    "serve": Profile("serve", (Phase(math.inf, 3000, 15),)),
}


def run(pods: fs.Workload, telemetry: Telemetry) -> fs.Result:
    return fs.simulate(CLUSTER, pods, "best_fit", queue="fifo", telemetry=telemetry, record="all")


def pods(**columns: list[object]) -> fs.Workload:
    count = len(columns["submit_s"])
    rows = {"pod_id": range(count), "cpu_milli": [0] * count, "memory_mib": [0] * count, "gpu_milli": [1000] * count}
    return fs.Workload.from_arrow(pl.DataFrame({**rows, **columns}))


@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.DurationMissing")
def test_the_same_jobs_with_the_same_readings() -> None:
    jobs = pods(submit_s=[0.0, 10.0, 12.0, 50.0, 60.0], duration_s=[45.0, 60.0, 33.0, None, 20.0],
                num_gpu=[1, 1, 2, 1, 1], workload=["train", "serve", "train", "serve", None])  # fmt: skip
    first = run(jobs, Telemetry(1.0, PROFILES))
    found = jobs_of(first.telemetry.to_arrow())
    columns = ["submit_s", "duration_s", "num_gpu"]
    told = pl.DataFrame(pl.from_arrow(found.pods.table()))
    there = pl.DataFrame(pl.from_arrow(jobs.table()))
    # The last one still runs when the record ends, and so does the one that never ends.
    assert told.select(columns).rows() == [
        (*row[:1], None if row[0] >= 50 and row[1] != 20.0 else row[1], row[2]) for row in there.select(columns).rows()
    ]
    again = run(found.pods, Telemetry(1.0, found.profiles))
    for metric in ("memory_used_mib", "util_pct", "power_w"):
        # Profiles have whole levels, power the last thousandth of a watt.
        values = [result.telemetry.filter(metric=metric)["value"].to_list() for result in (again, first)]
        assert values[0] == pytest.approx(values[1], abs=2e-3), metric


def test_pods_that_share_a_device_have_parts_of_it() -> None:
    one, two = (table({"util_pct": [(s * 1000, 60.0) for s in range(4)], "memory_used_mib": [(0, 80.0)]}, pod=pod)
                for pod in ("a", "b"))  # fmt: skip
    found = jobs_of(ordered(pa.concat_tables([one, two])))
    rows = found.pods.table().to_pylist()
    assert [(row["workload"], row["gpu_milli"], row["gpu_memory_mib"], row["duration_s"]) for row in rows] == [
        ("a", 500, 40, None), ("b", 500, 40, None),
    ]  # fmt: skip
    assert {phase.util_pct for phase in found.profiles["a"].phases} == {30.0}


def test_pods_of_one_name_are_told_apart_by_namespace() -> None:
    parts = [table({"util_pct": [(1000 * s, 1.0)]}, namespace=space) for s, space in enumerate(("x", "y"))]
    assert set(jobs_of(ordered(pa.concat_tables(parts))).profiles) == {"x/p", "y/p"}


def test_a_long_curve_is_averaged(tmp_path: Path) -> None:
    found = jobs_of(table({"util_pct": [(1000 * s, s % 7.0) for s in range(10 * MOST_PHASES)]}))
    assert len(found.profiles["p"].phases) <= MOST_PHASES
    rows = write_profiles_csv(found.profiles, tmp_path / "p.csv")
    assert profiles_from_csv(tmp_path / "p.csv") == found.profiles and rows == len(found.profiles["p"].phases)


def test_readings_without_pods() -> None:
    with pytest.raises(InputError, match="no reading with a pod's name"):
        jobs_of(table({"util_pct": [(0, 1.0)]}, pod=None))


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(table({"power_w": [(0, 40.0), (1000, 50.0)], "util_pct": [(0, 4.0), (1000, 9.0)]}), tmp_path / "r.parquet")
    words = ["monitor", "jobs", str(tmp_path / "r.parquet"), "-o", str(tmp_path / "pods.parquet")]
    assert exit_code([*words, "--profiles", str(tmp_path / "p.csv")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'pods.parquet'}: 1 pods\n{tmp_path / 'p.csv'}: 1 profiles\n"
    telemetry = f"1?profiles={tmp_path / 'p.csv'}"
    again = fs.simulate(CLUSTER, str(tmp_path / "pods.parquet"), "best_fit", telemetry=telemetry)
    assert again.jobs["state"].to_list() == ["running"]


def test_pods_on_instances_request_them() -> None:
    """Two instances of one board, and watts of the board that are nobody's own."""
    values: dict[str, list[tuple[int, float]]] = {"util_pct": [(0, 30.0), (1000, 50.0)], "power_w": [(0, 300.0)]}
    parts = [
        table(values, gpu_uuid=f"MIG-GPU-1/{number}", model=f"A100-MIG-{profile}", pod=pod)
        for number, (profile, pod) in enumerate((("1g.10gb", "a"), ("1g.10gb.me", "a"), ("3g.40gb", "b")))
    ]
    found = jobs_of(ordered(pa.concat_tables([*parts, table(values, gpu_uuid="GPU-2", pod="c")])))
    columns = ("workload", "num_gpu", "gpu_milli", "mig")
    assert [tuple(row[name] for name in columns) for row in found.pods.table().to_pylist()] == [
        ("a", 0, 0, "1g.10gb+1g.10gb+me"), ("b", 0, 0, "3g.40gb"), ("c", 1, 1000, None),
    ]  # fmt: skip
    assert {phase.power_w for phase in found.profiles["a"].phases} == {0}
    assert [phase.util_pct for phase in found.profiles["b"].phases] == [30, 50]
