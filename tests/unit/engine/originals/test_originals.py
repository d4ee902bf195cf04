"""Result files of original simulators beside runs of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.engine.originals.adaptive_log import rank_p99, write_log
from fastsim.engine.originals.differences import counts, differences, original_from
from fastsim.engine.originals.original_run import Printed, printed
from fastsim.engine.result import Result
from fastsim.errors import FastsimError, ResultError

LIST = "name,time,application,num_replicas,batch_size\n" + "".join(
    f"{app}-{number},{70 * number},{app},{number % 3 + 1},{size}\n"
    for number, (app, size) in enumerate([("cifar10", 512), ("ncf", 32768), ("cifar10", 1024), ("bert", 12)])
)


def unequal(rows: pl.DataFrame) -> list[tuple[Any, ...]]:
    return rows.filter(~pl.col("equal")).select("figure", "of").rows()


def of(result: Result, text: str, tolerance: float = 0.0) -> pl.DataFrame:
    return differences(result, original_from(text), tolerance)


def test_digits_are_those_that_were_printed() -> None:
    assert printed("12.50") == Printed(12.5, 0.005) and printed("7") == Printed(7.0, 0.0)
    assert printed("1.5e-07").half == 0 and printed("0.1234567890123").half == 0
    assert printed("2.00").times(3600) == Printed(7200.0, 18.0)


# ---------------------------------------------------------------------- Gavel


@pytest.fixture(scope="module")
def gavel(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    log = tmp_path_factory.mktemp("gavel") / "run.log"
    jobs = "synth:gavel?jobs=12&rate_per_hour=4&seed=3&priorities=true"
    return fs.simulate("gavel:2:2:2", jobs, "fifo", log=str(log), record="all"), log


def test_a_log_of_gavel_has_the_figures_of_its_run(gavel: tuple[Result, Path]) -> None:
    result, log = gavel
    rows = of(result, f"gavel:{log}")
    assert unequal(rows) == []
    table = {row["figure"]: row["values"] for row in counts(rows).to_dicts()}
    assert table["jct_s"] == 12 and {"end_s", "jct_mean_s", "jct_high_priority_s", "utilization_pct", "jobs"} <= set(
        table
    )


def test_what_differs_is_named(gavel: tuple[Result, Path], tmp_path: Path) -> None:
    result, log = gavel
    text = log.read_text()
    jct = f"{result.jobs['jct_s'][5]:.3f}"
    (tmp_path / "a.log").write_text(text.replace(f"Job 5: {jct}", f"Job 5: {float(jct) + 0.002:.3f}"))
    assert unequal(of(result, f"gavel:{tmp_path / 'a.log'}")) == [("jct_s", "5")]
    assert unequal(of(result, f"gavel:{tmp_path / 'a.log'}", 1e-6)) == []
    (tmp_path / "b.log").write_text(text.replace(f"Job 5: {jct}", f"Job 77: {jct}"))
    row = of(result, f"gavel:{tmp_path / 'b.log'}").filter(pl.col("of") == "77").to_dicts()[0]
    assert row["ours"] is None and not row["equal"]
    (tmp_path / "c.log").write_text(text.replace(f"Job 5: {jct}\n", ""))
    assert unequal(of(result, f"gavel:{tmp_path / 'c.log'}")) == [("jobs", None)]


def test_only_jobs_of_the_window_are_compared(tmp_path: Path) -> None:
    log = tmp_path / "window.log"
    jobs = "synth:gavel?jobs=12&rate_per_hour=4&seed=3"
    result = fs.simulate("gavel:2:2:2", jobs, "fifo", window="3:7", log=str(log), record="all")
    rows = of(result, f"gavel:{log}")
    assert unequal(rows) == [] and rows.filter(pl.col("figure") == "jobs")["ours"].item() == 4


# ---------------------------------------------------------------------- Synergy


def test_synergys_log_and_tables(tmp_path: Path) -> None:
    jobs = "synth:synergy?jobs=9&rate_per_hour=4&seed=2"
    result = fs.simulate("synergy:2", jobs, "fifo+tune", rates="synergy", round_s=300, record="all")
    hours = {row["pod_id"]: row["jct_s"] / 3600 for row in result.jobs.to_dicts()}
    ends = "".join(
        f"runner - finish_job - INFO - [{row['pod_id']}] : Finished {row['workload']} at {row['end_s'] / 3600:.2f}hrs, "
        f"arrival:{row['submit_s'] / 3600:.2f}hrs, iter=0.10s, num_iter=7\n"
        for row in result.jobs.to_dicts()
    )
    column = pl.Series(list(hours.values()))
    means = f"Mean =  {sum(hours.values()) / len(hours)}\n99th =  {column.quantile(0.99, 'linear')}\n"
    means += f"99.9th =  {column.quantile(0.999, 'linear')}\n"
    (tmp_path / "out.log").write_text(ends + means)
    rows = of(result, f"synergy:{tmp_path / 'out.log'}")
    assert unequal(rows) == [] and len(rows) == 9 + 3
    table = "".join(f"{number},{job},{value!r},0.5\n" for number, (job, value) in enumerate(hours.items()))
    (tmp_path / "job_completion.csv").write_text(",job id,time (hours),cdf\n" + table)
    rows = of(result, f"synergy:{tmp_path / 'job_completion.csv'}")
    assert unequal(rows) == [] and len(rows) == 9 + 2
    (tmp_path / "sweep_9.0.csv").write_text((tmp_path / "job_completion.csv").read_text())  # there in seconds
    assert len(unequal(of(result, f"synergy:{tmp_path / 'sweep_9.0.csv'}"))) == 9 + 1


# ---------------------------------------------------------------------- Sia, Pollux


@pytest.fixture(scope="module")
def adaptive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    folder = tmp_path_factory.mktemp("sia")
    (folder / "jobs.csv").write_text(LIST)
    result = fs.simulate("sia:1:1:1", f"sia:{folder / 'jobs.csv'}", "sia", round_s=60, record="all")
    assert write_log(result, folder / "run.log") == len((folder / "run.log").read_text().splitlines())
    return result, folder


def test_a_written_log_reads_back_equal(adaptive: tuple[Result, Path]) -> None:
    result, folder = adaptive
    rows = of(result, f"sia:{folder / 'run.log'}")
    assert unequal(rows) == []
    table = {row["figure"]: row["values"] for row in counts(rows).to_dicts()}
    assert table == {
        "jct_mean_s": 1, "jct_p99_rank_s": 1, "makespan_s": 1, "round_gpu_hours_mean": 1, "job_rounds": 1, "jobs": 1,
        "jct_s": 4, "charged_restarts": 4,
    }  # fmt: skip
    assert result.jobs["charged_restarts"].sum() > 0


def test_a_log_shows_allocations_of_the_time(adaptive: tuple[Result, Path]) -> None:
    result, folder = adaptive
    records = [json.loads(line) for line in (folder / "run.log").read_text().splitlines()]
    assert [record["timestamp"] for record in records] == [60.0 * number for number in range(len(records))]
    assert [job["name"] for job in records[0]["submitted_jobs"]] == ["cifar10-0"]
    first = records[0]["submitted_jobs"][0]
    assert (first["num_restarts"], first["completion_time"], len(first["allocation"][1])) == (0, None, 1)
    assert all(job["completion_time"] is not None and not job["allocation"] for job in records[-1]["submitted_jobs"])
    held = sum(len(job["allocation"][1]) for record in records for job in record["submitted_jobs"] if job["allocation"])
    late = LIST.replace("cifar10-0,0,", "cifar10-0,30,")
    (folder / "late.csv").write_text(late)
    write_log(fs.simulate("sia:1:1:1", f"sia:{folder / 'late.csv'}", "sia", round_s=60, record="all"), folder / "l.log")
    assert json.loads((folder / "l.log").read_text().splitlines()[0])["timestamp"] == 60
    assert held * 60 / 3600 == pytest.approx(result.jobs["round_gpu_hours"].sum())


def test_completion_times_alone_and_times_as_texts(adaptive: tuple[Result, Path], tmp_path: Path) -> None:
    result, _ = adaptive
    times = dict(result.jobs.select("native_id", "jct_s").iter_rows())
    (tmp_path / "summary.json").write_text(json.dumps({"jcts": {"w-1": times, "w-2": {}}}))
    assert unequal(of(result, f"pollux:{tmp_path / 'summary.json'}?run=w-1")) == []
    records = [
        {"timestamp": 60.0 * number, "submitted_jobs": [
            {"name": "a", "epoch": 3, "allocation": ["node-1"] if number < 3 else [], "batch_size": 8,
             "submission_time": "2021-03-01T00:00:30Z",
             "completion_time": None if number < 3 else "2021-03-01T00:02:30Z"},
        ]} for number in (1, 2, 3)
    ]  # fmt: skip
    (tmp_path / "monitor.log").write_text("".join(json.dumps(record) + "\n" for record in records))
    run = original_from(f"pollux:{tmp_path / 'monitor.log'}")
    assert {name: value.value for name, value in run.figures.items()} == {
        "jct_mean_s": 120.0, "jct_p99_rank_s": 120.0, "makespan_s": 120.0, "round_gpu_hours_mean": 120 / 3600,
        "job_rounds": 2.0,
    }  # fmt: skip
    assert rank_p99(range(200)) == 198


# ---------------------------------------------------------------------- FGD, PWR


def simon_files(result: Result, folder: Path) -> None:
    """The log and the tables that the original would have written of a run."""
    text, rows = "", []
    for row in result.timeline.to_dicts():
        free = row["frag_milli"] + row["q3_satisfied"]
        ratio, gpus = 100 * row["frag_milli"] / free, row["gpu_milli_capacity"] // 1000
        q124 = 100 * (row["q1_lack_both"] + row["q2_lack_gpu"] + row["q4_lack_cpu"]) / free
        report = f"Frag amount: {row['frag_milli']:.2f}; Frag ratio: {ratio:.2f}%; Q124 ratio: {q124:.2f}%; (origin)"
        used = (row["active_nodes"], row["active_node_gpus"], row["gpu_milli_alloc"], gpus, row["arrived_gpu_milli"])
        alloc = "Used nodes: {}; Used GPUs: {}; Used GPU Milli: {}; Total GPUs: {}; Arrived GPU Milli: {}".format(*used)
        power = f"Total: {row['power_w']:.1f}; CPU: {row['power_cpu_w']:.1f}; GPU: {row['power_gpu_w']:.1f}"
        bellman = "[Report]; Frag amount: 1.00; Frag ratio: 2.00%; (bellman)"
        for line in (f"[Report]; {report}", bellman, f"[Alloc]; {alloc}", f"[Power]; {power}"):
            text += f'time="2023-01-01T00:00:00Z" level=info msg="{line}\\n"\n'
        rows.append((round(row["frag_milli"], 2), *used))
    text += f'level=info msg="there are {result.summary["pods_unplaced"][0]} unscheduled pods\\n"\n'
    (folder / "log-fgd.log").write_text(text)
    names = ("origin_milli", "used_nodes", "used_gpus", "used_gpu_milli", "total_gpus", "arrived_gpu_milli")
    head = ",".join(f"policy_FGD-dr_0.0-{name}" for name in names) + ",policy_PWR-used_gpus"
    lines = [",".join(map(str, row)) + ",5" for row in rows[:-1]] + [",".join(map(str, rows[-1])) + ","]
    (folder / "analysis_allo.csv").write_text("\n".join([head, *lines]) + "\n")


def test_states_after_every_pod(tmp_path: Path) -> None:
    result = fs.simulate("openb:10", "synth:openb?pods=90&seed=1", "fgd", record="all")
    simon_files(result, tmp_path)
    rows = of(result, f"fgd:{tmp_path / 'log-fgd.log'}")
    assert unequal(rows) == [] and len(rows) == 1 + 1 + 3 + 5 + 3
    rows = of(result, f"fgd:{tmp_path / 'analysis_allo.csv'}?run=policy_FGD-dr_0.0")
    assert unequal(rows) == [] and len(rows) == 1 + 6
    other = fs.simulate("openb:10", "synth:openb?pods=90&seed=1", "best_fit", record="all")
    assert unequal(of(other, f"fgd:{tmp_path / 'log-fgd.log'}"))


# ---------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("text", "content", "told"),
    [
        ("gavle:x.log", "", "did you mean 'gavel'?"),
        ("x.log", "", "expected SYSTEM:FILE"),
        ("gavel:none.log", None, "none.log: found No such file"),
        ("gavel:x.log", "nothing\n", "x.log: found no line that is known"),
        ("gavel:x.log?job=3", "", "found 'job=3', expected run=NAME"),
        ("gavel:x.log", 2 * "Total duration: 1.000 seconds (0.00 hours)\n", "x.log:2: found a second end_s"),
        ("synergy:x.log", "[3] : Started\n", "x.log: found no line that is known"),
        ("synergy:x.csv", "job id,time (hours)\n", "x.csv: found no line that is known"),
        ("synergy:x.csv", "job id,time (hours)\n1,long\n", "x.csv:2: time (hours): found 'long'"),
        ("sia:x.log", '{"timestamp": 1, "submitted_jobs": []}\n{"timestamp":\n', "x.log:2"),
        ("sia:x.log", '{"timestamp": 1, "submitted_jobs": [{"name": "a"}]}\n', "x.log:1: found no 'completion_time'"),
        ("sia:x.json", '{"jcts": {"a": {}, "b": {}}}', "x.json: found runs 'a', 'b', expected one run"),
        ("sia:x.json?run=c", '{"jcts": {"a": {}}}', "expected a run 'c'"),
        ("fgd:x.log", "[Alloc]; Used nodes\n", "x.log:1: found 'Used nodes', expected used_nodes"),
        ("fgd:x.log", "[Alloc]; Used nodes: 3\n[AllocCPU]; Used: 1\n[AllocCPU]; Used: 1\n", "events by quantity"),
        ("fgd:x.csv", "a-used_nodes,a-used_gpus\n1,2\n2,x\n", "x.csv:3: a-used_gpus: found 'x', expected a number"),
        ("fgd:x.csv", "a,b\n1,2\n", "x.csv: found no line that is known"),
    ],
)
def test_mistakes_name_file_and_line(text: str, content: str | None, told: str, tmp_path: Path) -> None:
    system, colon, name = text.partition(":")
    if content is not None and name:
        (tmp_path / name.partition("?")[0]).write_text(content)
    with pytest.raises(FastsimError) as caught:
        original_from(f"{system}:{tmp_path}/{name}" if colon else system)
    assert told in str(caught.value) and caught.value.exit_code == 2


def test_runs_without_a_common_figure_are_refused(gavel: tuple[Result, Path], tmp_path: Path) -> None:
    result, _ = gavel
    (tmp_path / "sia.json").write_text('{"jcts": {"a": {}}}')
    with pytest.raises(FastsimError, match="no figure that the run has, too"):
        of(result, f"sia:{tmp_path / 'sia.json'}")
    with pytest.raises(ResultError, match="a run without adaptive jobs"):
        write_log(result, tmp_path / "x.log")
