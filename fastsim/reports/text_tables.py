"""Results as text for terminals and as JSON for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from fastsim.errors import on_one_line

if TYPE_CHECKING:
    import polars as pl

    from fastsim.engine.result import Result

Column = tuple[str, str, int, int]
WIDEST = 10_000
"""Characters of a line that is not for a terminal, at most."""

FIGURES: tuple[tuple[str, str, str, int], ...] = (
    ("pods", "pods", "", 0),
    ("pods_unplaced", "pods that fitted nowhere", "", 0),
    ("pods_pending", "pods still waiting", "", 0),
    ("mean_gpu_alloc_pct", "GPU allocation, mean over time", "%", 2),
    ("mean_cpu_alloc_pct", "CPU allocation, mean over time", "%", 2),
    ("gpu_alloc_pct", "GPU allocation at the end", "%", 2),
    ("cpu_alloc_pct", "CPU allocation at the end", "%", 2),
    ("memory_alloc_pct", "memory allocation at the end", "%", 2),
    ("frag_pct", "fragmented GPU at the end", "%", 2),
    ("mean_power_w", "power, mean over time", "kW", 1),
    ("eopc_w", "power at the end", "kW", 1),
    ("energy_kwh", "energy", "kWh", 1),
    ("co2_kg", "emissions", "kg CO2", 1),
    ("cost", "cost", "$", 2),
    ("grar", "allocated over arrived GPU (GRAR)", "", 4),
    ("wait_mean_s", "mean wait", "s", 1),
    ("jct_mean_s", "mean completion time", "s", 1),
    ("restarts", "restarts", "", 0),
    ("makespan_s", "simulated time", "s", 0),
)
"""Lines of a run's summary: column, label, unit, decimals."""
AT_THE_END = ("gpu_alloc_pct", "cpu_alloc_pct", "memory_alloc_pct", "frag_pct", "eopc_w", "grar")
"""Those of the last moment, which say nothing where every pod has left."""

ROUND_FIGURES: tuple[tuple[str, str, str, int], ...] = (
    ("pods", "jobs", "", 0),
    ("jobs_counted", "jobs that count", "", 0),
    ("pods_unplaced", "jobs given up", "", 0),
    ("pods_pending", "jobs still waiting", "", 0),
    ("mean_gpu_alloc_pct", "GPU allocation, mean over time", "%", 2),
    ("utilization_pct", "GPUs at work, mean over time", "%", 2),
    ("mean_power_w", "power, mean over time", "kW", 1),
    ("energy_kwh", "energy", "kWh", 1),
    ("co2_kg", "emissions", "kg CO2", 1),
    ("cost", "cost", "$", 2),
    ("slo_violations", "deadlines missed", "", 0),
    ("wait_mean_s", "mean wait", "s", 1),
    ("jct_mean_s", "mean completion time", "s", 1),
    ("jct_p95_s", "95 % completed within", "s", 1),
    ("makespan_s", "simulated time", "s", 0),
    ("rounds", "rounds", "", 0),
    ("policy_calls", "allocations", "", 0),
)
"""The same for jobs in rounds."""
QUIET = ("cost", "slo_violations", "pods_unplaced", "pods_pending")
"""Lines of runs in rounds that are left out where they are 0; of other runs only ``restarts`` is."""

COLUMNS = (
    ("name", "policy", 1, 0),
    ("at_capacity_gpu_alloc_pct", "alloc %\nat 100 %", 1, 2),
    ("gpu_alloc_pct", "alloc %\nat end", 1, 2),
    ("pods_unplaced", "failed\npods", 1, 0),
    ("frag_pct", "frag %", 1, 2),
    ("eopc_w", "power\nkW", 1000, 1),
    ("grar", "GRAR", 1, 4),
    ("pods_per_s", "pods/s", 1, 0),
)
"""Columns of a comparison: name in the table, heading, divisor, decimals."""

