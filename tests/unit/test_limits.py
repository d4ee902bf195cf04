"""Limits of tests: what takes too much fails by name, and the tests after it are run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import environment

ROOT = Path(__file__).resolve().parents[2]
ENDLESS = """
import threading, subprocess, sys
from hypothesis import given, strategies as st

def test_waits(): threading.Event().wait()
def test_computes():
    while True:
        try:
            sum(range(1000))
        except Exception:
            pass
@given(st.integers())
def test_draws(number): threading.Event().wait()
def test_waits_for_another(): subprocess.run([sys.executable, "-c", "import threading; threading.Event().wait()"])
def test_is_well(): pass
"""
GREEDY = """
def test_takes_much(): bytearray(3 << 30)
def test_is_well(): pass
"""
STUCK = """
import signal, threading
def test_is_well(): pass
def test_cannot_be_interrupted():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    threading.Event().wait()
"""


def tried(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """These tests in a process of their own with these limits."""
    (folder / "test_much.py").write_text(text)
    wide = environment(ROOT) | {"COLUMNS": "1000"}  # the summary is cut at the edge of the terminal
    words = [sys.executable, "-m", "pytest", "-p", "tests.limits", "-p", "no:cacheprovider", "-rfE", *options]
    return subprocess.run(words, cwd=folder, env=wide, capture_output=True, text=True)


def failures(told: str) -> dict[str, str]:
    """Test by test what the summary says of it."""
    lines = [line.partition(" - ") for line in told.splitlines() if line.startswith("FAILED ")]
    return {name.rpartition("::")[2]: what for name, _, what in lines}


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGALRM")
def test_what_takes_too_long_fails_by_name(tmp_path: Path) -> None:
    done = tried(tmp_path, ENDLESS, "--most-s", "1")
    found = failures(done.stdout)
    assert found.keys() == {"test_waits", "test_computes", "test_draws", "test_waits_for_another"}, done.stdout
    assert all("took more than 1 s" in what for what in found.values()) and "4 failed, 1 passed" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGALRM")
def test_what_cannot_be_interrupted_ends_with_its_stack(tmp_path: Path) -> None:
    done = tried(tmp_path, STUCK, "--most-s", "1")
    assert done.returncode == 1 and "in test_cannot_be_interrupted" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux")
def test_what_takes_too_much_memory_fails_by_name(tmp_path: Path) -> None:
    done = tried(tmp_path, GREEDY, "--most-mib", "2048")
    assert failures(done.stdout) == {"test_takes_much": "MemoryError"} and "1 failed, 1 passed" in done.stdout
