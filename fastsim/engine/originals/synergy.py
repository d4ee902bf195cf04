"""Results of Synergy's simulator: the log of ``runner.py``, and the tables of completion times that it writes.

The log has the end of each job in hours with two decimals, whatever the window; mean, 99th and 99.9th percentile are of
the jobs in the window. ``job_completion.csv`` has hours; the tables of a whole sweep have seconds under the same name.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from pathlib import Path

from fastsim.engine.originals import original_run as file
from fastsim.engine.originals.original_run import HOUR_S, NUMBER, OriginalRun, Printed

PATTERNS = {
    "job": rf"\[(\d+)\] : Finished \S+ at {NUMBER}hrs",
    "jct_mean_s": rf"^Mean = +{NUMBER}",
    "jct_p99_s": rf"^99th = +{NUMBER}",
    "jct_p999_s": rf"^99\.9th = +{NUMBER}",
}
IN_HOURS = "job_completion.csv"
COLUMNS = ("job id", "time (hours)")


def read(path: Path, wanted: str | None = None) -> OriginalRun:
    """The figures of a log, or the completion times of a table."""
    if path.suffix == ".csv":
        return _table(path)
    figures: dict[str, Printed] = {}
    ends: dict[str, Printed] = {}
    for number, name, match in file.matches(path, PATTERNS):
        where = f"{path}:{number}"
        if name == "job":
            file.once(ends, match[1], file.printed(match[2]).times(HOUR_S), where)
        else:
            file.once(figures, name, file.printed(match[1]).times(HOUR_S), where)
    if not figures and not ends:
        file.refuse(path, "a log of Synergy's runner with its lines `[ID] : Finished ... at ...hrs`")
    return OriginalRun(f"synergy:{path}", figures, {"end_s": ends} if ends else {})


def _table(path: Path) -> OriginalRun:
    table = file.texts(path)
    if not set(COLUMNS) <= set(table.columns) or table.is_empty():
        file.refuse(path, f"completion times of jobs in the columns {' and '.join(COLUMNS)}")
    jobs, values = (file.numbers(path, table[name]) for name in COLUMNS)
    factor = HOUR_S if path.name == IN_HOURS else 1.0
    times = {str(int(job)): Printed(value * factor) for job, value in zip(jobs, values, strict=False)}
    mean = Printed(reduce(add, (time.value for time in times.values())) / len(times))
    return OriginalRun(f"synergy:{path}", {"jct_mean_s": mean}, {"jct_s": times})
