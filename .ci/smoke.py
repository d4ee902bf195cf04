"""Tries each engine on a tiny run and asks each verb for its help; the verbs are those that the command line lists."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

VERB = re.compile(r"  ([a-z][a-z-]*)(?: +[A-Z]|$)")
FASTSIM = [sys.executable, "-m", "fastsim"]
ENGINES = {
    "placement": "--cluster openb:20 --workload synth:openb?pods=200 --policy fgd",
    "shares of rounds": "--cluster gavel:2:2:2 --workload synth:gavel?jobs=8 --policy max_min_fairness",
    "ordered rounds": "--cluster synergy:2 --workload synth:synergy?jobs=8 --policy srtf+tune --rates synergy",
    "adaptive jobs": "--cluster sia:2:1:1 --workload synth:sia?jobs=3 --policy sia --round-s 60",
    "monitored pods": "--cluster uniform?nodes=2&gpu=V100M32&gpus=2 --workload synth:detectors?jobs=20&over=100 "
    "--policy monitored",
}


def answered(*words: str) -> str:
    """Standard output of a command; the process ends here if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*FASTSIM, *words], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode or not done.stdout or done.stderr.count("Traceback"):
        raise SystemExit(f"CI: failed: python -m fastsim {' '.join(words)}\n{done.stderr}")
    return done.stdout


def listed_verbs(page: str) -> Iterator[str]:
    """The verbs that a page of help lists behind its options, in sections or not: indented by two, with a sentence."""
    for line in page.partition("\nOptions:\n")[2].splitlines():
        if found := VERB.match(line):
            yield found[1]


def helped(*verbs: str) -> int:
    """Ask this verb and those below it for help; how many there were."""
    with ThreadPoolExecutor(2) as pool:
        return 1 + sum(pool.map(lambda verb: helped(*verbs, verb), listed_verbs(answered(*verbs, "--help"))))


def main() -> None:
    """Try all, two at a time."""
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda words: answered("run", *words.split()), ENGINES.values()))
    print(f"{len(ENGINES)} engines ran; {helped()} pages of help")


if __name__ == "__main__":
    main()
