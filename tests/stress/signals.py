"""Signals at random moments: SIGINT and SIGTERM, which can be handled, and SIGKILL, which cannot."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

from tests.cli.test_interrupt import left_behind
from tests.stress.ground import CASES, ENDINGS, Case, Ground, finished, start, written
from tests.stress.judge import Sight, has_begun, wrong_kill, wrong_stop

ASKING = (signal.SIGINT, signal.SIGTERM)
RESULTS = {f"out{ending}" for ending in ENDINGS}


def interrupts(ground: Ground, draw: random.Random) -> tuple[str, str]:
    """Send SIGINT or SIGTERM to a command at a random moment; the trial, and its violation (empty: none)."""
    case, pressed = draw.choice(CASES), draw.choice(ASKING)
    folder = ground.begun(case)
    delay_s = draw.random() * 1.1 * ground.whole_s[case.name]
    sight, running = met(case, folder, pressed, delay_s)
    text = f"{case.name}, {pressed.name} after {delay_s:.3f} s"
    findings = [wrong_stop(sight), *([f"processes {running} still run"] if running else [])]
    if sight.err.endswith("; all was done\n"):
        findings.append(_difference(ground, case, folder))
    if not any(findings):
        findings.append(_next(ground, case, folder))
    return text, _summed(findings, sight)


def kills(ground: Ground, draw: random.Random) -> tuple[str, str]:
    """Kill a command at a random moment; the next one must remove its files and write the same bytes."""
    case = draw.choice(CASES)
    folder = ground.begun(case)
    delay_s = draw.random() * 1.1 * ground.whole_s[case.name]
    sight, running = met(case, folder, signal.SIGKILL, delay_s)
    text = f"{case.name}, SIGKILL after {delay_s:.3f} s"
    findings = [wrong_kill(sight), *([f"processes {running} still run"] if running else [])]
    findings.append(_next(ground, case, folder))
    return text, _summed(findings, sight)


def met(case: Case, folder: Path, pressed: signal.Signals, delay_s: float) -> tuple[Sight, list[str]]:
    """Outcome of a command that receives a signal after ``delay_s`` seconds, and its processes that still run."""
    process = start(case.words, folder)
    time.sleep(delay_s)
    os.kill(process.pid, signal.SIGSTOP)  # so that what is looked at is what the signal meets
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    complete = any((folder / f"out{ending}").exists() for ending in ENDINGS)
    os.kill(process.pid, pressed)
    os.kill(process.pid, signal.SIGCONT)
    code, err = finished(process)
    running = left_behind(process.pid)
    left = {"out" if path.name in RESULTS else path.name for path in folder.iterdir()}
    unchanged = case.given if code in (1, -pressed) and not has_begun(err) else None  # it had not begun
    return Sight(case.kind, pressed, code, err, complete, frozenset(left - {unchanged})), running


def _summed(findings: list[str], sight: Sight) -> str:
    """All findings in one text, with the outcome; empty if there is none."""
    text = "; ".join(filter(None, findings))
    return f"{text} ({sight})" if text else ""


def _next(ground: Ground, case: Case, folder: Path) -> str:
    """Go on as documented; the violation by the result then (empty: none)."""
    if (folder / "out.checkpoint" / "state.npz").is_file() and not (folder / "out").exists():
        words: tuple[str, ...] = ("resume", "out")
    elif (folder / "out").exists() and case.again is None:
        return _difference(ground, case, folder)  # it is complete; what the end of its life left is no loss
    else:
        words = case.again or case.words
    code, err = finished(start(words, folder))
    if code:
        return f"then `fastsim {' '.join(words)}` failed: {err!r}"
    names = {path.name for path in folder.iterdir()}
    if len(names) != 1 or not names <= RESULTS:
        return f"then `fastsim {' '.join(words)}` left {sorted(names)}"
    return _difference(ground, case, folder)


def _difference(ground: Ground, case: Case, folder: Path) -> str:
    found, expected = written(folder), ground.expected[case.name]
    return "" if found == expected else f"other bytes than without a signal: {sorted(found)}"