DYNAMIC = {
    "gpu_alloc_pct": ("mean_gpu_alloc_pct", "mean\nalloc %", 1, 2),
    "frag_pct": ("wait_mean_s", "mean\nwait s", 1, 1),
    "eopc_w": ("mean_power_w", "mean\nkW", 1000, 1),
    "grar": ("jct_mean_s", "mean\nJCT s", 1, 1),
}
"""Columns that replace others where pods finish, as the state at the end is then of little meaning."""


SWEEP = (
    ("pods_unplaced", "failed\npods", 1, 0),
    ("jct_mean_s", "mean\nJCT h", 3600, 2),
    ("jct_p95_s", "95 %\nJCT h", 3600, 2),
    ("mean_gpu_alloc_pct", "mean\nalloc %", 1, 1),
    ("makespan_s", "total h", 3600, 1),
    ("cost", "cost $", 1, 2),
    ("co2_kg", "CO2 kg", 1, 1),
    ("slo_violations", "late", 1, 0),
)
"""Columns of a sweep after the listed keys."""

PAID = ("cost", "co2_kg")
"""Those of a comparison, too, where prices or intensities are known; speed makes room for them."""

PLAN = (
    ("add", "add", 1, 0),
    ("outcome", "outcome", 1, 0),
    ("additions", "additions", 1, 0),
    ("nodes", "nodes", 1, 0),
    ("gpus", "GPUs", 1, 0),
    ("tariff", "tariff", 1, 0),
    ("price_per_h", "$/h", 1, 2),
    ("price", "$", 1, 2),
    ("cost", "GPU\ncost $", 1, 2),
    ("energy_kwh", "kWh", 1, 0),
    ("co2_kg", "CO2 kg", 1, 1),
    ("pods_unplaced", "failed\npods", 1, 0),
    ("wait_p95_s", "95 %\nwait s", 1, 1),
    ("mean_gpu_alloc_pct", "mean\nalloc %", 1, 1),
    ("mean_power_w", "mean\nkW", 1000, 1),
    ("runs", "runs", 1, 0),
)
"""Columns of a search for capacity."""

GENERAL = -1
"""Marks columns whose values are printed unrounded."""

LEFT = ("name", "policy", "cluster", "workload", "add", "outcome", "tariff")
"""Columns of names; all but those of a comparison may take several lines."""


def summary_text(result: Result, out: Path | None = None) -> str:
    """The main figures of a run, one per line."""
    row = result.summary.row(0, named=True)
    rounds = "rounds" in row
    figures, quiet = (ROUND_FIGURES, QUIET) if rounds else (_figures_of_pods(row), ("restarts",))
    speed = f"{result.timing['pods_per_s']:,.0f} pods/s"
    if rounds:
        speed = f"{result.timing['rounds_per_s']:,.0f} rounds/s"
    chosen = [line for line in figures if line[0] not in quiet or row.get(line[0])]
    lines = [(text, _figure(row.get(name), unit, places)) for name, text, unit, places in chosen]
    lines.append(("simulation speed", speed))
    shown = [(text, figure) for text, figure in lines if figure]
    width = max(len(text) for text, _ in shown)
    page = "".join(f"{text:<{width}}  {figure}\n" for text, figure in shown)
    return page + (f"saved to {out}\n" if out else "")


def _figures_of_pods(row: Mapping[str, Any]) -> list[tuple[str, str, str, int]]:
    """Means over time where every pod has left, the state at the end where pods still run."""
    emptied = row.get("pods_finished") and not row.get("pods_running")
    dropped = AT_THE_END if emptied else ("mean_cpu_alloc_pct",)
    return [line for line in FIGURES if line[0] not in dropped]


def comparison_text(table: pl.DataFrame) -> str:
    """A comparison as a table for the terminal."""
    return _printed(table, _columns(table))


def sweep_text(table: pl.DataFrame, listed: Sequence[str]) -> str:
    """A sweep as a table for the terminal, with those of the ``listed`` keys that differ."""
    keys: list[Column] = [(name, name.replace("_", " "), 1, GENERAL) for name in listed if table[name].n_unique() > 1]
    return _printed(table, [*keys, *(column for column in SWEEP if _is_present_and_nonzero(table, column[0]))])


