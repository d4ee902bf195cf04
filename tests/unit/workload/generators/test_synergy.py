"""Synergy's jobs as workloads: options, what the file says of them, logs of all kinds, refusals."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import polars as pl
import pytest

import fastsim as fs
from fastsim.errors import ScenarioError
from fastsim.performance.sensitivity import Sensitivity
from fastsim.scenario import run_inputs
from fastsim.workload import Workload
from fastsim.workload.generators.synergy import synth_synergy


def test_a_workload_of_jobs_can_be_read_again_and_again(tmp_path: Path) -> None:
    jobs = Workload.synth("synergy", jobs=90, rate_per_hour=6, seed=2)
    assert jobs.rows == 90 and jobs.table() == jobs.table() == pickle.loads(pickle.dumps(jobs)).table()
    assert jobs.write(tmp_path / "jobs.parquet") == 90
    again = Workload.scan(tmp_path / "jobs.parquet")
    assert again.checksum() == jobs.checksum()
    content = json.loads(again.metadata["fastsim.params"])
    assert (content["rate_per_hour"], content["split"], content["log"]) == (6, [20, 70, 10], None)


def test_the_stream_behind_goes_on_for_ever_unless_a_log_ends_it() -> None:
    jobs = synth_synergy(10, log=4)
    stream = jobs.endless()
    assert stream is not None
    assert stream.take(25).to_pylist() == synth_synergy(25, log=4).table().to_pylist()
    ended = synth_synergy(log=jobs, arrivals="log")
    assert ended.endless() is None and ended.rows == 10
    assert ended.table()["submit_s"] == jobs.table()["submit_s"]


def test_a_log_is_a_number_a_workload_or_a_file(tmp_path: Path) -> None:
    mixed = synth_synergy(40, seed=3)
    mixed.write(tmp_path / "log.parquet")
    words = f"synth:synergy?jobs=60&log={tmp_path / 'log.parquet'}&multi_gpu=true&durations=log"
    found = run_inputs.workload_from(words).workload.table()
    assert found == synth_synergy(60, log=mixed, multi_gpu=True, durations="log").table()
    assert found["num_gpu"].to_pylist()[:40] == mixed.table()["num_gpu"].to_pylist()
    single = synth_synergy(60, log=40).table()
    assert set(single["num_gpu"].to_pylist()) == {1}
    assert single["duration_s"] != synth_synergy(60, log=40, durations="short").table()["duration_s"]


def test_a_philly_log_gives_the_jobs_that_synergy_keeps(tmp_path: Path) -> None:
    attempt = {
        "start_time": "2017-10-07 02:00:00",
        "end_time": "2017-10-07 03:00:00",
        "detail": [{"ip": "m", "gpus": ["g"] * 4}],
    }
    job = {"status": "Pass", "vc": "v", "jobid": "j", "submitted_time": "2017-10-07 01:00:00", "user": "u"}
    (tmp_path / "log.json").write_text(json.dumps([job | {"attempts": [attempt]}, job | {"attempts": []}]))
    found = synth_synergy(2, log=tmp_path / "log.json", multi_gpu=True).table()
    assert found["num_gpu"].to_pylist() == [4, 4]


def test_iterations_are_those_of_the_servers(tmp_path: Path) -> None:
    own = Sensitivity.default(4)
    four = synth_synergy(9, cpus_per_gpu=4).table()
    assert four == synth_synergy(9, sensitivity=own).table() != synth_synergy(9).table()
    own.write(tmp_path / "s.parquet")
    assert synth_synergy(9, sensitivity=tmp_path / "s.parquet").table() == four


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jobs": -1}, "synth.jobs: found -1"),
        ({"jobs": 1, "seed": 0.5}, "synth.seed"),
        ({"jobs": 1, "pickled": 1}, "true or false"),
        ({}, "only a log's arrivals come to an end"),
        ({"jobs": 1, "log": 0}, "1 job or more"),
        ({"jobs": 1, "sensitivity": Sensitivity.default(), "cpus_per_gpu": 3}, "was made for its servers"),
    ],
)
def test_wrong_options_are_one_clear_error(options: dict[str, object], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        synth_synergy(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", ["fifo", "max_min_fairness"])
def test_the_jobs_run_under_any_policy_at_their_fair_shares(policy: str) -> None:
    rates = Sensitivity.default().oracle(("v100",))
    result = fs.simulate("synergy:1", "synth:synergy?jobs=30&rate_per_hour=2&log=100", policy, rates=rates)
    jobs = result.jobs
    assert set(jobs["state"]) == {"finished"} and jobs["work_done"].equals(jobs["total_work"])
    # Whole iterations are a little less than the duration that was drawn.
    drawn = synth_synergy(30, rate_per_hour=2, log=100).table()["duration_s"].to_pylist()
    lost_s = [duration - ideal for duration, ideal in zip(drawn, jobs["ideal_s"], strict=True)]
    assert min(lost_s) >= 0 and max(lost_s) < 0.79  # one iteration of the slowest model


def test_a_window_is_filled_for_ever() -> None:
    rates = Sensitivity.default().oracle(("v100",))
    result = fs.simulate("synergy:8", "synth:synergy?jobs=30&rate_per_hour=3", "fifo", rates=rates, window="20:30")
    done = result.jobs.filter(pl.col("pod_id").is_between(20, 29))
    assert len(done) == 10 and set(done["state"]) == {"finished"} and len(result.jobs) > 30
