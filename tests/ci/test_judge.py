"""What the stress tests say of what a stopped command left: right of what is promised, wrong of the rest."""

from __future__ import annotations

import signal

import pytest

from tests.stress.judge import Sight, wrong_kill, wrong_race, wrong_stop

INT, TERM, KILL = signal.SIGINT, signal.SIGTERM, signal.SIGKILL
ON = "fastsim: interrupted; go on with: fastsim resume out\n"
NOTHING = "fastsim: interrupted, nothing written\n"
COMPLETE = "fastsim: interrupted; out is complete\n"
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
        sight(INT, 0, "", "out", complete=True),
        sight(INT, -INT, "", ""),
        sight(INT, 1, "Traceback ...\nKeyboardInterrupt\n", ""),
        sight(INT, 130, RUNS, "out", kind="sweep"),
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
