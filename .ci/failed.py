"""Names the tests that failed, with the command that repeats each alone: failed.py [--before WORDS] LOG..."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

SHOWN = 12
"""Commands that are printed; the number of the rest is told."""
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def failed_tests(lines: Iterable[str]) -> list[str]:
    """The tests that the summary of pytest names as failed or broken, each once."""
    found: dict[str, None] = {}
    for line in lines:
        word, _, rest = COLOUR.sub("", line).rstrip("\n").partition(" ")
        if word in ("FAILED", "ERROR") and re.match(r"\S+\.py\b", rest):
            found[_test(rest)] = None
    return list(found)


def repeating(test: str, before: str = "") -> str:
    """The command that runs this test alone."""
    return f"{before} python -m pytest {shlex.quote(test)} -n 0".lstrip()


def _test(rest: str) -> str:
    """The name in front of the reason; a parameter may hold what stands between the two."""
    parts = rest.split(" - ")
    count = 1
    while count < len(parts) and "[" in parts[0] and not parts[count - 1].endswith("]"):
        count += 1
    whole = " - ".join(parts[:count])
    return whole if whole.endswith("]") else parts[0]


def main() -> None:
    """Print what failed in these logs."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--before", default="", help="what stands in front of the commands")
    words.add_argument("logs", nargs="+", type=Path)
    given = words.parse_args()
    logs = [path for path in given.logs if path.exists()]
    tests = failed_tests(line for path in logs for line in path.read_text(errors="replace").splitlines())
    if not tests:
        return
    print(f"CI: {len(tests)} tests failed; each alone:")
    for test in tests[:SHOWN]:
        print(f"  {repeating(test, given.before)}")
    if len(tests) > SHOWN:
        print(f"  and {len(tests) - SHOWN} more")


if __name__ == "__main__":
    main()
