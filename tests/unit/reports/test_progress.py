"""Progress bars: silent without a terminal and in the first second."""

from __future__ import annotations

import io

import pytest

from fastsim.reports import progress


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        """Always."""
        return True


def test_no_terminal_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    with progress.progress_bar("pods") as tell:
        assert tell is None
    assert stream.getvalue() == ""


def test_what_is_quick_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    with progress.progress_bar("pods", 10) as tell:
        assert tell is not None
        tell(10)
    assert stream.getvalue() == ""


@pytest.mark.parametrize(("total", "text"), [(8, "3 of 8 runs"), (None, "3 runs")])
def test_what_takes_longer_is_shown(monkeypatch: pytest.MonkeyPatch, total: int | None, text: str) -> None:
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(progress, "DELAY_S", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    with progress.progress_bar("runs", total) as tell:
        assert tell is not None
        tell(3)
    assert text in stream.getvalue()
