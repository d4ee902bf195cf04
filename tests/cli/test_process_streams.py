"""Every verb with standard streams that are closed or full, and in a working folder that was removed.

It does its work, or refuses it in one line.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

import fastsim as fs
from tests.cli.command_children import Child, played
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
    "tenants": ("{run}",),
    "synth openb": ("--pods", "4", "-o", "{out}.parquet"),
    "synth kubernetes": ("--nodes", "2", "--pods", "4", "-o", "{out}.json"),
    "trace lint": ("{pods}",),
    "trace stats": ("{pods}", "--json"),
    "plan": (*PODS, "--add", "g2"),
    "consolidate": ("--cluster", "kubernetes:{folder}/none.json"),
    "mig": ("--cluster", "kubernetes:{folder}/none.json"),
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
STATES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "<&- >&- 2>&-": ((0, 1, 2), ()), ">/dev/full": ((), (1,)), ">&-": ((1,), ()), "2>&-": ((2,), ()),
    "<&-": ((0,), ()), "2>/dev/full": ((), (2,)),
}  # fmt: skip
"""Standard streams that are closed, and those that lead to a device that is full."""
WHOLE = 2
"""So many states are tried with every verb, and each of the others with a part of them."""
FOLDERS = {
    f"removed, {paths} paths, {defaults} defaults": (paths, defaults)
    for paths in ("whole", "relative") for defaults in ("some", "no")
}  # fmt: skip
"""Removed working folders: the paths that the command is given, and whether files of defaults are looked for."""
PLACE_OF_PATHS = {"whole": 0, "relative": 1}
"""Without files of defaults, a folder is tried with every second verb, and with ``run``: from this place on."""
GONE = "fastsim: the working folder: No such file or directory\n"


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    return write_places(tmp_path_factory.mktemp("streams"))


def write_places(folder: Path) -> dict[str, Path]:
    """Write a saved run, its pods and a sweep, as commands name them."""
    run, pods, sweep = folder / "run", folder / "pods.parquet", folder / "sweep.toml"
    fs.simulate("openb:4", "synth:openb?pods=5", out=run)
    fs.Workload.synth("openb", pods=4).write(pods)
    sweep.write_text('cluster = "openb:4"\nworkload = "synth:openb?pods=5"\npolicy = ["fgd", "random"]\n')
    return {"run": run, "pods": pods, "sweep": sweep}


def verbs_of(state: str) -> list[str]:
    """The verbs that are tried with streams in this state."""
    number = list(STATES).index(state)
    others = len(STATES) - WHOLE
    return [
        name for at, name in enumerate(VERBS)
        if number < WHOLE or at % others == number % others or "-" in WORDS[name] or name == "run"
    ]  # fmt: skip


def verbs_without(paths: str, defaults: str) -> list[str]:
    """The verbs that are tried in a folder that was removed."""
    place = PLACE_OF_PATHS[paths]
    return [name for at, name in enumerate(VERBS) if defaults == "some" or at % 2 == place or name == "run"]


def words_of(names: Iterable[str], places: Mapping[str, Path], out: str) -> list[list[str]]:
    """Commands of these verbs, which write to ``out`` and what follows."""
    commands = []
    for number, name in enumerate(names):
        here = {**places, "folder": places["run"].parent, "out": f"{out}{number}"}
        commands.append([*name.split(), *(word.format(**here) for word in WORDS[name])])
    return commands


@pytest.fixture(scope="module")
def told(places: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Outcome]]:
    """What each verb did: with all three streams, in each state of them, and in each folder that was removed."""
    above = tmp_path_factory.mktemp("told")
    children: dict[str, Child] = {}
    names: dict[str, list[str]] = {}
    for state in ("", *STATES):
        folder = above / str(len(children))
        folder.mkdir()
        names[state] = verbs_of(state) if state else [*VERBS]
        children[state] = Child(words_of(names[state], places, f"{folder}/"), str(folder), *STATES.get(state, ()))
    for name, (paths, defaults) in FOLDERS.items():
        folder, out = above / str(len(children)), f"{above}/removed_" if paths == "whole" else ""
        folder.mkdir()
        names[name] = verbs_without(paths, defaults)
        variables = {} if defaults == "some" else {"FASTSIM_DEFAULTS": ""}
        children[name] = Child(words_of(names[name], places, out), str(folder), removed=True, variables=variables)
    outcomes = played(children, tmp_path_factory.mktemp("reports"))
    return {name: dict(zip(names[name], all_, strict=True)) for name, all_ in outcomes.items()}


def test_the_table_has_every_verb() -> None:
    assert WORDS.keys() == VERBS.keys()
    parts = [set(verbs_of(state)) for state in STATES]
    assert all(part == VERBS.keys() for part in parts[:WHOLE]) and set().union(*parts[WHOLE:]) == VERBS.keys()
    assert {name for paths in PLACE_OF_PATHS for name in verbs_without(paths, "no")} == VERBS.keys()


@pytest.mark.parametrize("state", STATES)
def test_every_verb_does_its_work_or_refuses(state: str, told: Mapping[str, Mapping[str, Outcome]]) -> None:
    usual, (lost, full) = told[""], (1 in descriptors for descriptors in STATES[state])
    assert all(one.code in (0, 1, 2) for one in usual.values())
    for name, found in told[state].items():
        before = usual[name]
        expected = before.code
        if full and before.out:
            expected = 1
        elif lost and "-" in WORDS[name]:  # its result would be lost
            expected = 2
        assert found.code == expected, (name, found.err)
        assert "internal error" not in found.err and "Traceback" not in found.err
        if not lost and not full and expected == 0:
            assert bool(found.out) == bool(before.out), name
    if full:
        assert told[state]["list"].err == "fastsim: standard output: No space left on device\n"


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_verb_works_or_names_the_working_folder_that_was_removed(
    folder: str, told: Mapping[str, Mapping[str, Outcome]]
) -> None:
    paths, defaults = FOLDERS[folder]
    for name, found in told[folder].items():
        assert "internal error" not in found.err and "Traceback" not in found.err, (name, found.err)
        if defaults == "some":  # which lie in the working folder, or above it
            assert (found.code, found.err) == (1, GONE), name
        assert found.code in (0, 1, 2) and (not found.code or found.err.startswith("fastsim: ")), (name, found.err)
    assert (told[folder]["run"].code == 0) == (paths == "whole" and defaults == "no")


def test_a_closed_standard_stream_is_no_file_of_a_command(places: Mapping[str, Path], tmp_path: Path) -> None:
    def closed(descriptor: int, *words: object) -> str:
        done = subprocess.run(
            [*COMMAND, *map(str, words)], env=environment(), cwd=tmp_path, text=True, timeout=120,
            preexec_fn=lambda: os.close(descriptor), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        assert done.returncode == 2
        return done.stderr

    line = "fastsim: '-' is standard {}, which is closed here: expected a file or a pipe\n"
    assert closed(0, "trace", "lint", "-") == line.format("input")
    assert closed(1, "synth", "openb", "--pods", "4", "-o", "-") == line.format("output")


def test_a_working_folder_that_was_removed_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    words = [*COMMAND, "run", *PODS, "--out", str(tmp_path / "out")]
    done = subprocess.run(
        words, cwd=gone, env=environment(), capture_output=True, text=True, timeout=120, preexec_fn=gone.rmdir
    )
    assert (done.returncode, done.stderr) == (1, "fastsim: the working folder: No such file or directory\n")
