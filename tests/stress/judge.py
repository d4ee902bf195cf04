"""Checks of the files and the output that a stopped command leaves."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
"""Exit codes of a command that a signal stopped in order."""
LINE = re.compile(r"fastsim: [a-z]+(.*)")
GROWTH_KIB = 4096
"""Most memory that a process may gain over the second half of its runs, KiB: 4 KiB for each of 1,000 runs.

The least that an engine could lose at each run, one of its tables, is larger.
"""
REFUSALS = ("at work on it", "exists already")
"""Parts of the messages of a process that may not write to a folder."""


@dataclass(frozen=True)
class Sight:
    """Outcome of a command that received a signal."""

    kind: str
    """``run``, ``sweep``, ``export``, ``import`` or ``reproduction``: what it writes is called ``out`` in each case."""
    pressed: signal.Signals
    code: int
    err: str
    complete: bool
    """Whether its result was complete when the signal came."""
    left: frozenset[str]
    """Names in its folder, without those that were there before it began."""


def wrong_stop(sight: Sight) -> str:
    """Violation by a command that received SIGINT or SIGTERM; empty if there is none.

    It must leave a whole result, a checkpoint to go on from, or nothing, and must not ignore the signal.
    """
    code, told = sight.code, _told(sight)
    if code == 0:
        whole = sight.left == {"out"} and not sight.err
        return "" if sight.complete and whole else "ended as if nothing had come"
    if not has_begun(sight.err) and code in (1, -sight.pressed):  # while Python starts it ends in its own way
        return f"left {_names(sight.left)}" if sight.left else ""
    if told is None:
        return "neither its exit code nor one line on standard error says that it was stopped"
    return "" if told in _promised(sight) else f"said {told!r}, left {_names(sight.left)}"


def wrong_kill(sight: Sight) -> str:
    """Violation by a killed command, which may leave only files that the next one removes."""
    partial = r"\.out\.\d+\.(partial|former)|\.out\.(yaml|parquet)\.\d+\.partial"
    known = re.compile(rf"out|out\.checkpoint|\.out\.lock|{partial}")
    strange = [name for name in sight.left if not known.fullmatch(name)]
    if sight.code not in (0, -sight.pressed):
        return f"exit code {sight.code}"
    return f"left {_names(strange)}" if strange else ""


def wrong_race(codes_and_errors: Iterable[tuple[int, str]], shared: bool) -> str:
    """Violation by processes at the same work in one folder; ``shared``: several may succeed."""
    ended = list(codes_and_errors)
    won = sum(code == 0 for code, _ in ended)
    if won == 0 or (won > 1 and not shared):
        return f"{won} of {len(ended)} ended well"
    for code, err in ended:
        if code and (len(err.splitlines()) != 1 or not any(text in err for text in REFUSALS)):
            return f"one was not refused in one line: exit code {code}, {err!r}"
    return ""


def wrong_growth(what: str, readings_kib: Sequence[int]) -> str:
    """Violation by a process that has more and more memory; empty if there is none."""
    grown = gained_kib(readings_kib)
    return f"{what} grew by {grown:,.0f} KiB, more than {GROWTH_KIB:,}" if grown > GROWTH_KIB else ""


def gained_kib(readings_kib: Sequence[int]) -> float:
    """What a process gained over the second half of its readings, by the medians of tenths of them.

    A single reading may be of a moment before memory is given back. The middles of the two tenths are less than a half
    apart, so their difference is scaled.
    """
    tenth, half = max(1, len(readings_kib) // 10), len(readings_kib) // 2
    gained = median(readings_kib[-tenth:]) - median(readings_kib[half : half + tenth])
    return gained * half / max(1, len(readings_kib) - half - tenth)


def wrong_tables(
    what: str, expected: Mapping[int, Mapping[str, str]], found: Iterable[Mapping[int, Mapping[str, str]]]
) -> str:
    """Violation by runs with other tables than those expected, all by seed; empty if there is none."""
    wrong = [
        f"{name} of seed {seed}"
        for runs in found
        for seed, tables in expected.items()
        for name in {**tables, **runs.get(seed, {})}
        if runs.get(seed, {}).get(name) != tables.get(name)
    ]
    return f"{what} has {len(wrong)} other tables: {', '.join(wrong[:5])}" if wrong else ""


def has_begun(err: str) -> bool:
    """Whether a stopped command printed a line of its own, so that it was past the start of Python."""
    return "fastsim: " in err


def _told(sight: Sight) -> str | None:
    """The end of the single line about the interruption; None without such a line."""
    found = LINE.fullmatch(sight.err.removesuffix("\n"))
    return found[1] if found and sight.code == CODES.get(sight.pressed) else None


def _promised(sight: Sight) -> set[str]:
    """Ends of that line that agree with the files left."""
    if sight.kind == "sweep":
        done = re.search(r"; \d+ of \d+ runs are complete; the same command goes on", sight.err)
        after = {"; all was done"} if sight.complete and sight.left == {"out"} else set()
        return {", nothing written", *([done[0]] if done else []), *after}
    if sight.left == {"out"}:  # all was done: the signal came after the last look at signals
        return {"; out is complete", "; all was done"}
    if sight.left == {"out.checkpoint"}:
        return {"; go on with: fastsim resume out"}
    return set() if sight.left else {", nothing written"}


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
