"""Philly's log: attempts, sums, what is kept by which rules, what is refused and where."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from fastsim.errors import InputError, ScenarioError
from fastsim.workload import Workload
from fastsim.workload.generators.synergy import synth_synergy
from fastsim.workload.importers import philly
from fastsim.workload.importers.philly import import_jobs

HOUR = 3600


def attempt(start_h: float | None, hours: float, gpus: int = 1) -> dict[str, Any]:
    """An attempt from this hour of day 1 on; None = nobody knows when."""
    detail = [{"ip": f"m{i}", "gpus": ["gpu0"] * min(8, gpus - 8 * i)} for i in range((gpus + 7) // 8)]
    times = [None, "None"] if start_h is None else [clock(start_h), clock(start_h + hours)]
    return {"start_time": times[0], "end_time": times[1], "detail": detail}


def clock(hours: float) -> str:
    day, rest = divmod(round(hours * HOUR), 24 * HOUR)
    return f"2017-08-{day + 1:02d} {rest // HOUR:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"


def job(submit_h: float, *attempts: dict[str, Any]) -> dict[str, Any]:
    return {"submitted_time": clock(submit_h), "attempts": list(attempts), "status": "Pass", "vc": "v1", "jobid": "j"}


def kept(path: Path, jobs: list[dict[str, Any]], **options: Any) -> list[tuple[float, float, int]]:
    """(arrival, duration, GPUs) of what is kept, in hours."""
    path.write_bytes(gzip.compress(json.dumps(jobs).encode()))
    rows = import_jobs(path, **options).table().to_pylist()
    return [(row["submit_s"] / HOUR, row["duration_s"] / HOUR, row["num_gpu"]) for row in rows]


def test_a_job_runs_for_the_sum_of_its_attempts_on_the_gpus_of_the_last(tmp_path: Path) -> None:
    path = tmp_path / "log.json.gz"
    jobs = [
        job(5, attempt(6, 1, 4), attempt(8, 2, 12), attempt(None, 0)),
        job(0),  # never tried: neither a job nor the clock's beginning
        job(3, attempt(4, 0.5)),
        job(4, attempt(4, 0)),
    ]
    assert kept(path, jobs) == [(0, 0.5, 1), (2, 3, 12)]
    assert Workload.from_philly(path).metadata["fastsim.left_out"] == "2"
    row = Workload.from_philly(path).table().to_pylist()[1]
    assert (row["orig_start_s"], row["orig_end_s"], row["tenant"], row["orig_status"], row["native_id"]) == (
        3 * HOUR, 7 * HOUR, "v1", "Pass", "j",
    )  # fmt: skip


def test_synergy_keeps_what_its_last_attempt_survives(tmp_path: Path) -> None:
    path, options = tmp_path / "log.json.gz", {"rules": "synergy", "exponential": True}
    jobs = [
        job(1, attempt(1, 1, 2), attempt(None, 0, 2)),  # the last one never ran
        job(2, attempt(2, 1, 3)),
        job(3, attempt(3, 1, 24), attempt(5, 1, 16)),  # more than 16 GPUs count for nothing
        job(4, attempt(4, 0.5)),  # too short
        job(5, attempt(5, 170)),  # too long
        job(6, attempt(6, 1, 24)),
    ]
    assert kept(path, jobs, **options) == [(1, 1, 1), (2, 1, 16)]
    assert kept(path, jobs, **options, multi_gpu=False) == [(1, 1, 3), (2, 2, 16), (5, 1, 24)]


def test_synergys_own_arrivals_come_from_a_window_and_begin_at_0_where_the_original_stops_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = job(0, attempt(0, 1))
    late = [dict(job(0, attempt(1, 1, gpus)), submitted_time=f"2017-11-{day:02d} 00:00:00") for day, gpus in
            ((20, 1), (15, 3), (15, 2), (10, 4), (1, 1), (18, 8))]  # fmt: skip
    # Days 111, 106, 106, 101, 92 and 109 after the first job; 2400 to 3000 hours are days 100 to 125.
    path, few = tmp_path / "log.json.gz", [(2424, 1, 4), (2544, 1, 2), (2616, 1, 8), (2664, 1, 1)]
    assert kept(path, [early, *late], rules="synergy") == few
    for most, found in (
        (5, few),
        (4, [(h - 2424, *rest) for h, *rest in few]),
        (3, [(0, 1, 4), (120, 1, 2), (240, 1, 1)]),
    ):
        monkeypatch.setattr(philly, "SYNERGY_JOBS", most)
        assert kept(path, [early, *late], rules="synergy") == found


def test_jobs_whose_arrivals_are_drawn_keep_the_order_of_the_log(tmp_path: Path) -> None:
    sizes = {5: 8, 1: 2, 3: 4, 2: 16}  # the log is not sorted by arrival
    path = tmp_path / "log.json"
    path.write_text(json.dumps([job(hour, attempt(hour, 1, gpus)) for hour, gpus in sizes.items()]))
    workload = import_jobs(path, rules="synergy", exponential=True)
    assert workload.table()["submit_s"].to_pylist() == [0, HOUR, 2 * HOUR, 4 * HOUR]
    assert workload.table()["pod_id"].to_pylist() == [1, 3, 2, 0]
    workload.write(tmp_path / "log.parquet")
    for log in (path, workload, tmp_path / "log.parquet"):
        jobs = synth_synergy(6, log=log, multi_gpu=True).table()
        assert jobs["num_gpu"].to_pylist() == [8, 2, 4, 16, 8, 2], log
    by_arrival = synth_synergy(log=workload, multi_gpu=True, arrivals="log").table()
    assert by_arrival["num_gpu"].to_pylist() == [2, 16, 4, 8]
    # Other jobs of the trace are a workload as any other.
    assert synth_synergy(4, log=import_jobs(path), multi_gpu=True).table()["num_gpu"].to_pylist() == [2, 16, 4, 8]


def test_the_reduced_form(tmp_path: Path) -> None:
    path = tmp_path / "philly.csv"
    path.write_text(
        "timestamp,duration,num_gpus,gpu_time,cluster\n"
        "2017-10-09 07:00:10,66.0,1,66,a\n2017-10-09 07:00:00,5,2,10,b\n\n"
    )
    rows = import_jobs(path).table().to_pylist()
    assert [(row["submit_s"], row["duration_s"], row["num_gpu"], row["tenant"]) for row in rows] == [
        (0, 5, 2, "b"),
        (10, 66, 1, "a"),
    ]
    path.write_text("timestamp,duration,num_gpus\nmonday,5,2\n")
    with pytest.raises(InputError, match=r"philly.csv:2: found monday, 5.0, 2, expected a time"):
        import_jobs(path)
    path.write_text("timestamp,duration,num_gpus\n2017-10-09 07:00:10,66.0,32768\n")
    with pytest.raises(InputError, match=r"philly.csv:2: found .*, 32768, expected .* GPUs, 32,767 at most"):
        import_jobs(path)


def test_the_window_of_synergy_counts_from_the_first_day_of_the_log_that_the_reduced_form_lacks(tmp_path: Path) -> None:
    path = tmp_path / "philly.csv.gz"
    days = ("11-14 23", "11-15 01", "12-09 23", "12-10 01")
    rows = [f"2017-{day}:00:00,7200,{2**size}" for size, day in enumerate(days)]
    path.write_bytes(gzip.compress("\n".join(["timestamp,duration,num_gpus", *rows]).encode()))
    found = import_jobs(path, rules="synergy").table().to_pylist()
    assert [(row["submit_s"] / HOUR, row["num_gpu"]) for row in found] == [(2401, 2), (2999, 4)]
    drawn = import_jobs(path, rules="synergy", exponential=True).table().to_pylist()
    assert [(row["submit_s"], row["num_gpu"]) for row in drawn][:2] == [(0, 1), (2 * HOUR, 2)]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{}", "JSON of type dict, expected a list of jobs"),
        ("[{}]", "job 1: found KeyError: 'submitted_time'"),
        ('[{"submitted_time": "x", "attempts": []}]', "job 1: found ValueError: Invalid isoformat"),
        ('[{"submitted_time": null, "attempts": []}]', "submitted_time: found nothing"),
        ('[{"submitted_time": "2017-10-09 07:00:00", "attempts": [3]}]', "job 1: found TypeError"),
        ('[{"submitted_time": "2017-10-09 07:00:00", "attempts": [], "vc": ["a"]}]', r"job 1: vc: found \['a'\]"),
        ('[{"submitted_time": "2017-10-09 07:00:00", "attempts": [], "status": 3}]', "job 1: status: found 3"),
        ('[{"submitted_time": "2017-10-09 07:00:00", "attempts": [], "jobid": {}}]', "job 1: jobid: found {}"),
        ('[{"submitted_time": "2017-10-09 07:00:00", "attempts": [], "user": [1]}]', r"job 1: user: found \[1\]"),
        (
            '[{"submitted_time": "2017-10-09 07:00:00", "attempts": [{"start_time": null, "end_time": null, '
            '"detail": [{"ip": "m1", "gpus": "gpu0"}]}]}]',
            "gpus of 'gpu0' are no list",
        ),
        ('[{"submitted_time": ["2017"], "attempts": []}]', "job 1: found ValueError"),
        (
            '[{"submitted_time": "2017-10-09 07:00:00", "attempts": [{"start_time": null, "end_time": null, '
            f'"detail": [{{"ip": "m1", "gpus": {[0] * 2**15}}}]}}]}}]',
            "job 1: found ValueError: 32,768 GPUs are more than 32,767",
        ),
        (
            '[{"submitted_time": "2017-10-09 07:00:00", "attempts": [{"start_time": "2017-10-09 07:00:00+01:00", '
            '"end_time": null, "detail": []}]}]',
            "has a time zone",
        ),
        ('[{"submitted_time": "2017-10-09 07:00:00", "attempts": []}]', "no jobs with attempts"),
        ("[", "a Philly log"),
    ],
)
def test_a_log_that_is_none_is_one_clear_error(tmp_path: Path, document: str, message: str) -> None:
    path = tmp_path / "log.json"
    path.write_text(document)
    with pytest.raises(InputError, match=message):
        import_jobs(path)


def test_unknown_rules_missing_files_and_nothing_left_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="one of all, synergy"):
        import_jobs(tmp_path / "log.json", rules="blox")
    with pytest.raises(InputError, match="no such file"):
        import_jobs(tmp_path / "log.json")
    with pytest.raises(InputError, match="no job that the rules 'synergy' keep"):
        kept(tmp_path / "log.json.gz", [job(1, attempt(1, 0.1))], rules="synergy", exponential=True)
