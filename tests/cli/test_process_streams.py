"""Every verb with standard streams that are closed or full: the same exit code, and nothing that is internal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import fastsim as fs
from tests.cli.terminal import COMMAND, Outcome, environment
from tests.cli.test_grammar import VERBS

PODS = ("--cluster", "openb:4", "--workload", "synth:openb?pods=5")
WORDS: dict[str, tuple[str, ...]] = {
    "run": (*PODS, "--out", "{out}"),
    "resume": ("{run}",),
    "fork": ("{run}", "-o", "{out}"),
    "sweep run": ("{sweep}", "--out", "{out}", "--dry-run"),
    "sweep init": ("gavel-continuous", "-o", "{out}.toml"),
    "sweep stats": ("{folder}", "--metric", "gpu_alloc_pct"),
    "sweep knee": ("{sweep}", "--low", "1", "--high", "2"),
    "demo": ("--nodes", "0"),
    "compare": ("{run}", "{run}"),
    "report": ("{run}", "--markdown", "{out}.md"),
    "plot": ("jct_cdf", "{run}", "-o", "{out}.json"),
    "explain": ("{run}", "3"),
    "audit": ("{run}",),
    "fairness": ("{run}",),
    "synth openb": ("--pods", "4", "-o", "{out}.parquet"),
    "trace lint": ("{pods}",),
    "trace stats": ("{pods}", "--json"),
    "plan": (*PODS, "--add", "g2"),
    "monitor serve": ("{folder}/none.parquet",),
    "export kubernetes": ("{run}", "-o", "-"),
    "export table": ("{run}", "jobs", "-o", "-"),
    "serve-extender": ("--snapshot", "{folder}/none.json"),
    "list": ("policies",),
    "describe": ("fgd",),
    "new-policy": ("own",),
    "guide": ("pods",),
}
"""A short command of each verb that has one."""
BARE = (
    "reproduce", "profile synergy", "profile gavel", "synth gavel", "synth sia", "synth synergy", "export sia-log",
    *(f"monitor {name}" for name in ("export", "import", "plot", "jobs", "dashboard")),
    *(
        f"import {name}"
        for name in (
            "openb", "gavel", "gavel-rates", "sia", "pollux", "synergy", "philly", "kubernetes", "simon", "csv",
            "helios", "acme", "pai", "swf", "slurm", "alibaba", "tiresias", "opendc",
        )
    ),
)  # fmt: skip
"""Verbs that are played without arguments, which most of them refuse."""
WORDS |= dict.fromkeys(BARE, ())
FULL = "/dev/full"
STATES: dict[str, tuple[int, ...]] = {
    ">&-": (1,), "2>&-": (2,), "<&-": (0,), "<&- >&- 2>&-": (0, 1, 2), ">/dev/full": (), "2>/dev/full": (),
}  # fmt: skip
"""Descriptors that are closed."""
OFTEN = ("<&- >&- 2>&-", ">/dev/full")
"""States that are tried without FASTSIM_LONG: all that may be closed at once, and what only a write notices."""
END = "\x1e"
ONE_BY_ONE = f"""
import json, os, sys
from fastsim.cli.main import exit_code
from fastsim.cli.process_streams import prepare

commands, codes, full = json.loads(sys.argv[1]), [], sys.argv[3] == ">/dev/full"
for words in commands:
    if full:  # again for each command: the rest that a command could not write was dropped
        os.dup2(os.open({FULL!r}, os.O_WRONLY), 1)
        sys.stdout = open(1, "w", closefd=False)
    prepare()
    codes.append(exit_code(words))
    if not full:
        sys.stdout.write({END!r})
with open(sys.argv[2], "w") as file:
    json.dump(codes, file)
