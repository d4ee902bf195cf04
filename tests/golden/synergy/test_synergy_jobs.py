"""Jobs of the recorded Synergy runs, made from seeds and read from traces as the original makes and writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fastsim.workload import Workload
from fastsim.workload.generators.synergy import synth_synergy
from fastsim.workload.generators.synergy_jobs import SynergyStream
from fastsim.workload.importers.synergy import import_jobs, write_trace
from tests.conftest import SHARED
from tests.golden.synergy import synergy

pytestmark = pytest.mark.skipif(not synergy.SYNERGY.exists(), reason="reference data not found (set FASTSIM_SHARED)")
TRACES = sorted((synergy.SYNERGY / "traces").glob("*.csv"))
NATIVE = sorted((SHARED / "data/synergy/native").glob("*"))


@pytest.mark.parametrize("setting", synergy.streams(), ids=lambda setting: setting["stream"])
def test_the_same_seed_makes_the_very_jobs(setting: dict[str, Any], tmp_path: Path) -> None:
    expected, recipe = synergy.recorded_jobs(setting["stream"]), synergy.recipe(setting)
    # In two pieces, the second after a stay on disk: the numbers must not notice.
    stream = SynergyStream(recipe)
    pieces = [stream.take(expected.height // 3)]
    stream = SynergyStream(recipe, stream.kept())
    pieces.append(stream.take(expected.height - expected.height // 3))
    found = pl.concat([pl.DataFrame(piece) for piece in pieces])
    assert found.select(expected.columns).with_columns(pl.col("workload").cast(pl.String)).equals(expected)
    write_trace(Workload.from_arrow(found.to_arrow()), tmp_path / "jobs.csv")
    assert (tmp_path / "jobs.csv").read_bytes() == (
        synergy.SYNERGY / "traces" / f"{setting['stream']}.csv"
    ).read_bytes()


def test_one_call_makes_them_too() -> None:
    longest = max(synergy.streams(), key=lambda setting: synergy.recorded_jobs(setting["stream"]).height)
    expected, split = synergy.recorded_jobs(longest["stream"]), longest["split"].replace("-", ":")
    jobs = synth_synergy(
        expected.height, longest["seed"], rate_per_hour=longest["load"], split=split, log=synergy.LOG_JOBS,
        cpus_per_gpu=longest["cpus_per_gpu"],
    )  # fmt: skip
    found = pl.DataFrame(jobs.table())
    assert found["submit_s"].equals(expected["submit_s"]) and found["total_work"].equals(expected["total_work"])


@pytest.mark.parametrize("path", TRACES + NATIVE, ids=lambda path: path.name)
def test_a_trace_survives_reading_and_writing(path: Path, tmp_path: Path) -> None:
    lines = [line.split(",") for line in path.read_text().splitlines()]
    table = import_jobs(path).table()
    columns = [table[name].to_pylist() for name in ("native_id", "workload", "submit_s", "total_work", "num_gpu")]
    found = list(zip(*columns, strict=True))
    assert found == [(job, model, float(at), float(work), int(gpus)) for job, model, at, work, gpus in lines]
    write_trace(import_jobs(path), tmp_path / "again.csv.gz")
    assert import_jobs(tmp_path / "again.csv.gz").table() == table


@pytest.mark.parametrize("path", sorted((SHARED / "data/philly/native").glob("*.csv*")), ids=lambda path: path.name)
def test_the_reduced_philly_trace_is_read(path: Path) -> None:
    found = pl.DataFrame(Workload.from_philly(path).table()).with_columns(pl.col("tenant").cast(pl.String))
    rows = pl.read_csv(path).filter(pl.col("duration") > 0, pl.col("num_gpus") > 0)
    times = rows.with_columns(pl.col("timestamp").str.to_datetime()).sort("timestamp", maintain_order=True)
    since = (times["timestamp"] - times["timestamp"][0]).dt.total_seconds().cast(pl.Float64)
    assert found["submit_s"].equals(since) and found["duration_s"].equals(times["duration"])
    assert found["num_gpu"].equals(times["num_gpus"].cast(pl.Int16)) and found["tenant"].equals(times["cluster"])


@pytest.mark.parametrize("path", sorted((SHARED / "data/philly/sample").glob("*log*.json")), ids=lambda path: path.name)
def test_the_documented_philly_job_is_read(path: Path) -> None:
    (job,) = Workload.from_philly(path).table().to_pylist()
    assert (job["num_gpu"], job["duration_s"], job["orig_start_s"]) == (8, 74 + 193_182, 30)