def plan_text(table: pl.DataFrame) -> str:
    """A search for capacity as a table for the terminal, and the reasons of failures."""
    columns = [
        column for column in PLAN if column[0] in ("add", "outcome", "additions") or _is_informative(table, column[0])
    ]
    rows = {row["add"]: row for row in table.iter_rows(named=True)}.values()
    reasons = "".join(f"{row['add']}: {row['why']}\n" for row in rows if row["why"])
    blocking = "".join(f"{row['add']}: {_need(row)}: {row['blocking']}\n" for row in rows if row["blocking"])
    return _printed(table, columns) + reasons + blocking


def _need(row: Mapping[str, Any]) -> str:
    """The role of the pods that a row names."""
    return "pods that block" if row["additions"] is None else "pods that need the last addition"


def _is_informative(table: pl.DataFrame, name: str) -> bool:
    if table.schema[name].is_numeric():
        return bool(table[name].fill_null(0).sum() != 0)
    return table[name].null_count() < len(table)


def _is_present_and_nonzero(table: pl.DataFrame, name: str) -> bool:
    return name in table.columns and table[name].fill_null(0).sum() != 0


def _printed(table: pl.DataFrame, columns: list[Column]) -> str:
    from rich import box
    from rich.table import Table

    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for name, heading, *_ in columns:
        grid.add_column(
            heading, justify="left" if name in LEFT else "right", no_wrap=name not in LEFT[1:], overflow="fold"
        )
    for row in table.iter_rows(named=True):
        grid.add_row(*map(_on_a_line, _cells(row, columns)))
    return terminal_text(grid)


def text_table(table: pl.DataFrame, columns: Sequence[tuple[str, str]], left: Sequence[str] = ()) -> str:
    """Columns of a table (name and heading) for the terminal; numbers with five significant digits."""
    from rich import box
    from rich.table import Table

    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for name, heading in columns:
        words = name in left
        grid.add_column(heading, justify="left" if words else "right", overflow="fold", no_wrap=not words)
    for row in table.iter_rows(named=True):
        grid.add_row(*(_on_a_line(_short(row.get(name))) for name, _ in columns))
    return terminal_text(grid)


def grid_text(columns: Mapping[str, str], rows: pl.DataFrame, right: Collection[str] = ()) -> str:
    """Rows as a table for terminals, with these headings; numbers and the columns in ``right`` stand on the right."""
    from rich import box
    from rich.table import Table

    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for name, title in columns.items():
        numeric = name in right or rows.schema[name].is_numeric()
        grid.add_column(title, justify="right" if numeric else "left", no_wrap=name not in ("why", "cause"))
    for row in rows.select(list(columns)).iter_rows():
        grid.add_row(*map(_grid_cell, row))
    return terminal_text(grid)