"""
"""Runs commands one by one, as if each were the first of its process."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """A saved run, its pods, a sweep."""
    folder = tmp_path_factory.mktemp("streams")
    run, pods, sweep = folder / "run", folder / "pods.parquet", folder / "sweep.toml"
    fs.simulate("openb:4", "synth:openb?pods=5", out=run)
    fs.Workload.synth("openb", pods=4).write(pods)
    sweep.write_text('cluster = "openb:4"\nworkload = "synth:openb?pods=5"\npolicy = ["fgd", "random"]\n')
    return {"run": run, "pods": pods, "sweep": sweep}


def outcomes(places: Mapping[str, Path], folder: Path, state: str = "") -> dict[str, Outcome]:
    """What each verb printed and its exit code; standard error is that of all of them."""
    commands = []
    for number, name in enumerate(VERBS):
        here = {**places, "folder": folder, "out": folder / str(number)}
        commands.append([*name.split(), *(word.format(**here) for word in WORDS[name])])
    closed = STATES.get(state, ())

    def close() -> None:
        for descriptor in closed:
            os.close(descriptor)

    words = [sys.executable, "-c", ONE_BY_ONE, json.dumps(commands), str(folder / "codes"), state]
    with open(FULL, "w") as full:
        done = subprocess.run(
            words, cwd=folder, env=environment(), text=True, timeout=280, preexec_fn=close, stdin=subprocess.DEVNULL,
            stdout=full if state == ">/dev/full" else subprocess.PIPE,
            stderr=full if state == "2>/dev/full" else subprocess.PIPE,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    codes = json.loads((folder / "codes").read_text())
    texts = (done.stdout or "").split(END)[:-1] or [""] * len(codes)
    told = zip(VERBS, codes, texts, strict=True)
    return {name: Outcome(code, text, done.stderr or "") for name, code, text in told}


@pytest.fixture(scope="module")
def usual(places: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Outcome]:
    """The verbs with all three streams."""
    told = outcomes(places, tmp_path_factory.mktemp("usual"))
    assert all(one.code in (0, 1, 2) for one in told.values())
    return told


def test_the_table_has_every_verb() -> None:
    assert WORDS.keys() == VERBS.keys()


@pytest.mark.parametrize(
    "state", [pytest.param(state, marks=[] if state in OFTEN else [pytest.mark.long]) for state in STATES]
)
def test_every_verb_does_its_work_or_refuses(
    state: str, places: Mapping[str, Path], usual: Mapping[str, Outcome], tmp_path: Path
) -> None:
    told = outcomes(places, tmp_path, state)
    for name, before in usual.items():
        expected = before.code
        if state == ">/dev/full" and before.out:
            expected = 1
        elif 1 in STATES[state] and "-" in WORDS[name]:  # its result would be lost
            expected = 2
        assert told[name].code == expected, (name, told[name].err)
        assert "internal error" not in told[name].err and "Traceback" not in told[name].err
        if 1 not in STATES[state] and state != ">/dev/full" and expected == 0:
            assert bool(told[name].out) == bool(before.out), name
    if state == ">/dev/full":
        assert "fastsim: standard output: No space left on device\n" in told["list"].err
    assert (tmp_path / "0" / "run.json").is_file()


def test_a_closed_standard_stream_is_no_file_of_a_command(places: Mapping[str, Path], tmp_path: Path) -> None:
    def closed(descriptor: int, *words: object) -> str:
        done = subprocess.run(
            [*COMMAND, *map(str, words)], env=environment(), cwd=tmp_path, text=True, timeout=120,
            preexec_fn=lambda: os.close(descriptor), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        assert done.returncode == 2
        return done.stderr

    names = {0: "input", 1: "output"}
    line = "fastsim: '-' is standard {}, which is closed here: expected a file or a pipe\n"
    assert closed(0, "trace", "lint", "-") == line.format(names[0])
    assert closed(1, "synth", "openb", "--pods", "4", "-o", "-") == line.format(names[1])


def test_a_working_folder_that_was_removed_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    words = [*COMMAND, "run", *PODS, "--out", str(tmp_path / "out")]
    done = subprocess.run(
        words, cwd=gone, env=environment(), capture_output=True, text=True, timeout=120, preexec_fn=gone.rmdir
    )
    assert (done.returncode, done.stderr) == (1, "fastsim: the working folder: No such file or directory\n")
