"""Every kind of bad input: the right exit code, exactly one line on standard error, and nothing written."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import polars as pl
import pytest

from fastsim.cli.main import exit_code
from fastsim.workload import Workload
from tests.cli.terminal import COMMAND, environment, fastsim
from tests.objects import pod, written

GOOD: dict[str, Any] = {
    "pod_id": [0, 1], "submit_s": [0.0, 1.0], "cpu_milli": [1000, 2000], "memory_mib": [10, 20],
    "num_gpu": [1, 0], "gpu_milli": [500, 0],
}  # fmt: skip
OPENB = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,1000,100,1,500\n"


def parquet(path: Path, **changes: Any) -> Path:
    """A pod table with some columns changed; None leaves a column out."""
    columns = {name: values for name, values in {**GOOD, **changes}.items() if values is not None}
    pl.DataFrame(columns).write_parquet(path)
    return path


def truncated(path: Path) -> Path:
    """A Parquet file that lost its end."""
    parquet(path)
    path.write_bytes(path.read_bytes()[:-20])
    return path


def text(path: Path, content: str) -> Path:
    """A text file."""
    path.write_text(content)
    return path


WORKLOADS: dict[str, tuple[Callable[[Path], Path], tuple[str, ...]]] = {
    "no_column": (lambda folder: parquet(folder / "w.parquet", cpu_milli=None), ("cpu_milli",)),
    "nan_request": (lambda folder: parquet(folder / "w.parquet", cpu_milli=[1000.0, float("nan")]), ("cpu_milli",)),
    "null_request": (lambda folder: parquet(folder / "w.parquet", gpu_milli=[500, None]), ("gpu_milli",)),
    "negative_request": (lambda folder: parquet(folder / "w.parquet", cpu_milli=[1000, -1]), ("cpu_milli", "-1")),
    "part_of_three_gpus": (lambda folder: parquet(folder / "w.parquet", num_gpu=[3, 0]), ("gpu_milli", "500")),
    "gpu_milli_without_gpu": (lambda folder: parquet(folder / "w.parquet", num_gpu=[0, 0]), ("gpu_milli",)),
    "unsorted": (lambda folder: parquet(folder / "w.parquet", submit_s=[1.0, 0.0]), ("submit_s",)),
    "nan_time": (lambda folder: parquet(folder / "w.parquet", submit_s=[0.0, float("nan")]), ("submit_s",)),
    "duplicate_ids": (lambda folder: parquet(folder / "w.parquet", pod_id=[5, 5]), ("pod_id",)),
    "truncated": (lambda folder: truncated(folder / "w.parquet"), ("w.parquet",)),
    "not_parquet": (lambda folder: text(folder / "w.parquet", "hello"), ("w.parquet",)),
    "stray_field": (lambda folder: text(folder / "w.csv", OPENB + "p1,1,1,0,0,7\n"), ("w.csv",)),
    "letters": (lambda folder: text(folder / "w.csv", OPENB + "p1,many,1,0,0\n"), ("w.csv", "cpu_milli")),
    "missing_file": (lambda folder: folder / "none.parquet", ("none.parquet",)),
}

OPTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "policy": (("--policy", "fdg"), "did you mean 'fgd'"),
    "policy_parameter": (("--policy", "dot_product(dim=up)"), "one of merge"),
    "weights": (("--policy", "0*fgd + 0*pwr"), "sum to nothing"),
    "negative_weight": (("--policy", "-1*fgd"), "0 or more"),
    "preset": (("--cluster", "opneb"), "did you mean 'openb'"),
    "gpu_model": (("--cluster", "uniform?nodes=2&gpu=H9000"), "H9000"),
    "typical": (("--typical", "none.parquet"), "none.parquet"),
    "typical_option": (("--typical", "same?threshold=900"), "threshold"),
    "queue": (("--queue", "lifo"), "lifo"),
    "record": (("--record", "everything"), "everything"),
    "seed": (("--seed", "-4"), "seed"),
    "seed_text": (("--seed", "four"), "four"),
    "sample": (("--sample-s", "0"), "sample_s"),
    "until": (("--until", "nan"), "until_s"),
    "deschedule": (("--deschedule", "cos_sum:0.1"), "did you mean 'cos_sim'"),
    "long_cluster": (("--cluster", "x" * 300), "neither a file nor a known name"),
    "long_workload": (("--workload", "x" * 300), "neither a file nor a known name"),
    "long_typical": (("--typical", "x" * 300), "neither a file nor a known name"),
    "window": (("--policy", "fifo", "--window", "0:99999999999999999999"), "0 <= FIRST < LAST"),
    "inflation": (("--inflation", "0.2"), "inflation"),
    "scenario": (("--scenario", "none.toml"), "none.toml"),
    "option": (("--polcy", "fgd"), "--polcy"),
    "argument": (("fgd",), "fgd"),
}


def refused(folder: Path, capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The one line with which a command refuses its input, having written nothing."""
    before = sorted(folder.rglob("*"))
    code = exit_code([str(word) for word in words])
    captured = capsys.readouterr()
    assert code == 2, captured.err
    assert captured.out == "" and captured.err.endswith("\n") and captured.err.count("\n") == 1, captured.err
    assert captured.err.startswith("fastsim: ") and "internal error" not in captured.err, captured.err
    assert sorted(folder.rglob("*")) == before
    return captured.err


