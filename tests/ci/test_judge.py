"""What the stress tests say of what a stopped command left: right of what is promised, wrong of the rest."""

from __future__ import annotations

import signal

import pytest

from tests.stress.judge import (
    GROWTH_KIB,
    Sight,
    gained_kib,
    wrong_growth,
    wrong_kill,
    wrong_race,
    wrong_stop,
    wrong_tables,
)
from tests.stress.repeats import ENGINES, EVERY, compared, resident_kib, tables

INT, TERM, KILL = signal.SIGINT, signal.SIGTERM, signal.SIGKILL
ON = "fastsim: interrupted; go on with: fastsim resume out\n"
NOTHING = "fastsim: interrupted, nothing written\n"
COMPLETE = "fastsim: interrupted; out is complete\n"
DONE = "fastsim: interrupted; all was done\n"
RUNS = "fastsim: interrupted; 2 of 6 runs are complete; the same command goes on\n"


def sight(pressed: signal.Signals, code: int, err: str, left: str, complete: bool = False, kind: str = "run") -> Sight:
    """What was seen, with the names that are left in one text."""
    return Sight(kind, pressed, code, err, complete, frozenset(left.split()))


@pytest.mark.parametrize(
    "seen",
    [
        sight(INT, 130, NOTHING, ""),
        sight(TERM, 143, ON, "out.checkpoint"),
        sight(INT, 130, COMPLETE, "out"),
        sight(TERM, 143, DONE, "out", kind="export"),  # after its last look
        sight(INT, 0, "", "out", complete=True),
        sight(INT, -INT, "", ""),
        sight(INT, 1, "Traceback ...\nKeyboardInterrupt\n", ""),
        sight(INT, 130, RUNS, "out", kind="sweep"),
        sight(TERM, 143, DONE, "out", complete=True, kind="sweep"),
    ],
)
def test_promised(seen: Sight) -> None:
    assert wrong_stop(seen) == ""


@pytest.mark.parametrize(
    "seen",
    [
        sight(TERM, 130, NOTHING, ""),  # the code of another signal
        sight(INT, 130, NOTHING, "out.checkpoint"),
        sight(INT, 130, NOTHING, "out"),
        sight(INT, 130, NOTHING, ".out.lock"),
        sight(INT, 130, DONE, ""),
        sight(INT, 130, DONE, "out", kind="sweep"),  # while runs are missing
        sight(INT, 130, ON, ""),
        sight(INT, 130, ON, "out.checkpoint .out.lock"),
        sight(INT, 0, "", "out"),  # ignored
        sight(INT, -INT, "", "out"),
        sight(INT, 130, NOTHING + NOTHING, ""),
        sight(INT, 1, "fastsim: internal error\n", ""),
        sight(INT, 130, "", ""),
    ],
)
def test_not_promised(seen: Sight) -> None:
    assert wrong_stop(seen) != ""


def test_after_a_kill_only_what_the_next_one_removes() -> None:
    assert wrong_kill(sight(KILL, -KILL, "", "out.checkpoint .out.lock .out.12.partial")) == ""
    assert "stray" in wrong_kill(sight(KILL, -KILL, "", "stray"))
    assert "exit code 1" in wrong_kill(sight(KILL, 1, "", ""))


def test_a_race_has_one_winner_and_plain_refusals() -> None:
    refused = (1, "fastsim: out: found process 3 at work on it, expected another\n")
    assert wrong_race([(0, ""), refused, refused], shared=False) == ""
    assert wrong_race([(0, ""), (0, "")], shared=True) == ""
    assert "2 of 2" in wrong_race([(0, ""), (0, "")], shared=False)
    assert "0 of 2" in wrong_race([refused, refused], shared=False)
    assert "one line" in wrong_race([(0, ""), (1, "Traceback\nboom\n")], shared=False)


def test_memory_may_grow_at_first_and_for_a_moment_but_not_on_and_on() -> None:
    warm = [100_000 + 3000 * min(k, 20) for k in range(100)]
    assert gained_kib(warm) == 0 and wrong_growth("pods", warm) == ""
    moment = [*warm[:-1], warm[-1] + 50_000]
    assert wrong_growth("pods", moment) == ""
    lost = [100_000 + 100 * k for k in range(100)]  # 5 KiB at each of 20 runs between two readings
    assert gained_kib(lost) == 5000 > GROWTH_KIB
    assert wrong_growth("pods", lost) == "pods grew by 5,000 KiB, more than 4,096"


def test_tables_of_threads_are_compared_by_seed_and_name() -> None:
    expected = {1: {"jobs": "a", "summary": "b"}, 2: {"jobs": "c", "summary": "d"}}
    assert wrong_tables("pods", expected, [expected, dict(reversed(expected.items()))]) == ""
    other = {**expected, 2: {"jobs": "c", "summary": "x"}}
    assert wrong_tables("pods", expected, [expected, other]) == "pods has 1 other tables: summary of seed 2"
    assert "summary of seed 1" in wrong_tables("pods", expected, [{2: expected[2]}])
    assert "stages of seed 1" in wrong_tables("pods", expected, [{**expected, 1: {**expected[1], "stages": "e"}}])
    swapped = {1: expected[2], 2: expected[1]}
    assert wrong_tables("pods", expected, [swapped]).startswith("pods has 4 other tables")


def test_memory_is_read_between_runs_and_equal_runs_have_equal_checksums() -> None:
    readings = resident_kib("monitored", 5, repeats=EVERY)
    assert len(readings) == 1 and readings[0] > 10_000
    assert compared("monitored", 5, threads=2, each=2) == ""


@pytest.mark.parametrize("engine", ENGINES)
def test_runs_of_different_seeds_have_different_tables(engine: str) -> None:
    assert tables(engine, 5) != tables(engine, 6)
