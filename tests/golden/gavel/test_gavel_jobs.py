"""Rates and jobs of the recorded Gavel runs, read from and drawn as the original writes and draws them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fastsim.performance.gavel_rates import import_rates
from fastsim.workload import Workload
from fastsim.workload.generators.gavel import synth_gavel, synth_gavel_trace
from fastsim.workload.generators.gavel_jobs import JobStream
from fastsim.workload.importers.gavel import import_jobs, write_trace
from tests.conftest import SHARED
from tests.golden.gavel import gavel

KEYS = ["gpu_model", "workload", "num_gpu", "colocated_workload", "consolidated"]

pytestmark = pytest.mark.skipif(not gavel.GAVEL.exists(), reason="reference data not found (set FASTSIM_SHARED)")


def files(pattern: str) -> list[Path]:
    return sorted(gavel.GAVEL.glob(pattern))


@pytest.mark.parametrize("path", files("oracle/*.json"), ids=lambda path: path.stem)
def test_every_rate_is_read(path: Path) -> None:
    expected = pl.read_parquet(path.with_suffix(".parquet")).select(
        pl.col("worker_type").str.strip_suffix("_unconsolidated").alias("gpu_model"),
        pl.col("job_type").alias("workload"), pl.col("scale_factor").cast(pl.Int32).alias("num_gpu"),
        pl.col("other_job_type").alias("colocated_workload"),
        (~pl.col("worker_type").str.ends_with("_unconsolidated")).alias("consolidated"),
        pl.col("throughput").alias("steps_per_s"), pl.col("other_throughput").alias("colocated_steps_per_s"),
    )  # fmt: skip
    table = pl.DataFrame(import_rates(path)).with_columns(pl.col(pl.Categorical).cast(pl.String))
    assert table.select(expected.columns).sort(KEYS).equals(expected.sort(KEYS))


@pytest.mark.parametrize("path", files("oracle/*.json"), ids=lambda path: path.stem)
def test_the_oracle_holds_them_and_comes_back_from_parquet(path: Path, tmp_path: Path) -> None:
    oracle = gavel.oracle(path.stem)
    assert oracle.gpu_models == ("k80", "p100", "v100") and oracle.fastest_first == ("v100", "p100", "k80")
    rows = pl.read_parquet(path.with_suffix(".parquet")).filter(pl.col("worker_type").is_in(oracle.gpu_models))
    place = {model: index for index, model in enumerate(oracle.gpu_models)}
    for worker, job, count, other, mine, theirs in rows.iter_rows():
        kind = oracle.kind_index[job, count]
        if other is None:
            assert oracle.alone__kg[kind, place[worker]] == mine
        else:
            partner = oracle.kind_index[other, count]
            assert oracle.shared__kkg[kind, partner, place[worker]] == mine
            assert oracle.shared__kkg[partner, kind, place[worker]] == theirs
    oracle.to_parquet(tmp_path / "rates.parquet")
    again = type(oracle).from_parquet(tmp_path / "rates.parquet")
    assert (again.kinds, again.gpu_models) == (oracle.kinds, oracle.gpu_models)
    assert np.array_equal(again.alone__kg, oracle.alone__kg, equal_nan=True)
    assert np.array_equal(again.shared__kkg, oracle.shared__kkg, equal_nan=True)


@pytest.mark.parametrize("path", files("traces/*.parquet"), ids=lambda path: path.stem)
def test_recorded_jobs_are_a_workload(path: Path) -> None:
    table = gavel.jobs(path.stem).table()
    assert table.num_rows == pl.read_parquet(path).height
    kinds = zip(table["workload"].to_pylist(), table["num_gpu"].to_pylist(), strict=True)
    assert set(kinds) <= set(gavel.oracle().kinds)


def drawn() -> list[str]:
    """Scenarios whose jobs were drawn by the simulator."""
    return [path.stem for path in files("traces/*.parquet")]


@pytest.mark.parametrize("scenario", drawn())
def test_the_same_seed_draws_the_very_jobs(scenario: str) -> None:
    setting = gavel.scenarios().row(by_predicate=pl.col("name") == scenario, named=True)
    expected, stream = gavel.recorded_jobs(scenario), JobStream(gavel.recipe(setting))
    # In two pieces, the second after a stay on disk: the numbers must not notice.
    pieces = [stream.take(expected.height // 3)]
    stream = JobStream(stream.recipe, stream.kept())
    pieces.append(stream.take(expected.height - expected.height // 3))
    found = pl.concat([pl.DataFrame(piece) for piece in pieces])
    compared = [column for column in expected.columns if expected[column].null_count() < expected.height]
    if not setting["multi_priority"]:
        compared.remove("weight")
        assert (expected["weight"] == 1).all()
    assert found.select(compared).with_columns(pl.col("workload").cast(pl.String)).equals(expected.select(compared))


def test_one_call_draws_them_too() -> None:
    largest = max(files("traces/*.parquet"), key=lambda path: path.stat().st_size).stem
    setting = gavel.scenarios().row(by_predicate=pl.col("name") == largest, named=True)
    expected = gavel.recorded_jobs(largest)
    options = {"multi_gpu": setting["multi_gpu"], "priorities": setting["multi_priority"], "rates": gavel.oracle()}
    jobs = synth_gavel(expected.height, setting["seed"], rate_per_hour=3600 / setting["lam"], **options)
    found = pl.DataFrame(jobs.table())
    assert found["submit_s"].equals(expected["submit_s"]) and found["total_work"].equals(expected["total_work"])


@pytest.mark.parametrize("path", files("traces/gen_*.trace"), ids=lambda path: path.stem)
def test_the_trace_generators_files_come_out_byte_for_byte(path: Path, tmp_path: Path) -> None:
    match = re.fullmatch(r"gen_n(\d+)_l(\d+)_s(\d+)_(mg|sg)", path.stem)
    assert match is not None
    recorded, oracle = pl.DataFrame(import_jobs(path).table()), gavel.oracle()
    kinds = recorded.select(pl.col("workload").cast(pl.String), "num_gpu").iter_rows()
    rate = np.array([oracle.alone__kg[oracle.kind_index[kind], -1] for kind in kinds])
    hours = np.unique(np.rint(recorded["total_work"].to_numpy() / rate / 3600))
    jobs = synth_gavel_trace(
        int(match[1]), int(match[3]), mean_gap_s=float(match[2]), rates=oracle, multi_gpu=match[4] == "mg",
        priorities=recorded["weight"].n_unique() > 1, min_h=hours[0], max_h=hours[-1], lengths=len(hours),
    )  # fmt: skip
    assert write_trace(jobs, tmp_path / path.name, whole_seconds=True) == recorded.height
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", files("traces/*.trace"), ids=lambda path: path.stem)
def test_a_trace_survives_reading_and_writing(path: Path, tmp_path: Path) -> None:
    write_trace(import_jobs(path), tmp_path / path.name, whole_seconds=True)
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()


NATIVE = sorted((SHARED / "data/gavel/native").rglob("*.trace.gz"))


@pytest.mark.parametrize("path", NATIVE, ids=lambda path: path.name)
def test_published_traces_are_read(path: Path) -> None:
    jobs = import_jobs(path)
    found = pl.DataFrame(jobs.table()).with_columns(pl.col("workload").cast(pl.String))
    assert jobs.rows == found.height > 0 and found["submit_s"].is_sorted()
    held = pl.read_parquet(SHARED / "data/gavel/msr_traces.parquet")
    expected = held.filter(pl.col("_vc") == path.name.split(".")[0], pl.format("seed={}", "_seed") == path.parent.name)
    if "msr" in path.parts:
        assert expected.height == found.height
        names = {"job_type": "workload", "total_steps": "total_work", "arrival_time": "submit_s"}
        renamed = expected.rename(names | {"scale_factor": "num_gpu"})
        for column in (*names.values(), "num_gpu"):
            assert found[column].equals(renamed[column].cast(found[column].dtype)), column


@pytest.mark.parametrize("path", sorted((SHARED / "data/shockwave").rglob("*.trace*")), ids=lambda path: path.name[:12])
def test_shockwave_traces_are_read(path: Path) -> None:
    found = pl.DataFrame(import_jobs(path).table())
    assert (found["duration_s"] > 0).all() and set(found["task_role"].cast(pl.String)) <= {"static", "accordion", "gns"}


def test_a_workload_of_recorded_jobs_is_written_as_a_trace(tmp_path: Path) -> None:
    """What the format cuts: fractions of steps, and of arrivals below a millionth of a second."""
    scenario = drawn()[0]
    expected = gavel.recorded_jobs(scenario)
    write_trace(gavel.jobs(scenario), tmp_path / "jobs.trace.gz")
    found = pl.DataFrame(Workload.from_gavel(tmp_path / "jobs.trace.gz").table())
    assert found["total_work"].equals(expected["total_work"].floor())
    assert np.abs(found["submit_s"].to_numpy() - expected["submit_s"].to_numpy()).max() <= 5.1e-7
