"""Every verb in a working folder that was removed: it works on whole paths, or names the working folder in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import fastsim as fs
from tests.cli.terminal import environment
from tests.cli.test_grammar import VERBS
from tests.cli.test_process_streams import WORDS

ONE_BY_ONE = """
import io, json, os, sys
from contextlib import redirect_stderr
from fastsim.cli.main import exit_code

os.rmdir(os.getcwd())
for words in json.loads(sys.argv[1]):
    with redirect_stderr(io.StringIO()) as told:
        code = exit_code(words)
    print(json.dumps([code, told.getvalue()]), file=sys.stderr)
"""
"""Runs commands in a folder that it removes first; codes and standard error, a line of JSON each."""
LINE = "fastsim: the working folder: No such file or directory\n"


@pytest.mark.parametrize("defaults", [True, False])
@pytest.mark.parametrize("whole", [True, False])
def test_every_verb_works_or_names_the_working_folder(whole: bool, defaults: bool, tmp_path: Path) -> None:
    gone, run, pods, sweep = (tmp_path / name for name in ("gone", "run", "pods.parquet", "sweep.toml"))
    fs.simulate("openb:4", "synth:openb?pods=5", out=run)
    fs.Workload.synth("openb", pods=4).write(pods)
    sweep.write_text('cluster = "openb:4"\nworkload = "synth:openb?pods=5"\npolicy = ["fgd", "random"]\n')
    gone.mkdir()
    commands = []
    for number, name in enumerate(VERBS):
        out = f"{tmp_path}/{number}" if whole else str(number)
        places = {"run": run, "pods": pods, "sweep": sweep, "folder": tmp_path, "out": out}
        commands.append([*name.split(), *(word.format(**places) for word in WORDS[name])])
    variables = environment() | ({} if defaults else {"FASTSIM_DEFAULTS": ""})
    done = subprocess.run(
        [sys.executable, "-P", "-c", ONE_BY_ONE, json.dumps(commands)], cwd=gone, env=variables, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = dict(zip(VERBS, map(json.loads, done.stderr.splitlines()), strict=True))
    for name, (code, text) in told.items():
        assert "internal error" not in text and "Traceback" not in text, (name, text)
        if defaults:  # which lie in the working folder, or above it
            assert (code, text) == (1, LINE), name
        assert code in (0, 1, 2) and (not code or text.startswith("fastsim: ")), (name, text)
    assert Path(f"{tmp_path}/0/run.json").is_file() == (whole and not defaults)
