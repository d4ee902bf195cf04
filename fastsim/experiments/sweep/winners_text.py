"""The ranking of candidates as text: a table, its unit, and what the runs do not tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from fastsim.engine.audit.metric_definitions import better, unit
from fastsim.experiments.statistics.ranking import UNKNOWN
from fastsim.reports.text_tables import text_table


def winners_text(ranking: pl.DataFrame, metric: str, keys: Sequence[str]) -> str:
    """The table of :func:`~fastsim.experiments.statistics.ranking.winners` as text; columns ``keys`` name a row."""
    columns = [(name, name.replace("_", " ")) for name in keys]
    failed = int(ranking["failed"].sum())
    columns += [
        ("n", "runs"),
        *([("failed", "failed")] if failed else []),
        ("mean", f"mean\n{metric}"),
        ("low", "from"),
        ("high", "to"),
    ]
    columns += [("difference", "to the\nbest"), ("p_value", "p"), ("verdict", "verdict")]
    notes = [*_failed_note(failed, metric), *_untold_note(ranking)]
    return text_table(ranking, columns, left=(*keys, "verdict")) + _legend(metric) + "".join(f"{x}\n" for x in notes)


def _failed_note(failed: int, metric: str) -> Iterator[str]:
    """A note about runs without a figure, if there are some."""
    if failed:
        runs = "1 run has" if failed == 1 else f"{failed:,} runs have"
        yield f"{runs} no {metric} and count in no mean: a candidate that fails on hard cases looks better than it is"


def _untold_note(ranking: pl.DataFrame) -> Iterator[str]:
    """How many pairs would tell the candidates apart that these do not tell apart."""
    untold = ranking.filter(pl.col("verdict") == UNKNOWN)
    if untold.is_empty():
        return
    needed = untold["pairs_needed"].cast(pl.Int64).drop_nulls().to_list()
    enough = f"; about {min(needed):,} pairs would show the largest of these differences" if needed else ""
    yield f"cannot tell: too few pairs, or too different ones{enough}. More seeds tell more; so may --bootstrap"


def _legend(metric: str) -> str:
    """The unit of a metric and which end of it is the better one, where they are known."""
    measure, direction = unit("summary", metric), better("summary", metric)
    parts = (f"in {measure}" if measure else "", f"{direction} is better" if direction else "")
    legend = ", ".join(filter(None, parts))
    return f"{metric}: {legend}\n" if legend else ""
