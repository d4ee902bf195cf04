"""The text about a pair of runs: the sentence, groups, jobs, and what is left out."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from fastsim.reports.pairs.completion_parts import PARTS
from fastsim.reports.pairs.pair_text import pairs_text
from fastsim.reports.pairs.paired_jobs import PairedJobs
from tests.pairs import by_hand


def test_the_first_lines_name_the_faster_run_and_the_part_that_differs_most() -> None:
    lines = pairs_text(by_hand()).splitlines()
    assert lines[:2] == [
        "a = fifo, b = priority",
        "A job needs 30.0 s less under priority than under fifo, mostly waiting (+30.0 s). "
        "Of 3 jobs 1 are faster under a, 1 under b.",
    ]


def test_groups_that_are_known_are_listed() -> None:
    pairs = by_hand()
    text = pairs_text(pairs)
    assert "By size (GPUs that the job asks for)" in text and "By tenant (tenant of the job)" in text
    unknown = pairs.jobs.with_columns(size=pl.lit(None, pl.Float64))
    assert "By size: not known" in pairs_text(replace(pairs, jobs=unknown))


def test_equal_runs_and_jobs_that_are_left_out_are_named() -> None:
    pairs = by_hand()
    same = [column for column in pairs.jobs.columns if column in ("difference", *PARTS)]
    equal = PairedJobs(pairs.names, pairs.jobs.with_columns(**dict.fromkeys(same, 0.0)), pairs.unpaired)
    assert "Both need the same time on average." in pairs_text(equal)
    assert "Left out: 2 done only in a." in pairs_text(replace(pairs, unpaired={"only in a": 2, "only in b": 0}))
