"""Odd variables of the environment and names that are no UTF-8: each verb works, or refuses in one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import click
import pytest

import fastsim as fs
from fastsim.errors import InputError
from fastsim.foundation.limits.environment import BOUNDS
from tests.cli.terminal import COMMAND, environment, fastsim_here
from tests.cli.test_grammar import VERBS

OTHER = os.fsdecode(b"\xff\xfe")
PODS = ("--cluster", "openb:4", "--workload", "synth:openb?pods=5")
COMMANDS = (
    ("run", *PODS, "--out", "out"), ("compare", "out", "out"), ("report", "out", "--markdown", "out.md"),
    ("explain", "out", "3"), ("trace", "stats", "synth:openb?pods=5"),
    ("synth", "openb", "--pods", "4", "-o", "a.csv"), ("list", "policies"), ("guide", "pods"), ("-h",), ("run", "-h"),
)  # fmt: skip
"""Commands of the verbs that read, write, and print wide texts."""
USUAL: dict[str, tuple[str, ...]] = {
    "RAYON_NUM_THREADS": ("0", "many"),
    "OMP_NUM_THREADS": ("0", "many"),
    "OPENBLAS_NUM_THREADS": ("0", "many"),
    "POLARS_MAX_THREADS": ("1", ""),
    "POLARS_TEMP_DIR": ("/none/at/all",),
    "TMPDIR": ("/none/at/all", "/dev/null", ""),
    "HOME": ("/none/at/all", ""),
    "USER": ("", "nobody-of-this-name"),
    "LC_ALL": ("xx_YY.UTF-8", "C"),
    "LANG": ("nonsense",),
    "LANGUAGE": ("nonsense",),
    "TZ": ("nonsense",),
    "PYTHONUTF8": ("0", "1"),
    "PYTHONIOENCODING": ("ascii", "utf-16"),
    "PYTHONWARNINGS": ("error", "default"),
    "COLUMNS": ("0", "-5", "many", "1"),
    "LINES": ("0", "many"),
    "NO_COLOR": ("1", ""),
    "FORCE_COLOR": ("1",),
    "TERM": ("dumb", "", "nonsense"),
    "ARROW_DEFAULT_MEMORY_POOL": ("nonsense",),
    "ARROW_USER_SIMD_LEVEL": ("nonsense",),
    "FASTSIM_BUDGET": ("", "2"),
    "FASTSIM_UNPACKED_MIB": ("", "1"),
    "FASTSIM_TRACEBACK": ("nonsense", "0"),
    "FASTSIM_DEFAULTS": ("",),
}
"""Values with which every command does its work."""
REFUSED = dict.fromkeys(BOUNDS, ("0", "-1", "many", "1e3", "9" * 5000)) | {
    "FASTSIM_DEFAULTS": ("none.toml", "/"), "FASTSIM_BUDGET": ("0", "-1", "many", "nan", "inf"),
}  # fmt: skip
"""Values that every command refuses."""
ONE_BY_ONE = """
import json, os, sys
from fastsim.cli.main import exit_code
from fastsim.cli.process_streams import prepare

prepare()
for words in json.loads(sys.argv[1]):
    code = exit_code(words)
    assert code == 0, (words, code)
"""


def play(folder: Path, variables: Mapping[str, str]) -> None:
    """Every command, with these variables."""
    inherited = {name: value for name, value in environment().items() if not name.startswith("LC_")}
    words = [sys.executable, "-c", ONE_BY_ONE, json.dumps(COMMANDS)]
    done = subprocess.run(
        words, cwd=folder, env={**inherited, **variables}, capture_output=True, timeout=280, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, (variables, done.stderr.decode(errors="replace"))
    assert b"internal error" not in done.stderr and b"Traceback" not in done.stderr


AT_BEGIN = ("LC_ALL", "LANG", "LANGUAGE", "TZ", "ARROW_", "PYTHON", "POLARS_", "OMP_", "OPENBLAS_", "RAYON_")
"""Begins of the names of variables that only a process which begins looks at."""
MISSING = ("HOME", "USER", "LANG", "TERM", "PATH", "TMPDIR", "COLUMNS")


def test_every_command_works_whatever_is_odd_when_it_begins(tmp_path: Path) -> None:
    play(tmp_path, {name: values[0] for name, values in USUAL.items() if name != "PYTHONWARNINGS"})


def test_every_command_works_whatever_else_is_odd_or_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in MISSING:
        monkeypatch.delenv(name, raising=False)
    odd = {name: values[-1] for name, values in USUAL.items() if name not in MISSING}
    play(tmp_path, {name: value for name, value in odd.items() if name.startswith(AT_BEGIN)})


@pytest.mark.parametrize("number", range(max(map(len, USUAL.values()))))
def test_every_command_works_with_odd_values(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, values in USUAL.items():
        if not name.startswith(AT_BEGIN):
            monkeypatch.setenv(name, values[number % len(values)])
    monkeypatch.setattr(tempfile, "tempdir", None)
    for words in COMMANDS:
        told = fastsim_here(*words, cwd=tmp_path)
        assert told.code == 0 and "internal error" not in told.err, (words, told.err)


@pytest.mark.parametrize("name", REFUSED)
def test_every_command_refuses_nonsense_in_one_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in REFUSED[name]:
        monkeypatch.setenv(name, value)
        for words in COMMANDS[:-2]:
            told = fastsim_here(*words, cwd=tmp_path)
            assert told.code == 2 and ": found " in told.line, words
            assert told.line.startswith(f"fastsim: {value if name == 'FASTSIM_DEFAULTS' else name}: ")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", VERBS)
def test_words_that_are_no_utf8_are_refused_by_every_verb(name: str, tmp_path: Path) -> None:
    options = [one for one in VERBS[name].params if isinstance(one, click.Option) and not one.is_flag]
    for words in [(OTHER,), *((one.opts[0], f"a{OTHER}") for one in options)]:
        told = fastsim_here(*name.split(), *words, cwd=tmp_path)
        assert (told.code, told.line) == (2, f"fastsim: argument: found {words[-1]!r}, expected text in UTF-8")
    assert not list(tmp_path.iterdir())


def test_nothing_is_written_where_the_path_is_no_utf8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = fs.simulate("openb:4", "synth:openb?pods=5")
    writers: list[Callable[[str], object]] = [
        lambda out: fs.simulate("openb:4", "synth:openb?pods=5", out=out),
        result.save,
        lambda out: fs.Workload.synth("openb", pods=4).write(f"{out}.parquet"),
    ]
    monkeypatch.chdir(tmp_path)
    for write in writers:
        with pytest.raises(InputError, match=r"\\udcff\\udcfe.*: found bytes that are no UTF-8 in its path"):
            write(OTHER)
    (tmp_path / OTHER).mkdir()
    monkeypatch.chdir(tmp_path / OTHER)
    for write in writers:
        with pytest.raises(InputError, match=r"out.*: found bytes that are no UTF-8 in its path"):
            write("out")
    assert not list((tmp_path / OTHER).iterdir())


def test_characters_that_an_old_locale_cannot_name_are_refused_with_a_remedy(tmp_path: Path) -> None:
    old = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [*COMMAND, "describe", "é"], cwd=tmp_path, env=environment() | old, capture_output=True, text=True, timeout=120
    )
    line = "fastsim: argument: found '\\udcc3\\udca9', expected text in UTF-8; set PYTHONUTF8=1 if it is\n"
    assert (done.returncode, done.stderr) == (2, line)
