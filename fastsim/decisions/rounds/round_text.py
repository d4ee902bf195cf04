"""The explanation of a round as text for terminals: a block for each job."""

from __future__ import annotations

from typing import Any

import polars as pl

from fastsim.decisions.rounds.columns import RUNS, counted
from fastsim.decisions.rounds.round_explanation import RoundExplanation
from fastsim.errors import on_one_line
from fastsim.reports.text_tables import grid_text

SHOWN = 10
"""Most jobs, and configurations of a job, that are shown by default."""
FIGURES: dict[str, dict[str, str]] = {
    "shares": {
        "gpu_model": "GPU model", "mate_id": "with job", "place": "place", "share": "share", "received": "received",
        "priority": "priority", "deficit_s": "deficit s", "free": "free", "why": "why",
    },
    "adaptive": {
        "gpu_model": "GPU model", "nodes": "nodes", "asks": "GPUs", "goodput": "goodput", "value": "value",
        "free": "free", "why": "why",
    },
}  # fmt: skip
"""Columns of the tables, and their headings; ordered rounds have a line for each job."""


def round_text(explanation: RoundExplanation, every: bool = False) -> str:
    """The round in a line, and a block for each of its first ten jobs, or for ``every`` one."""
    frame = explanation.table
    blocks = frame.partition_by("pod_id", maintain_order=True)
    ran = sum(block["state"][0] == RUNS for block in blocks)
    text = f"round {explanation.number:,} at {explanation.began_s:,g} s: "
    text += f"of {counted(len(blocks), 'job')} {ran:,} {'runs' if ran == 1 else 'run'}\n"
    shown = blocks if every else blocks[:SHOWN]
    text += "".join(f"\n{_block(explanation.engine, block, every)}" for block in shown)
    left = len(blocks) - len(shown)
    return text + (f"\n{counted(left, 'more job')}: --all\n" if left else "")


def _block(engine: str, block: pl.DataFrame, every: bool) -> str:
    """One job."""
    row = block.row(0, named=True)
    name = "" if row["native_id"] is None else f" ({on_one_line(row['native_id'], 200)})"
    head = f"job {row['pod_id']}{name} "
    if engine == "orders":
        return f"{head}{_stated(row)}\n{_ordered(row)}"
    if engine == "shares":
        return f"{head}{row['state']}, asks for {counted(row['asks'], 'GPU')}\n{_listed(engine, block, every)}"
    offers = block.filter(pl.col("goodput").is_not_null())
    return f"{head}{_stated(row) if row['goodput'] is None else row['state']}\n{_listed(engine, offers, every)}"


def _stated(row: dict[str, Any]) -> str:
    """That a job runs or waits, and why."""
    return str(row["why"]) if row["state"] == RUNS else f"waits: {row['why']}"


def _listed(engine: str, rows: pl.DataFrame, every: bool) -> str:
    """A table of the first rows, or of ``every`` one."""
    shown = rows if every else _first(rows)
    more = len(rows) - len(shown)
    table = _table(FIGURES[engine], shown) if len(shown) else ""
    return table + (f"{counted(more, 'more row')}: --all\n" if more else "")


def _first(rows: pl.DataFrame) -> pl.DataFrame:
    """The first rows, and the one that was chosen."""
    return pl.concat([rows.head(SHOWN), rows.slice(SHOWN).filter(pl.col("gpus") > 0)])


def _ordered(row: dict[str, Any]) -> str:
    """Place, key and free resources of a job in an ordered round."""
    parts = []
    if row["place"] is not None:
        key = ", ".join(f"{term} {_number(value)}" for term, value in zip(row["terms"], row["key"], strict=True))
        parts.append(f"place {row['place']:,} by {key}")
    if row["free"] is not None:
        turn = "without a turn" if row["turn"] is None else f"turn {row['turn']:,}"
        room = f"{turn}: free {counted(row['free'], 'GPU')}"
        if row["cpu_milli_free"] is not None and row["cpu_milli"]:
            room += f", {_number(row['cpu_milli_free'])} milli-CPU, {_number(row['memory_mib_free'])} MiB"
        parts.append(room)
    asks = f"asks for {counted(row['asks'], 'GPU')}"
    if row["cpu_milli"] or row["memory_mib"]:
        asks += f", {_number(row['cpu_milli'])} milli-CPU, {_number(row['memory_mib'])} MiB"
    return "".join(f"  {part}\n" for part in [asks, *parts])


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 and abs(value) < 1e15 else f"{value:.4g}"


def _table(columns: dict[str, str], rows: pl.DataFrame) -> str:
    shown = {name: title for name, title in columns.items() if rows[name].null_count() < len(rows)}
    figures = [name for name in shown if rows.schema[name].is_numeric()]
    texts = {name: pl.Series([_cell(value) for value in rows[name]], dtype=pl.String) for name in shown}
    if "gpu_model" in texts:
        texts["gpu_model"] = texts["gpu_model"].replace("", "any")
    return grid_text(shown, pl.DataFrame(texts), figures)


def _cell(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return _number(value) if isinstance(value, float) else f"{value:,}"
