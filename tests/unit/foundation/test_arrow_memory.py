"""Arrow's memory comes from C's allocator while a run streams, and from where it came before afterwards."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.foundation.arrow_memory import CHOICE, streaming


def present() -> str:
    return str(pa.default_memory_pool().backend_name)


@pytest.fixture
def usual(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Arrow's own allocator, chosen by nobody."""
    if sys.platform != "linux" or "mimalloc" not in pa.supported_memory_backends():
        pytest.skip("found no mimalloc on Linux, for which this is meant")
    monkeypatch.delenv(CHOICE, raising=False)
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.mimalloc_memory_pool())
    yield present()
    pa.set_memory_pool(before)


def test_the_last_run_to_end_restores_what_was_before_the_first(usual: str) -> None:
    first, second = streaming(), streaming()
    first.__enter__()
    second.__enter__()
    assert present() == "system"
    first.__exit__(None, None, None)
    assert present() == "system"
    second.__exit__(None, None, None)
    assert present() == usual


def test_a_failure_restores_it_too(usual: str) -> None:
    with pytest.raises(KeyError), streaming():
        raise KeyError
    assert present() == usual


def test_what_the_user_chose_stays(usual: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOICE, usual)
    with streaming():
        assert present() == usual
    monkeypatch.delenv(CHOICE)
    pa.set_memory_pool(pa.jemalloc_memory_pool() if "jemalloc" in pa.supported_memory_backends() else
                       pa.system_memory_pool())  # fmt: skip
    chosen = present()
    with streaming():
        assert present() == chosen


def test_a_run_to_a_folder_streams(usual: str, tmp_path: Path) -> None:
    seen: list[str] = []
    pods = fs.Workload.synth("openb", pods=50, seed=1)
    for out in (tmp_path / "run", None):
        fs.simulate("openb:20", pods, "fgd", out=out, progress=lambda _: seen.append(present()))
        assert present() == usual
    assert seen[0] == "system" and seen[-1] == usual