def _grid_cell(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else on_one_line(value, len(str(value)))


def terminal_text(grid: Any) -> str:
    """A grid of rich as text; brackets and colons of names are no commands.

    It is as wide as the terminal. What goes to a file or another program is as wide as it needs, unless ``COLUMNS`` is
    set.
    """
    from rich.console import Console

    wide = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else WIDEST
    console = Console(markup=False, emoji=False, width=wide)
    with console.capture() as captured:
        console.print(grid)
    return captured.get()


def _on_a_line(cell: str) -> str:
    """A cell as errors show names: on one line, without signs that move a terminal's cursor."""
    return on_one_line(cell, len(cell))


def _short(value: Any) -> str:
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if 1e5 <= abs(value) < 1e15 else f"{value:.5g}"


CELLS = ("at", "reference", "ours", "deviation", "verdict")
"""Columns of a reproduction after the name of the quantity."""


def reproduction_text(cells: pl.DataFrame, width: int | None = None) -> str:
    """Cells of a reproduction for a terminal of ``width`` characters (default: this process's).

    A heading line has figure, case and policy of the cells below it, so that each of these fits on one line.
    """
    total = width or get_terminal_size((80, 24)).columns
    rows = [(_heading(row), _quantity(row), _cell_texts(row)) for row in cells.iter_rows(named=True)]
    sizes = [max(map(len, column)) for column in zip(CELLS, *(texts for *_, texts in rows), strict=True)]
    left = max(
        20, min(total - sum(sizes) - 2 * len(CELLS), max([len(quantity) + 2 for _, quantity, _ in rows], default=0))
    )
    lines, before = [_line("", CELLS, left, sizes)], None
    for heading, quantity, texts in rows:
        if heading != before:
            lines += wrap(heading, total, subsequent_indent="    ")
        first, *more = wrap(quantity, left - 2)
        lines += [_line(f"  {first}", texts, left, sizes), *(f"  {text}" for text in more)]
        before = heading
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _line(label: str, texts: Sequence[str], left: int, sizes: Sequence[int]) -> str:
    numbers = [text.rjust(size) for text, size in zip(texts[:-1], sizes, strict=False)]
    return "  ".join((label.ljust(left), *numbers, texts[-1]))


def _heading(row: dict[str, Any]) -> str:
    return ", ".join(dict.fromkeys(filter(None, (row["figure"], row["case"], row["policy"]))))


def _quantity(row: dict[str, str]) -> str:
    name, unit = row["quantity"], row["unit"]
    return name if "_" in name or unit in ("", name) else f"{name} ({unit})"  # names of columns include their unit


def _cell_texts(row: dict[str, Any]) -> list[str]:
    reference = row["published"] if row["original"] is None else row["original"]
    away = row["deviation"]
    difference = "-" if away is None else "0" if away == 0 else f"{away:+,.0f}" if abs(away) >= 1e3 else f"{away:+.3g}"
    return [
        "" if row["at"] is None else _short(row["at"]),
        _short(reference),
        _short(row["ours"]),
        difference,
        row["verdict"],
    ]


def demo_text(table: pl.DataFrame, folder: Path) -> str:
    """The demo's table and the paths of its report, which is a text, named as such, without the report extra."""
    if (folder / "report.md").exists():
        files = f'report: {folder / "report.md"}   charts need: pip install "fastsim-gpu[report]"'
    else:
        files = f"report: {folder / 'report.html'}   picture: {folder / 'report.png'}"
    return f"{comparison_text(table)}{files}\n"


def result_json(result: Result) -> str:
    """The summary row, the timing and the provenance of a run as JSON."""
    record = {"summary": result.summary.row(0, named=True), "timing": result.timing, "provenance": result.provenance}
    return json.dumps(record, indent=2, default=str)


def table_json(table: pl.DataFrame) -> str:
    """A table as a JSON list of rows."""
    return json.dumps(table.to_dicts(), indent=2, default=str)


def _figure(value: Any, unit: str, places: int) -> str:
    if value is None:
        return ""
    scaled = value / 1000 if unit == "kW" else value
    return f"{scaled:,.{places}f} {unit}".rstrip()


def _columns(table: pl.DataFrame) -> list[Column]:
    if not table["pods_finished"].sum():
        return list(COLUMNS)
    paid = [column for column in SWEEP if column[0] in PAID and _is_present_and_nonzero(table, column[0])]
    last = paid or COLUMNS[-1:]
    return [*(DYNAMIC.get(column[0], column) for column in COLUMNS[:-1]), *last]


def _cells(row: dict[str, Any], columns: list[Column]) -> list[str]:
    """A row of a comparison, as text in the order of its columns."""
    cells = []
    for name, _, divisor, places in columns:
        value = row.get(name)
        if value is None or isinstance(value, str):
            cells.append("-" if value is None else value)
        elif places == GENERAL:
            cells.append(f"{value:g}" if isinstance(value, float) else str(value))
        else:
            cells.append(f"{value / divisor:,.{places}f}")
    return cells