@pytest.mark.parametrize("case", sorted(WORKLOADS))
def test_wrong_workloads(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make, parts = WORKLOADS[case]
    line = refused(
        tmp_path, capsys, "run", "--cluster", "openb:5", "--workload", make(tmp_path), "--out", tmp_path / "out"
    )
    assert all(part in line for part in parts), line


@pytest.mark.parametrize("case", sorted(OPTIONS))
def test_wrong_options(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, part = OPTIONS[case]
    given = ("--cluster", "openb:5", "--workload", "synth:openb?pods=3", "--out", tmp_path / "out")
    assert part in refused(tmp_path, capsys, "run", *given, *words)


def test_wrong_clusters_and_watts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = text(tmp_path / "n.csv", "node_id,name,cpu_milli,memory_mib,num_gpu,gpu_model\n0,a,1000,1000,1,H9000\n")
    given = ("--workload", "synth:openb?pods=3", "--out", tmp_path / "out")
    assert "H9000" in refused(tmp_path, capsys, "run", "--cluster", nodes, *given)
    stray = text(tmp_path / "stray.csv", "node_id,name,cpu_milli,memory_mib,num_gpu\n0,a,1000,1000,0,9\n")
    assert "stray.csv" in refused(tmp_path, capsys, "run", "--cluster", stray, *given)
    for row, part in (("gpu,H9000,1,x,2,\n", "x"), ("gpu,H9000,1,1,2,,7\n", "w.csv"), ("gpu,H9000,1,-5,2,\n", "-5")):
        watts = text(tmp_path / "w.csv", "kind,model,memory_mib,idle_w,peak_w,cores_per_socket\n" + row)
        assert part in refused(tmp_path, capsys, "run", "--cluster", f"openb?watts={watts}", *given)


def test_several_mistakes_are_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(tmp_path, capsys, "run", "--cluster", "opneb", "--workload", "none", "--policy", "fdg")
    assert "3 mistakes" in line and "opneb" in line and "none" in line and "fdg" in line


def test_other_verbs_refuse_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "o.parquet"
    assert "none.csv" in refused(tmp_path, capsys, "import", "openb", tmp_path / "none.csv", "-o", output)
    for kind in ("gavel", "gavel-rates", "synergy", "philly", "kubernetes"):
        assert "none.csv" in refused(tmp_path, capsys, "import", kind, tmp_path / "none.csv", "-o", output)
    assert "--jobs" in refused(tmp_path, capsys, "synth", "gavel", "-o", output)
    assert "did you mean" in refused(tmp_path, capsys, "synth", "gavel", "--jobs", 3, "--set", "slo=true", "-o", output)
    assert "20:70:10" in refused(tmp_path, capsys, "synth", "synergy", "--jobs", 3, "--split", "all", "-o", output)
    assert "one of all" in refused(tmp_path, capsys, "import", "philly", "x.json", "--rules", "none", "-o", output)
    path = written(tmp_path / "p.json", pod(requests={"memory": "1GB"}))
    assert "memory: found '1GB'" in refused(tmp_path, capsys, "import", "kubernetes", path, "-o", output)
    assert "--pods" in refused(tmp_path, capsys, "synth", "openb", "-o", output)
    assert "did you mean" in refused(tmp_path, capsys, "synth", "openb", "--pods", 3, "--set", "lod=1", "-o", output)
    assert "did you mean 'fgd'" in refused(tmp_path, capsys, "describe", "fdg")
    assert "wizards" in refused(tmp_path, capsys, "list", "wizards")
    assert "No such command" in refused(tmp_path, capsys, "fly")
    pods = text(tmp_path / "p.csv", OPENB)
    assert "--nodes" in refused(tmp_path, capsys, "import", "openb", pods, "--nodes", "--drop", "x", "-o", output)


FORKS: dict[str, tuple[tuple[str, ...], str]] = {
    "policy": (("--policy", "fdg"), "did you mean 'fgd'"),
    "queue": (("--queue", "lifo"), "lifo"),
    "pick": (("--gpu-pick", "none"), "none"),
    "seed": (("--seed", "-4"), "seed"),
    "until": (("--until", "nan"), "until_s"),
    "time": (("--at", "nan"), "at_s"),
    "time_text": (("--at", "noon"), "noon"),
    "past": (("--cluster", "openb:9"), "--cluster"),
    "several": (("--policy", "fdg", "--queue", "lifo"), "2 mistakes"),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that kept its checkpoint."""
    folder = tmp_path_factory.mktemp("kept")
    parquet(folder / "w.parquet")
    given = ("--cluster", "openb:5", "--workload", folder / "w.parquet", "--out", folder / "run")
    assert exit_code([str(word) for word in ("run", *given, "--checkpoint", "1", "--keep-checkpoint")]) == 0
    return folder


@pytest.mark.parametrize("case", sorted(FORKS))
def test_wrong_forks(case: str, kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, part = FORKS[case]
    capsys.readouterr()
    assert part in refused(kept, capsys, "fork", kept / "run", "-o", kept / "other", *words)


def test_wrong_folders_of_forks(kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--out" in refused(kept, capsys, "fork", kept / "run")
    assert "exists already" in refused(kept, capsys, "fork", kept / "run", "-o", kept / "run")
    assert "another folder" in refused(kept, capsys, "fork", kept / "run", "-o", kept / "run", "--force")
    for verb in (("fork", tmp_path / "none", "-o", tmp_path / "other"), ("resume", tmp_path / "none")):
        assert exit_code([str(word) for word in verb]) == 1
        line = capsys.readouterr().err
        assert line.count("\n") == 1 and "state.npz: found no such file, expected the checkpoint of a run" in line
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_run_is_a_failed_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["compare", str(tmp_path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_pod_larger_than_any_node_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pods = parquet(tmp_path / "w.parquet", cpu_milli=[10**9, 2000])
    assert exit_code(["run", "--cluster", "openb:5", "--workload", str(pods)]) == 0
    captured = capsys.readouterr()
    assert captured.err.startswith("fastsim: warning: 1 pod is larger than any node") and captured.err.count("\n") == 1
    assert "fitted nowhere" in captured.out


def small_files_only() -> None:
    """In the command's process: no file may grow beyond 6 kB, as if the disk were full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))


@pytest.mark.spread(1)
@pytest.mark.parametrize("verb", ["run", "synth", "demo"])
def test_a_full_disk_leaves_nothing(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # it would leave half of a compiled module for other tests
    words: dict[str, tuple[object, ...]] = {
        "run": ("run", "--cluster", "openb:9", "--workload", "synth:openb?pods=2000", "--out", tmp_path / "out"),
        "synth": ("synth", "openb", "--pods", 5000, "-o", tmp_path / "w.parquet"),
        "demo": ("demo", "--nodes", 9, "--pods", 100, "--workers", 1, "--out", tmp_path / "out"),
    }
    done = fastsim(*words[verb], preexec_fn=small_files_only)
    errors = [line for line in done.err.splitlines() if "warning: " not in line]
    assert done.code == 1 and len(errors) == 1 and "too large" in errors[0].lower(), done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_output_that_cannot_be_printed(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = fastsim("list", "policies", stdout=full)
    assert done.code == 1 and "No space left" in done.line


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    reader = subprocess.Popen([sys.executable, "-c", "pass"], stdin=subprocess.PIPE)
    reader.wait()
    done = subprocess.run(
        [*COMMAND, "describe", "fgd"], stdout=reader.stdin, stderr=subprocess.PIPE, env=environment(), check=False
    )
    assert reader.stdin is not None
    reader.stdin.close()
    assert (done.returncode, done.stderr) == (141, b"")


def test_files_already_there_survive_a_failed_conversion(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "kept.parquet"
    Workload.synth("openb", pods=3).write(kept)
    before = kept.read_bytes()
    bad = text(tmp_path / "p.csv", OPENB + "p1,-5,1,0,0\n")
    refused(tmp_path, capsys, "import", "openb", bad, "-o", kept)
    assert kept.read_bytes() == before


def test_a_panic_of_a_library_is_one_line_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = Mock(side_effect=pl.exceptions.PanicException("out of bounds"))  # no Exception
    monkeypatch.setattr("fastsim.policies.registry.describe", broken)
    assert exit_code(["describe", "fgd"]) == 1
    assert "internal error: PanicException: out of bounds" in capsys.readouterr().err


def test_a_bug_is_one_line_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    broken = Mock(side_effect=ZeroDivisionError("nothing to\ndivide"))
    monkeypatch.setattr("fastsim.policies.registry.describe", broken)
    assert exit_code(["describe", "fgd"]) == 1
    assert "internal error: ZeroDivisionError: nothing to divide" in capsys.readouterr().err
    monkeypatch.setenv("FASTSIM_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        exit_code(["describe", "fgd"])


def test_a_scorer_that_fails_is_the_user_s(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)  # the folder holds the scorer alone
    (tmp_path / "failing_scorer.py").write_text("def points(nodes, pod):\n    return nodes.cpus\n")
    monkeypatch.syspath_prepend(tmp_path)
    words = ("run", "--cluster", "openb:5", "--workload", "synth:openb?pods=3", "--policy",
             "python(scorer='failing_scorer:points')", "--out", str(tmp_path / "out"))  # fmt: skip
    assert exit_code(list(words)) == 2
    line, *frames = capsys.readouterr().err.splitlines()
    assert "scorer failing_scorer:points: found AttributeError: " in line and "failing_scorer.py:2)" in line
    assert frames[:2] == [f"  {tmp_path}/failing_scorer.py:2 in points", "    return nodes.cpus"]
    assert frames[2].startswith("  AttributeError: ") and len(frames) == 3 and not (tmp_path / "out").exists()
    assert exit_code(["--debug", *words]) == 2
    assert "Traceback" in (shown := capsys.readouterr().err) and "return nodes.cpus" in shown
    monkeypatch.setenv("FASTSIM_TRACEBACK", "1")
    assert exit_code(list(words)) == 2
    assert "return nodes.cpus" in capsys.readouterr().err


@pytest.mark.parametrize("verb", [["report"], ["compare"], ["explain", "--sample", "1"], ["run"], ["audit"]])
@pytest.mark.parametrize("exists", [Path.exists, os.path.exists], ids=["", "since Python 3.14"])
def test_texts_too_long_for_a_path_or_a_line_are_bounded(
    verb: list[str], exists: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "exists", exists)
    for length in (300, 30_000):
        assert exit_code([verb[0], "x" * length, *verb[1:]]) in (1, 2)
        [line] = capsys.readouterr().err.splitlines()
        assert len(line) < 2000 and "internal error" not in line
