"""``-`` where a file may stand: commands in pipes, a terminal, and what is refused."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
from pathlib import Path

import polars as pl
import pytest

from fastsim.cli.grammar.standard_streams import FileRead, FileWritten, TextRead
from fastsim.cli.main import commands
from tests.cli.terminal import COMMAND, environment, fastsim

ROWS = b"start,gpus,cpus\n0,1,4000\n10,2,8000\n"
MAP = "submit_s=start,num_gpu=gpus,cpu_milli=cpus"
CLUSTER = "uniform?nodes=2&gpu=T4&gpus=4"
NODE = {
    "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "2", "pods": "110"}},
}  # fmt: skip


def piped(content: bytes, *arguments: object) -> tuple[int, bytes, str]:
    """Exit code, standard output and standard error of a command that reads this from a pipe."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=content,
        env=environment(),
        capture_output=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr.decode()


def test_a_table_from_a_pipe_into_a_pipe() -> None:
    code, out, err = piped(ROWS, "import", "csv", "-", "--map", MAP, "-o", "-")
    assert (code, err.splitlines()[-1]) == (0, "-: 2 pods")
    table = pl.read_parquet(io.BytesIO(out))
    assert table.select("submit_s", "num_gpu", "cpu_milli").rows() == [(0.0, 1, 4000), (10.0, 2, 8000)]
    code, again, _ = piped(out, "run", "--cluster", CLUSTER, "--workload", "-", "--json")
    assert code == 0 and json.loads(again)["summary"]["pods"] == 2


@pytest.mark.spread(1)
@pytest.mark.parametrize("content", [ROWS, gzip.compress(ROWS)], ids=["plain", "gz"])
def test_a_workload_of_a_text_with_options(content: bytes) -> None:
    text = f"csv:-?map={MAP}"
    code, out, err = piped(content, "run", "--cluster", CLUSTER, "--workload", text, "--json")
    assert (code, err) == (0, "") and json.loads(out)["summary"]["pods"] == 2


@pytest.mark.long
def test_objects_of_kubernetes_in_both_forms() -> None:
    yaml = b"---\napiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 8, memory: 32Gi}}\n"
    for content in (json.dumps({"kind": "List", "apiVersion": "v1", "items": [NODE]}).encode(), yaml):
        code, out, err = piped(content, "import", "kubernetes", "-", "--nodes", "-o", "-")
        assert (code, err.splitlines()[-1]) == (0, "-: 1 nodes")
        assert pl.read_parquet(io.BytesIO(out))["name"].to_list() == ["n1"]


@pytest.mark.long
def test_a_sweep_file_written_and_read() -> None:
    code, out, _ = piped(b"", "sweep", "init", "sia", "-o", "-")
    assert code == 0 and b"policy" in out
    code, listed, err = piped(out, "sweep", "-", "--out", "nowhere", "--dry-run")
    assert (code, err) == (0, "") and b"nothing was run" in listed


@pytest.mark.long
def test_objects_and_tables_of_a_run_on_standard_output(tmp_path: Path) -> None:
    run = ("run", "--cluster", CLUSTER, "--workload", "synth:openb?pods=9&seed=1", "--out", tmp_path / "run")
    assert fastsim(*run).code == 0
    exported = fastsim("export", tmp_path / "run", "--nodes", "-o", "-")
    assert exported.code == 0 and "kind: Node" in exported.out and exported.err.startswith("-: ")
    explained = fastsim("explain", tmp_path / "run", "--sample", 1, "--csv", "-")
    assert explained.code == 0 and explained.out.startswith("pod_id,") and "pod" in explained.err
    reported = fastsim("report", tmp_path / "run", "--csv", "-")
    assert reported.code == 0 and len(reported.out.splitlines()) == 2


def test_errors_name_the_stream_and_nothing_is_written() -> None:
    code, out, err = piped(
        b"start,gpus\n0,x\n", "import", "csv", "-", "--map", "submit_s=start,num_gpu=gpus", "-o", "-"
    )
    assert (code, out) == (2, b"") and err.startswith("fastsim: -") and "/tmp" not in err
    code, out, err = piped(b"", "run", "--cluster", "csv:-", "--workload", "csv:-")
    assert (code, err) == (
        2, "fastsim: '-' stands for standard input twice: expected one file of a command\n"
    )  # fmt: skip


def test_a_terminal_gets_no_binary_file_and_is_not_read() -> None:
    pty = pytest.importorskip("pty", reason="pseudo-terminals are a matter of Unix")
    ours, theirs = pty.openpty()
    try:
        written = subprocess.run(
            [*COMMAND, "synth", "openb", "--pods", "3", "-o", "-"], stdout=theirs, stderr=subprocess.PIPE, text=True,
            env=environment(), timeout=120, check=False,
        )  # fmt: skip
        read = subprocess.run(
            [*COMMAND, "trace", "lint", "-"], stdin=theirs, capture_output=True, text=True, env=environment(),
            timeout=120, check=False,
        )  # fmt: skip
    finally:
        os.close(ours)
        os.close(theirs)
    assert (written.returncode, read.returncode) == (2, 2)
    assert "'-' is the terminal here, and a .parquet file is binary" in written.stderr
    assert "'-' is the terminal here: expected a file" in read.stderr


def test_every_file_of_every_verb_may_be_a_stream() -> None:
    """Options and arguments whose place holder is a file; `export table` chooses its format itself."""
    import click

    def verbs(group: click.Group, path: str = "") -> list[tuple[str, click.Command]]:
        found = []
        for name, verb in group.commands.items():
            here = f"{path} {name}".strip()
            found += verbs(verb, here) if isinstance(verb, click.Group) else [(here, verb)]
        return found

    streams = (FileRead, FileWritten, TextRead)
    missing = [
        (name, parameter.name)
        for name, verb in verbs(commands) if name != "export table"
        for parameter in verb.params
        if parameter.metavar in ("FILE", "SRC", "SRC...", "CSV", "OUT") and not isinstance(parameter.type, streams)
    ]  # fmt: skip
    assert missing == []
