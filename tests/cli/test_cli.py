"""Every verb does what its public function does, and prints the result as text or JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from fastsim.cli.main import exit_code
from fastsim.engine.result import Result
from fastsim.policies import registry
from fastsim.workload import Workload
from tests.cli.terminal import fastsim
from tests.needs import needed
from tests.objects import node, pod, written

SMALL = ("--cluster", "openb:20?seed=1", "--workload", "synth:openb?pods=40&seed=2")
CSV = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,1000,100,1,500\np1,2000,200,2,1000\np2,500,50,0,0\n"


def called(*arguments: object) -> int:
    """Run one command in this process, which is fast."""
    return exit_code([str(word) for word in arguments])


def test_run_prints_the_summary(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert called("run", *SMALL, "--policy", "0.9*fgd + 0.1*pwr") == 0
    out = capsys.readouterr().out
    assert out.startswith("pods") and "GPU allocation" in out and "pods/s" in out


def test_pods_that_are_dropped_are_named_first(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ("run", "--cluster", "openb:3?seed=1", "--workload", "synth:openb?pods=400&seed=2", "--policy", "fgd")
    assert called(*words, "--out", tmp_path / "run") == 0
    output = capsys.readouterr()
    count = Result.load(tmp_path / "run").summary["pods_unplaced"][0]
    assert count > 0 and output.out.splitlines()[1].split() == ["pods", "that", "fitted", "nowhere", str(count)]
    advice = "pods found no room and were dropped; to let them wait: --queue fifo"
    assert f"fastsim: warning: {count} of 400 {advice}\n" in output.err
    assert called(*words, "--queue", "fifo") == 0
    assert "dropped" not in capsys.readouterr().err


def test_run_writes_a_folder_and_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "a"
    assert called("run", *SMALL, "--seed", 3, "--out", folder, "--json") == 0
    content = json.loads(capsys.readouterr().out)
    saved = Result.load(folder)
    assert content["summary"]["pods"] == 40 and content["provenance"] == saved.provenance
    columns = ("pod_id", "native_id", "node_id", "node", "gpu_ids", "start_s", "end_s", "reason")
    assert set(columns) <= set(pl.read_parquet(folder / "placements.parquet").columns)
    assert saved.provenance["scenario"]["seed"] == 3 and not saved.timeline.is_empty()


def test_a_stopped_run_is_resumed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pods, folder = tmp_path / "pods.parquet", tmp_path / "run"
    Workload.synth("openb", pods=400, seed=2).write(pods)
    words = ("run", "--cluster", "openb:20", "--workload", pods, "--checkpoint", 100, "--out", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fastsim.engine.online.run.closing_stages", _interrupt)
        assert called(*words) == 130
    assert capsys.readouterr().err.endswith(f"fastsim: interrupted; go on with: fastsim resume {folder}\n")
    assert {path.name for path in tmp_path.iterdir()} == {"pods.parquet", "run.checkpoint"}
    assert called(*words) == 1 and "an unfinished run is there" in capsys.readouterr().err
    assert called("resume", folder) == 0
    assert f"saved to {folder}" in capsys.readouterr().out and len(Result.load(folder).jobs) == 400
    assert called("resume", folder) == 2  # complete, and nothing to go on from
    assert called("resume", tmp_path / "none") == 1


def test_a_kept_checkpoint_is_forked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pods, base = tmp_path / "pods.parquet", tmp_path / "base"
    Workload.synth("openb", pods=400, seed=2, arrivals="order", durations="forever").write(pods)
    words = ("run", "--cluster", "openb:20", "--workload", pods, "--out", base)
    assert called(*words, "--keep-checkpoint") == 2
    assert "--keep-checkpoint: found no --checkpoint" in capsys.readouterr().err
    assert called(*words, "--checkpoint", 300, "--keep-checkpoint") == 0
    changes = ("--queue", "fifo", "--gpu-pick", "worst", "--seed", 7, "--until", 380, "--inflation", 1.1)
    capsys.readouterr()
    assert called("fork", base, "--at", 120, "--policy", "pwr", *changes, "-o", tmp_path / "a", "--json") == 0
    told, saved = json.loads(capsys.readouterr().out), Result.load(tmp_path / "a")
    assert told["provenance"] == saved.provenance and saved.provenance["policy"] == "pwr"
    past, options = saved.provenance["forked_from"], saved.provenance["options"]
    assert (past["scenario"]["policy"], past["pods"], past["at_s"]) == ("fgd", 121, 120.0)
    assert (options["seed"], options["until_s"], options["inflation"]["ratio"]) == (7, 380.0, 1.1)
    assert (saved.provenance["plan"]["queue"], saved.provenance["plan"]["gpu_pick"]) == ("fifo", "worst")
    assert called("fork", base, "--out", tmp_path / "b") == 0
    assert f"saved to {tmp_path / 'b'}" in capsys.readouterr().out
    assert Result.load(tmp_path / "b").placements.equals(Result.load(base).placements)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"pods.parquet", "base", "base.checkpoint", "a", "b"}


def test_an_interrupted_fork_is_resumed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pods, base, out = tmp_path / "pods.parquet", tmp_path / "base", tmp_path / "other"
    Workload.synth("openb", pods=400, seed=2).write(pods)
    words = ("--cluster", "openb:20", "--workload", pods, "--checkpoint", 300, "--keep-checkpoint", "--out", base)
    assert called("run", *words) == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fastsim.engine.online.run.closing_stages", _interrupt)
        assert called("fork", base, "--at", 9, "--policy", "pwr", "-o", out) == 130
    assert capsys.readouterr().err.endswith(f"fastsim: interrupted; go on with: fastsim resume {out}\n")
    assert called("resume", out) == 0 and Result.load(out).provenance["policy"] == "pwr"
    assert called("fork", base, "--at", 9, "--policy", "pwr", "-o", tmp_path / "whole") == 0
    assert Result.load(tmp_path / "whole").jobs.equals(Result.load(out).jobs)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("every", ["0", "often", "-5s", "s", "nans"])
def test_a_wrong_distance_of_checkpoints_is_one_line(capsys: pytest.CaptureFixture[str], every: str) -> None:
    assert called("run", *SMALL, "--out", "never", f"--checkpoint={every}") == 2
    assert "--checkpoint: found" in capsys.readouterr().err and not Path("never").exists()


def test_run_refuses_a_used_folder_unless_forced(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "out"
    for _ in range(2):
        code = called("run", *SMALL, "--out", folder)
    assert code == 2 and "--force" in capsys.readouterr().err
    assert called("run", *SMALL, "--out", folder, "--force", "--record", "none") == 0
    assert not Result.load(folder).recorded("jobs")


def test_force_never_deletes_what_is_not_a_result(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for verb in (("run", *SMALL), ("demo", "--nodes", 5, "--pods", 5)):
        assert called(*verb, "--out", tmp_path, "--force") == 2
        assert "not of fastsim" in capsys.readouterr().err
    assert called("run", *SMALL, "--out", tmp_path / "notes.txt", "--force") == 2
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_options_come_before_the_scenario_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('cluster = "openb:20"\nworkload = "synth:openb?pods=30&seed=1"\npolicy = "pwr"\nseed = 4\n')
    assert called("run", "--scenario", path, "--policy", "random", "--json") == 0
    scenario = json.loads(capsys.readouterr().out)["provenance"]["scenario"]
    assert (scenario["policy"], scenario["seed"]) == ("random", 4)


def test_every_option_reaches_the_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    options = (
        *("--typical", "same?threshold=60", "--queue", "fifo", "--gpu-pick", "worst", "--record", "timeline"),
        *("--sample-s", 60, "--until", 3600, "--deschedule", "cos_sim:0.1", "--inflation", 1.1),
    )
    assert called("run", *SMALL, *options, "--json") == 0
    scenario = json.loads(capsys.readouterr().out)["provenance"]["scenario"]
    assert scenario["typical"] == "same?threshold=60" and scenario["deschedule"] == ["cos_sim:0.1"]
    assert (scenario["queue"], scenario["gpu_pick"], scenario["inflation"]) == ("fifo", "worst", 1.1)
    assert (scenario["record"], scenario["sample_s"], scenario["until_s"]) == ("timeline", 60.0, 3600.0)


def test_import_and_synth_write_jobs_and_rates(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rates = tmp_path / "rates.json"
    rates.write_text(
        json.dumps({"k80": {"('A3C', 1)": {"null": 3.5}}, "k80_unconsolidated": {"('A3C', 1)": {"null": 2}}})
    )
    assert called("import", "gavel-rates", rates, "-o", tmp_path / "rates.parquet") == 0
    assert capsys.readouterr().out.endswith("rates.parquet: 2 rates\n")
    words = ("--jobs", 9, "--rate-per-hour", 6, "--seed", 3, "--set", f"rates={tmp_path / 'rates.parquet'}")
    for name in ("a.parquet", "a.trace"):
        assert called("synth", "gavel", *words, "-o", tmp_path / name) == 0
        assert capsys.readouterr().out.endswith(f"{name}: 9 jobs\n")
    assert called("import", "gavel", tmp_path / "a.trace", "-o", tmp_path / "b.parquet") == 0
    drawn, read = (pl.read_parquet(tmp_path / f"{name}.parquet") for name in "ab")
    assert drawn["workload"].to_list() == read["workload"].to_list() == ["A3C"] * 9
    assert drawn["total_work"].floor().to_list() == read["total_work"].to_list()
    assert called("synth", "gavel", "--script", *words, "-o", tmp_path / "c.trace") == 0
    assert all(line.split("\t")[-1].isdecimal() for line in (tmp_path / "c.trace").read_text().splitlines())
    assert called("synth", "gavel", "--script", *words, "-o", tmp_path / "c.parquet") == 0
    assert set(pl.read_parquet(tmp_path / "c.parquet")["duration_s"]) <= {3600.0, 7200.0, 10800.0, 14400.0}


def test_import_and_synth_write_pods(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_text(CSV)
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,96000,393216,8,G2\n")
    assert called("import", "openb", tmp_path / "pods.csv", "-o", tmp_path / "a.parquet", "--drop", "cpu_only") == 0
    assert called("import", "openb", tmp_path / "nodes.csv", "--nodes", "-o", tmp_path / "n.parquet") == 0
    assert called("synth", "openb", "--pods", 50, "--set", "arrivals=order", "-o", tmp_path / "b.parquet") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[2] for line in lines] == ["2 pods", "1 nodes", "50 pods"]
    assert Workload.scan(tmp_path / "b.parquet").table()["submit_s"].to_pylist() == [float(i) for i in range(50)]
    assert called("run", "--cluster", tmp_path / "n.parquet", "--workload", tmp_path / "a.parquet") == 0


def test_every_import_verb_is_listed() -> None:
    from fastsim.cli.data import import_
    from fastsim.cli.list import IMPORTERS

    assert set(IMPORTERS) == set(import_.commands)


@pytest.mark.parametrize("kind", ["policies", "clusters", "workloads", "importers", "gpus", "mig"])
def test_list(capsys: pytest.CaptureFixture[str], kind: str) -> None:
    assert called("list", kind) == 0
    text = capsys.readouterr().out
    assert called("list", kind, "--json") == 0
    names = json.loads(capsys.readouterr().out)
    assert len(text.splitlines()) == len(names) and all(name in text for name in names)


@pytest.mark.parametrize("name", registry.names())
def test_describe(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert called("describe", name) == 0
    text = capsys.readouterr().out
    assert called("describe", name, "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["name"] == name and text.startswith(f"{name} [{content['engine']}]\n")
    assert all(f"\n  {parameter['name']}={parameter['default']}" in text for parameter in content["parameters"])
    assert ("gpu_pick=None" in text) == (content["engine"] == "pods")


def test_compare_reads_saved_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    needed("altair")
    for policy in ("fgd", "pwr"):
        assert called("run", *SMALL, "--policy", policy, "--out", tmp_path / policy) == 0
    capsys.readouterr()
    files = ("--html", tmp_path / "r.html", "--svg", tmp_path / "r.svg", "--metric", "power")
    assert called("compare", tmp_path / "fgd", tmp_path / "pwr", *files) == 0
    assert "fgd" in capsys.readouterr().out and (tmp_path / "r.html").exists() and (tmp_path / "r.svg").exists()
    assert called("compare", tmp_path / "fgd", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "fgd"


@pytest.mark.long
def test_demo_leaves_a_report(tmp_path: Path) -> None:
    needed("altair")
    done = fastsim("demo", "--nodes", 20, "--pods", 200, "--seed", 3, "--workers", 2, cwd=tmp_path)
    assert (done.code, done.err.count("\n")) == (0, done.err.count("warning")), done.err
    assert "0.9*fgd + 0.1*pwr" in done.out and "gpu_clustering" in done.out
    folder = tmp_path / "fastsim-demo"
    assert {path.name for path in folder.iterdir()} == {"report.html", "report.png", "table.csv", "runs"}
    assert len(list((folder / "runs").iterdir())) == 8
    assert fastsim("compare", *sorted((folder / "runs").iterdir()), "--json").code == 0


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], ["run", "-h"], ["import", "--help"], ["synth", "openb", "--help"], ["--version"]):
        assert exit_code(words) == 0
    assert exit_code([]) == 2
    assert "Usage: fastsim" in capsys.readouterr().out


def test_help_loads_no_table_or_plot_library() -> None:
    code = (
        "import sys; from fastsim.cli.main import exit_code; exit_code(['--help']); exit_code(['list', 'policies']);"
        "heavy = {'numpy', 'polars', 'pyarrow', 'altair', 'rich', 'scipy'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_adaptive_jobs_and_applications(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    jobs, table, apps = tmp_path / "jobs.csv", tmp_path / "jobs.parquet", tmp_path / "apps.parquet"
    assert called("synth", "sia", "-o", jobs, "--jobs", 12, "--style", "helios", "--set", "rigid_share=0.5") == 0
    for source in ("sia", "pollux"):
        assert called("import", source, jobs, "-o", table) == 0
        assert Workload.scan(table).table().num_rows == 12
    folder = tmp_path / "applications" / "own"
    folder.mkdir(parents=True)
    (folder / "validation-8.csv").write_text("progress,iteration,metric,grad_sqr,grad_var\n1,1,1,1,1\n")
    for name in ("placements-t4.csv", "placements.csv"):
        (folder / name).write_text("placement,local_bsz,step_time,sync_time\n1,8,0.5,0\n")
    for source in ("sia", "pollux"):
        assert called("import", source, folder.parent, "-o", apps) == 0
        assert f"{apps}: 1 applications" in capsys.readouterr().out


def test_synergys_jobs_and_clusters_are_generated_and_imported(tmp_path: Path) -> None:
    for name in ("a.csv", "a.parquet"):
        assert called("synth", "synergy", "--jobs", 7, "--set", "log=100", "-o", tmp_path / name) == 0
    assert called("import", "synergy", tmp_path / "a.csv", "-o", tmp_path / "b.parquet") == 0
    drawn, read = (pl.read_parquet(tmp_path / f"{name}.parquet") for name in "ab")
    assert all(drawn[name].to_list() == read[name].to_list() for name in ("submit_s", "workload", "total_work"))
    (tmp_path / "c.ini").write_text("[CLUSTER]\nservers_per_rack = 2\n")
    assert called("import", "synergy", tmp_path / "c.ini", "--nodes", "-o", tmp_path / "nodes.parquet") == 0
    assert pl.read_parquet(tmp_path / "nodes.parquet")["num_gpu"].to_list() == [8, 8]


def test_philly_is_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.csv").write_text("timestamp,duration,num_gpus\n2017-10-09 07:00:00,5000,2\n")
    words = ("import", "philly", tmp_path / "p.csv", "-o", tmp_path / "p.parquet")
    assert called(*words) == 0 and called(*words, "--rules", "synergy", "--exponential") == 0
    assert called(*words, "--single-gpu") == 2
    assert "--single-gpu makes no sense with all jobs" in capsys.readouterr().err


def test_kubernetes_is_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes, pods = written(tmp_path / "n.json", node(), node("n2")), written(tmp_path / "p.json", pod(futureField=False))
    assert called("import", "kubernetes", nodes, pods, "-o", tmp_path / "p.parquet") == 0
    output = capsys.readouterr()
    assert "1 pods" in output.out and output.err == "not honoured: pods: spec.futureField: 1, such as default/p1\n"
    assert called("import", "kubernetes", nodes, "--nodes", "-o", tmp_path / "n.parquet") == 0
    assert "2 nodes" in capsys.readouterr().out


def test_what_figures_mean_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert called("describe", "metrics", "energy_kwh") == 0
    assert "mean_power_w * makespan_s / 3.6e6" in capsys.readouterr().out
    assert called("describe", "metrics", "--table", "jobs", "wait_s", "--json") == 0
    (content,) = json.loads(capsys.readouterr().out)
    assert (content["table"], content["column"], content["formula"]) == ("jobs", "wait_s", "start_s - submit_s")
    assert called("describe", "metrics") == 0 and "charts.jct_cdf" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "meant"), [
    ("wait_p99_s", "summary.wait_p99_s"), ("GRAR", "summary.grar"), ("Jct", "charts.jct"),
    ("utilization_v100_pct", "summary.utilization_{model}_pct"),
])  # fmt: skip
def test_a_metric_is_told_in_whatever_letters(capsys: pytest.CaptureFixture[str], name: str, meant: str) -> None:
    assert called("describe", name) == 0
    assert capsys.readouterr().out.startswith(meant)


def test_a_name_that_is_nearest_to_a_metric_is_answered_with_that(capsys: pytest.CaptureFixture[str]) -> None:
    assert called("describe", "wait_p98_s") == 2
    assert "did you mean 'wait_p99_s'?" in capsys.readouterr().err
    assert called("describe", "FGD") == 2
    assert "did you mean 'fgd'?" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("metrics", "energy_kw"), ("metrics", "--table", "job"), ("fgd", "energy_kwh")])
def test_what_means_nothing_is_refused(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    assert called("describe", *words) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_end_of_the_file_is_the_form_of_a_table(tmp_path: Path) -> None:
    assert called("run", *SMALL, "--out", tmp_path / "run") == 0
    for name in ("jobs.csv", "jobs.tex", "jobs.parquet"):
        assert called("export", "table", tmp_path / "run", "jobs", "-o", tmp_path / name) == 0
    assert len(pl.read_csv(tmp_path / "jobs.csv")) == len(pl.read_parquet(tmp_path / "jobs.parquet")) > 0
    assert (tmp_path / "jobs.tex").read_text().startswith("\\begin{tabular}")
