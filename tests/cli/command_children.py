"""Commands in children of one process: each child begins as a fresh process would, but libraries are loaded already.

``python -m tests.cli.command_children`` reads the children as JSON from standard input.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.cli.terminal import Outcome, environment

FULL = "/dev/full"
STREAMS = ("stdin", "stdout", "stderr")
LOADED = (
    "polars", "pyarrow.parquet", "pyarrow.compute", "altair", "scipy.special", "yaml", "rich.markdown",
    "numpy.testing", "fastsim.cli.main", "fastsim.simulation.simulate", "fastsim.kubernetes.snapshot",
    "fastsim.reports.report", "fastsim.reports.plots", "fastsim.experiments.demo", "fastsim.experiments.load_limit",
    "fastsim.decisions.explain", "fastsim.experiments.capacity_plan", "fastsim.simulation.resume",
)  # fmt: skip
"""Modules that commands load; none of them starts a thread that a child would miss."""


@dataclass(frozen=True)
class Child:
    """Commands that one process runs in a folder, one by one, each as if it were the first.

    ``closed`` and ``full`` are descriptors of standard streams that are closed, or lead to a full device; ``removed``
    if the folder is removed first.
    """

    commands: Sequence[Sequence[str]]
    folder: str
    closed: tuple[int, ...] = ()
    full: tuple[int, ...] = ()
    removed: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)


def played(children: Mapping[str, Child], folder: Path) -> dict[str, list[Outcome]]:
    """What each command of each child printed where there was a stream, and its exit code."""
    told = [asdict(child) | {"report": str(folder / str(number))} for number, child in enumerate(children.values())]
    done = subprocess.run(
        [sys.executable, "-m", __name__], env=environment(), text=True, timeout=280, input=json.dumps(told),
        capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    reports = [json.loads((folder / f"{number}.json").read_text()) for number in range(len(told))]
    return {name: [Outcome(*one) for one in report] for name, report in zip(children, reports, strict=True)}


def main() -> None:
    """Fork a child for each of the list, one after another."""
    told = json.load(sys.stdin)
    for module in LOADED:
        with suppress(ModuleNotFoundError):  # an extra is not installed
            import_module(module)
    for child in told:
        if not (process := os.fork()):
            report = _report(child)
            Path(child["report"] + ".json").write_text(json.dumps(report))
            os._exit(0)
        assert os.waitpid(process, 0)[1] == 0, child


def _report(child: dict[str, Any]) -> list[tuple[int, str, str]]:
    """Run the commands; exit code, standard output and standard error of each."""
    from fastsim.cli.main import exit_code
    from fastsim.cli.process_streams import prepare

    os.environ.update(child["variables"])
    os.chdir(child["folder"])
    if child["removed"]:
        os.rmdir(child["folder"])
    files = [Path(child["report"] + stream) for stream in STREAMS]
    _begin(child, files)
    report = []
    for words in child["commands"]:
        if 1 in child["full"]:  # again for each command: the rest that a command could not write was dropped
            _open(1, FULL)
        prepare()
        before = [file.stat().st_size for file in files]
        code = exit_code(words)
        texts = [file.read_bytes()[size:].decode() for file, size in zip(files, before, strict=True)]
        report.append((code, texts[1], texts[2]))
    return report


def _begin(child: dict[str, Any], files: Sequence[Path]) -> None:
    """Give the child its standard streams; Python has None for those that are closed when it begins."""
    for number, (stream, file) in enumerate(zip(STREAMS, files, strict=True)):
        file.touch()
        _open(number, FULL if number in child["full"] else str(file))
        if number in child["closed"]:
            os.close(number)
            setattr(sys, stream, None)


def _open(number: int, path: str) -> None:
    opened = os.open(path, os.O_WRONLY | os.O_TRUNC if number else os.O_RDONLY)
    os.dup2(opened, number)
    os.close(opened)
    setattr(sys, STREAMS[number], os.fdopen(number, "w" if number else "r", closefd=False))


if __name__ == "__main__":
    main()
