"""Variables that must be whole numbers: their bounds, and what is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fastsim.cli.main import LIGHT
from fastsim.errors import ScenarioError
from fastsim.foundation.limits import environment as limits
from fastsim.foundation.limits.environment import BOUNDS, ROOM_OF_PICTURES, number_of, refuse_odd_numbers
from tests.cli.terminal import environment
from tests.needs import needs


@pytest.mark.parametrize("name", BOUNDS)
def test_a_value_stands_between_its_bounds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(name, raising=False)
    assert number_of(name) is None
    least, most = BOUNDS[name]
    for text, number in ((str(least), least), (str(most), most), ("", None), (" 2 ", 2)):
        monkeypatch.setenv(name, text)
        refuse_odd_numbers()
        assert number_of(name) == number
    for text in (str(least - 1), str(most + 1), "-1", "1.5", "1e3", "many", "٣", "9" * 5000):
        monkeypatch.setenv(name, text)
        with pytest.raises(ScenarioError, match=rf"{name}: found '.*, expected a whole number from {least} to"):
            refuse_odd_numbers()


IN_LITTLE_ROOM = """
import os, resource, sys
import fastsim as fs
from fastsim.cli.main import exit_code
from fastsim.foundation.limits.environment import BOUNDS

def told():
    for name in ("simulate", "Workload", "Cluster", "compare"):
        try:
            getattr(fs, name)
            print("loaded", name)
        except fs.FastsimError as error:
            print(error)

words = ["run", "--cluster", "openb:4", "--workload", "synth:openb?pods=5"]
assert exit_code(["list", "policies", "-q"]) == 0
for variable in sorted(name for name in BOUNDS if name.startswith("POLARS_")):
    os.environ[variable] = "0"
    told()
    del os.environ[variable]
resource.setrlimit(resource.RLIMIT_AS, (900_000_000, resource.RLIM_INFINITY))
assert exit_code(words) == 2
assert exit_code(["list", "policies", "-q"]) == 0
told()
assert "polars" not in sys.modules
os.environ["POLARS_MAX_THREADS"] = "2"
resource.setrlimit(resource.RLIMIT_AS, (1300 << 20, resource.RLIM_INFINITY))
assert exit_code([*words, "-q"]) == 0
"""


@pytest.mark.skipif(sys.platform != "linux", reason="addresses are limited on Linux")
def test_nothing_is_loaded_where_it_would_end_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_LITTLE_ROOM], capture_output=True, text=True, timeout=120, env=environment()
    )
    assert done.returncode == 0, done.stderr
    needed = done.stderr.partition("fastsim: ")[2].splitlines()[0]
    assert needed.startswith("ulimit -v: found 858 MiB of addresses, expected at least ")
    lines = [line for line in done.stdout.splitlines() if ": found " in line]
    threads = sorted(name for name in BOUNDS if name.startswith("POLARS_") for _ in range(4))
    assert [line.partition(": found '0', expected a whole number")[0] for line in lines[:-4]] == threads
    assert lines[-4:] == [needed] * 4 and "loaded" not in done.stdout


PICTURES = """
import resource
from fastsim.cli.main import exit_code
from fastsim.foundation.limits.environment import ROOM_OF_PICTURES

assert exit_code(["run", "--cluster", "openb:4", "--workload", "synth:openb?pods=5", "--out", "r", "-q"]) == 0
plot = ["plot", "jct_cdf", "r", "-q", "-o"]
for room, code in ((ROOM_OF_PICTURES - 1, 2), (ROOM_OF_PICTURES, 0)):
    resource.setrlimit(resource.RLIMIT_AS, (room << 20, resource.RLIM_INFINITY))
    assert exit_code([*plot, "x.json"]) == 0
    for out in ("x.svg", "x.html"):
        assert exit_code([*plot, out]) == code, (room, out)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="addresses are limited on Linux")
@needs("vl_convert")
def test_pages_and_pictures_are_refused_where_they_would_end_the_process(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PICTURES], capture_output=True, text=True, timeout=120, env=environment(), cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    told = f"MiB of addresses, expected at least {ROOM_OF_PICTURES:,} MiB for pages and pictures of charts; charts as"
    assert [told in line for line in done.stderr.splitlines()] == [True, True]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r", "x.html", "x.json", "x.svg"]


def test_more_threads_need_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2500 << 20, resource.RLIM_INFINITY))
    for threads, fits in (("1", True), ("2", True), ("6", True), ("7", False), ("64", False)):
        monkeypatch.setenv("POLARS_MAX_THREADS", threads)
        if fits:
            limits.refuse_unfit()
        else:
            with pytest.raises(ScenarioError, match=f"for {threads} threads of polars; .*=1 needs less"):
                limits.refuse_unfit()


def test_light_words_are_words_of_the_command_line() -> None:
    from fastsim.cli.main import commands

    assert {word for word in LIGHT if not word.startswith("-")} <= commands.commands.keys()
