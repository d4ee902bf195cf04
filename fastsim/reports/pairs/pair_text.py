"""Why one run is faster than another, as text for a terminal."""

from __future__ import annotations

import polars as pl

from fastsim.reports.pairs.completion_parts import PARTS
from fastsim.reports.pairs.paired_jobs import GROUPS, PairedJobs
from fastsim.reports.text_tables import text_table

MOST_GROUPS = 12
"""Groups that a table lists; the others are counted."""
JOB = (("native_id", "job"), ("pod_id", "pod_id"), ("size", "GPUs"), ("jct_a", "jct a"), ("jct_b", "jct b"),
       ("difference", "a - b"))  # fmt: skip
"""Columns of a list of jobs before the parts."""


def pairs_text(pairs: PairedJobs) -> str:
    """The verdict, the parts of the mean difference, groups of jobs, and the longest jobs of both runs."""
    a, b = pairs.names
    return "".join((
        f"a = {a}, b = {b}\n{_verdict(pairs)}\n\n", "Mean over jobs, seconds\n", _parts(pairs),
        *(_group(pairs, group) for group in GROUPS),
        *(f"\nLongest jobs of {run} ({name}), seconds\n{_jobs(pairs.longest(run))}"
          for run, name in zip("ab", (a, b), strict=True)),
        f"\nJobs that differ most, seconds\n{_jobs(pairs.furthest())}",
    ))  # fmt: skip


def _verdict(pairs: PairedJobs) -> str:
    """One sentence: which run is faster, by how much, in which part most, and how many jobs."""
    whole = pairs.parts.row(0, named=True)["difference"]
    jobs = pairs.jobs
    faster, slower = (jobs.filter(pl.col("difference") < 0).height, jobs.filter(pl.col("difference") > 0).height)
    over = f" in {pairs.pairs} pairs of runs" if pairs.pairs > 1 else ""
    counts = f"Of {len(jobs):,} jobs{over} {faster:,} are faster under a, {slower:,} under b."
    left_out = [f"{count:,} done {where}" for where, count in pairs.unpaired.items() if count]
    if left_out:
        counts += f" Left out: {', '.join(left_out)}."
    if whole == 0:
        return f"Both need the same time on average. {counts}"
    name, other = pairs.names if whole < 0 else pairs.names[::-1]
    part, seconds = max(((row["part"], row["difference"]) for row in pairs.parts.iter_rows(named=True)
                         if row["part"] in PARTS), key=lambda pair: pair[1] if whole > 0 else -pair[1])  # fmt: skip
    most = f"mostly {part} ({seconds:+,.1f} s)"
    return f"A job needs {abs(whole):,.1f} s less under {name} than under {other}, {most}. {counts}"


def _parts(pairs: PairedJobs) -> str:
    columns = [("part", "part"), ("a", "a"), ("b", "b"), ("difference", "a - b")]
    if pairs.pairs > 1:
        columns += [("low", "95 % low"), ("high", "95 % high")]
    return text_table(pairs.parts, [*columns, ("share_pct", "% of it")], left=("part",))


def _group(pairs: PairedJobs, group: str) -> str:
    if pairs.jobs[group].null_count() == len(pairs.jobs):
        return f"\nBy {group}: not known\n"
    table = pairs.by(group)
    title = f"\nBy {group} ({GROUPS[group]}), mean seconds a - b; total: its part of the mean over all jobs\n"
    shown = table if len(table) <= MOST_GROUPS else table.sort(pl.col("total").abs(), descending=True)
    more = f"and {len(table) - MOST_GROUPS} more\n" if len(table) > MOST_GROUPS else ""
    columns = [(name, name) for name in (group, "jobs", "difference", "total", *PARTS)]
    return title + text_table(shown.head(MOST_GROUPS), columns, left=(group,)) + more


def _jobs(jobs: pl.DataFrame) -> str:
    columns = [column for column in JOB if jobs[column[0]].null_count() < len(jobs)]
    return text_table(jobs, [*columns, *((part, part) for part in PARTS)], left=("native_id",))
