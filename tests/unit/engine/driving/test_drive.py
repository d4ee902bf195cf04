"""A loop is played from stop to stop until it is done; both languages number the stops alike."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fastsim.engine.driving.drive import Stop, drive

TYPES = Path(__file__).resolve().parents[4] / "fastsim_ext" / "types.pxd"


def test_each_stop_is_handled_before_the_loop_goes_on() -> None:
    seen: list[str] = []
    stops = iter([Stop.WANT_ARRIVALS, Stop.PAUSE, Stop.WANT_ARRIVALS, Stop.DONE, Stop.PAUSE])

    def advance() -> int:
        seen.append("advance")
        return next(stops)

    drive(advance, {stop: lambda stop=stop: seen.append(stop.name) for stop in Stop})  # type: ignore[misc]
    assert seen == ["advance", "WANT_ARRIVALS", "advance", "PAUSE", "advance", "WANT_ARRIVALS", "advance"]


def test_a_stop_without_a_handler_is_an_error() -> None:
    with pytest.raises(KeyError):
        drive(lambda: Stop.DEADLOCK, {})
    with pytest.raises(KeyError, match="99"):
        drive(lambda: 99, {})


def test_compiled_loops_number_the_stops_as_python_does() -> None:
    text = re.search(r"cdef enum:  # Stop: .*\n((?:    .*\n)+)", TYPES.read_text(encoding="utf-8"))
    assert text is not None
    names = re.findall(r"\b[A-Z_]+\b", re.sub(r"#.*", "", text[1]))
    assert names == [stop.name for stop in sorted(Stop)] and [*map(int, Stop)] == [*range(len(Stop))]
