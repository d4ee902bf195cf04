"""Logs of Gavel's simulator, as its scripts print them and as ``run --log`` writes them.

Times are in seconds with three decimals, use is a part of the GPUs. Jobs are named by their order of arrival; jobs that
were given up have no time.
"""

from __future__ import annotations

from pathlib import Path

from fastsim.engine.originals.original_run import NUMBER, OriginalRun, Printed, matches, once, printed, refuse

PATTERNS = {
    "end_s": rf"^Total duration: {NUMBER} seconds",
    "jct_mean_s": rf"^Average job completion time: {NUMBER} seconds",
    "jct_low_priority_s": rf"^Average job completion time \(low priority\): {NUMBER} seconds",
    "jct_high_priority_s": rf"^Average job completion time \(high priority\): {NUMBER} seconds",
    "utilization_pct": rf"^Cluster utilization: {NUMBER}",
    "cost": rf"^Total cost: \$?{NUMBER}",
    "slo_violations": r"^Number of SLO violations: (\d+)",
    "job": rf"^Job (\d+): {NUMBER}",
}


def read(path: Path, wanted: str | None = None) -> OriginalRun:
    """The figures at the end of a log."""
    figures: dict[str, Printed] = {}
    jobs: dict[str, Printed] = {}
    for number, name, match in matches(path, PATTERNS):
        where = f"{path}:{number}"
        if name == "job":
            once(jobs, match[1], printed(match[2]), where)
        else:
            once(figures, name, printed(match[1]).times(100 if name == "utilization_pct" else 1), where)
    if not figures:
        refuse(path, "a log of Gavel's simulator with its line `Total duration: ... seconds`")
    return OriginalRun(f"gavel:{path}", figures, {"jct_s": jobs} if jobs else {})
