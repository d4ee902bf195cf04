"""Reproductions of the Sia and Pollux papers' tables: adaptive jobs on 64 GPUs of three models and of one.

Means over lists come with the standard deviation of the lists' means, as in the papers. The bar of a figure is the
printed deviation, or that of our lists if none is printed, plus half a printed digit.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from fastsim.engine.result import Result
from fastsim.errors import InputError
from fastsim.experiments.many_runs import simulate_many
from fastsim.experiments.reproduce.reproduction import (
    Cell,
    Measure,
    Reproduction,
    beyond,
    cell,
    cell_table,
    of_policies,
    points,
    published_table,
)
from fastsim.experiments.reproduce.sia_artifact import TRACES, applications_file, job_lists, pollux_lists
from fastsim.policies.registry import parse
from fastsim.scenario.scenario import Scenario

HOUR_S = 3600.0
MIXED, EQUAL = "sia:6:2:3", "sia:16:0:0"
"""64 GPUs: T4, A100 and RTX 2080 Ti; T4 only."""
ROUND_S = {"sia": 60.0, "pollux": 60.0, "optimus": 60.0}
"""Length of a round; 360 s under all other policies."""
STYLES = {"philly": "philly", "saturn": "helios", "newtrace": "newtrace"}
"""Traces, and the generator's style that looks like each."""
LISTS = 3
"""Generated lists of a style."""
QUICK_JOBS = 40
MIXED_POLICIES = ("pollux", "sia", "rotation")
PRICED = "sia(aware=False, changed=0.01)"
"""The program for equal GPUs, with the price of changes in the published commands, which Sia's own ignores."""
EQUAL_POLICIES = ("pollux", PRICED, "sia", "planned", "rotation(shares=finish_time_fairness)", "rotation")
PRINTED_AS = {PRICED: "sia"}
"""Policies that stand for another one in the printed tables."""
ROOMY = "sia:200:0:0"
"""Enough GPUs that jobs hardly wait: the GPU hours of fixed jobs in any order."""
EQUAL_NOTE = (
    ". Table 4: published commands name a price of changes that only the program for equal GPUs uses, so its Sia may "
    "be either one; fixed jobs of these lists need the GPU hours of the row where nobody waits in any order, so "
    "behind the published 12.5 to 17.2 are other requests, or dozens of restarts of each job"
)
OWN_POLICIES = ("pollux", "optimus", "served")
"""Policies of tables 3 and 4 of the Sia paper and of the Pollux paper; Gavel is rotation, Tiresias served."""
MEASURES = {
    "jct_mean_h": ("mean completion time", "h"), "jct_p99_h": ("99th percentile", "h"), "makespan_h": ("makespan", "h"),
    "gpu_h_mean": ("GPU hours of a job", "h"), "active_mean": ("active jobs", ""), "active_max": ("most active", ""),
    "restarts_mean": ("restarts of a job", ""), "saved_pct": ("completion time saved by pollux", "%"),
}  # fmt: skip
SPREAD = ("jct_mean_h", "makespan_h", "gpu_h_mean")
"""Figures that have a deviation in the tables."""
EFFECTS = {
    "sia(measured_nodes=16, measured_gpus=64)": ("bootstrapped over measured", 8.0),
    "sia(project=False)": ("bootstrapped over unprojected", -30.0),
    "sia(tuned=False)": ("batch sizes tuned over asked", -13.0),
}
"""Published change of Sia's mean completion time against Sia without one of its parts, per cent."""
BASE = ("table 3", "philly", "sia")
"""Figure, trace and policy that parts are compared with."""
SAVED = (37.0, 50.0)
"""Reduction of mean completion times by Pollux in its abstract, per cent."""


class Row(NamedTuple):
    """One row of a table: a policy on all lists of a trace."""

    figure: str
    case: str
    policy: str
    cluster: str
    lists: tuple[str, ...]


Done = Mapping[Row, Sequence[Result]]


def sia_reproduction(
    data: Path | None, quick: bool, workers: int, tell: Callable[[int], None] | None = None,
    policies: Sequence[str] = (),
) -> Reproduction:  # fmt: skip
    """Tables 3 and 4, and the effects of measuring, projecting and tuning."""
    return _reproduction("sia", data, quick, workers, tell, policies)


def pollux_reproduction(
    data: Path | None, quick: bool, workers: int, tell: Callable[[int], None] | None = None,
    policies: Sequence[str] = (),
) -> Reproduction:  # fmt: skip
    """Pollux beside others on equal GPUs: its own lists, and those of table 4 of the Sia paper."""
    return _reproduction("pollux", data, quick, workers, tell, policies)


def run_count(data: Path | None, paper: str, quick: bool, policies: Sequence[str] = ()) -> int:
    """Number of runs of a reproduction."""
    return sum(len(row.lists) for row in _chosen(_rows(data, paper, quick, None), policies))


def _chosen(rows: list[Row], policies: Sequence[str]) -> list[Row]:
    """Rows of these policies; others join the first table, and rows of effects need that of ``BASE``."""
    selected = of_policies(rows, policies)
    first = {row.case: row for row in rows if row.figure == rows[0].figure}
    selected += [row._replace(policy=text) for text in beyond(rows, policies) for row in first.values()]
    base = next((row for row in rows if row[:3] == BASE), None)
    if base is not None and base not in selected and any(row.figure == "effects" for row in selected):
        selected.append(base)
    return selected


def _reproduction(
    paper: str, data: Path | None, quick: bool, workers: int, tell: Callable[[int], None] | None,
    policies: Sequence[str],
) -> Reproduction:  # fmt: skip
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="fastsim-") as scratch:
        rows = _chosen(_rows(data, paper, quick, Path(scratch)), policies)
        apps = None if data is None else applications_file(data, Path(scratch))
        runs = [(row, item) for row in rows for item in row.lists]
        results = simulate_many([_scenario(row, item, apps) for row, item in runs], workers, tell)
    done: dict[Row, list[Result]] = {row: [] for row in rows}
    for (row, _), result in zip(runs, results, strict=True):
        done[row].append(result)
    comparable = data is not None and apps is not None and not quick
    cells = [one for row, some in done.items() for one in _table_cells(row, some, comparable)
             if row.figure != "effects"]  # fmt: skip
    cells += _effect_cells(done, comparable) + _saved_cells(done, comparable)
    title = {
        "sia": "Sia: goodput on GPUs of several models (SOSP 2023)", "pollux": "Pollux: goodput shared out (OSDI 2021)",
    }[paper]  # fmt: skip
    citation = str(getattr(parse(paper), "citation", ""))
    wall_s, spent_s = time.perf_counter() - began, sum(result.timing["cpu_s"] for result in results)
    source = _source(data, apps, rows)
    return Reproduction(paper, title, source, cell_table(cells), _curves(done), len(runs), wall_s, citation, spent_s)


def _source(data: Path | None, apps: str | None, rows: Sequence[Row]) -> str:
    if data is None:
        return "generated jobs of the traces' styles and applications made up, so published figures are a glance only"
    counted = {row.case: len(row.lists) for row in rows if row.cluster != ROOMY}
    lists = ", ".join(f"{count} of {case}" for case, count in counted.items())
    note = EQUAL_NOTE if apps and any(row.cluster == ROOMY for row in rows) else ""
    return f"published lists: {lists}; {'measured' if apps else 'made-up'} applications{note}"


def _scenario(row: Row, workload: str, apps: str | None) -> Scenario:
    round_s = ROUND_S.get(row.policy.partition("(")[0], 360.0)
    return Scenario(row.cluster, workload, row.policy, round_s=round_s, rates=apps, record="summary")


def _rows(data: Path | None, paper: str, quick: bool, scratch: Path | None) -> list[Row]:
    """The longest runs first, so that workers end together."""
    lists = {trace: _lists(data, trace, quick) for trace in (("philly",) if quick or paper == "pollux" else TRACES)}
    if not any(lists.values()):
        raise InputError(str(data), "no list of jobs", "folders philly, saturn, newtrace with CSV files")
    rows = []
    if paper == "sia":
        rows += [Row("table 3", trace, policy, MIXED, lists[trace])
                 for policy in MIXED_POLICIES for trace in reversed(lists)]  # fmt: skip
    if not quick:
        rows += [Row("table 4", "philly", policy, EQUAL, lists["philly"]) for policy in EQUAL_POLICIES]
    if paper == "sia" and not quick:
        rows.append(Row("table 4", "philly, nobody waits", "rotation", ROOMY, lists["philly"]))
        rows += [Row("effects", "philly", policy, MIXED, lists["philly"]) for policy in EFFECTS]
    if paper == "pollux":
        own = _own_lists(data, quick, scratch) or lists["philly"]
        rows += [Row("tuned jobs", "pollux", policy, EQUAL, own) for policy in OWN_POLICIES]
    return [row for row in rows if row.lists]


def _lists(data: Path | None, trace: str, quick: bool) -> tuple[str, ...]:
    if data is None:
        options = f"style={STYLES[trace]}" + (f"&jobs={QUICK_JOBS}" if quick else "")
        return tuple(f"synth:sia?{options}&seed={seed}" for seed in range(1 if quick else LISTS))
    return tuple(job_lists(data, trace)[: 1 if quick else None])


def _own_lists(data: Path | None, quick: bool, scratch: Path | None) -> tuple[str, ...]:
    return () if data is None else tuple(pollux_lists(data, scratch)[: 1 if quick else None])


def _figures(result: Result) -> dict[str, float]:
    """The tables' figures of one list."""
    row = result.summary.row(0, named=True)
    return {
        "jct_mean_h": row["jct_mean_s"] / HOUR_S, "jct_p99_h": _p99_h([result]),
        "makespan_h": row["makespan_s"] / HOUR_S, "gpu_h_mean": row["round_gpu_hours_mean"],
        "active_mean": row["contention_mean"], "active_max": float(row["max_active_jobs"]),
        "restarts_mean": row["charged_restarts_mean"],
    }  # fmt: skip


def _p99_h(results: Sequence[Result]) -> float:
    """The 99th percentile of all jobs by the original's rule."""
    every = np.sort(np.concatenate([result.jobs["jct_s"].to_numpy() for result in results]))
    return float(every[int(0.99 * len(every))]) / HOUR_S


def _table_cells(row: Row, results: Sequence[Result], comparable: bool) -> list[Cell]:
    each = [_figures(result) for result in results]
    table = published_table("sia").filter(pl.lit(row.figure) == pl.format("table {}", "table"))
    printed = table.filter(case=row.case, policy=PRINTED_AS.get(row.policy, row.policy))
    lines = {line["quantity"]: line for line in printed.iter_rows(named=True)}
    cells = []
    for name in each[0]:
        values = [one[name] for one in each]
        ours = (
            _p99_h(results) if name == "jct_p99_h" else max(values) if name == "active_max" else float(np.mean(values))
        )
        line = lines.get(name, {"digit": 0.1, "published": None, "spread": None})
        own = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        bar = (own if line["spread"] is None else line["spread"]) + line["digit"] / 2
        cells.append(
            cell(_measure(row.figure, name, line["digit"]), row.case, row.policy, None, ours, bar=bar, exact=False,
                 published=line["published"], comparable=comparable)
        )  # fmt: skip
        if name in SPREAD and len(values) > 1:
            quantity, unit = MEASURES[name]
            measure = Measure(row.figure, f"{quantity}, deviation of the lists", unit, line["digit"])
            cells.append(cell(measure, row.case, row.policy, None, float(np.std(values))))
    return cells


def _measure(figure: str, name: str, digit: float) -> Measure:
    quantity, unit = MEASURES[name]
    return Measure(figure, quantity, unit, digit)


def _means_h(results: Sequence[Result]) -> Any:
    return np.array([result.summary["jct_mean_s"][0] / HOUR_S for result in results])


def _effect_cells(done: Done, comparable: bool) -> list[Cell]:
    """Change of Sia's mean completion time against Sia without a part, per cent; the bar is the lists' deviation."""
    base = next((some for row, some in done.items() if row[:3] == BASE), None)
    cells = []
    for row, some in done.items():
        if row.figure == "effects" and base is not None:
            quantity, published = EFFECTS[row.policy]
            measure = Measure("effects", quantity, "%", 1.0)
            by_list = 100 * (_means_h(base) / _means_h(some) - 1)
            ours = 100 * float(_means_h(base).mean() / _means_h(some).mean() - 1)
            bar = float(np.std(by_list, ddof=1)) + 0.5 if len(by_list) > 1 else None
            cells.append(cell(measure, row.case, row.policy, None, ours, published=published, bar=bar, exact=False,
                              comparable=comparable))  # fmt: skip
    return cells


def _saved_cells(done: Done, comparable: bool) -> list[Cell]:
    """Reduction by Pollux against others, per cent; the published range as its middle, half its width as the bar."""
    own = {row.policy: some for row, some in done.items() if row.figure == "tuned jobs"}
    if "pollux" not in own:
        return []
    ours_h, low, high = float(_means_h(own.pop("pollux")).mean()), *SAVED
    measure = _measure("abstract", "saved_pct", 1.0)
    return [
        cell(measure, "pollux", f"pollux beside {policy}", None, 100 * (1 - ours_h / float(_means_h(some).mean())),
             published=(low + high) / 2, bar=(high - low) / 2, exact=False, comparable=comparable)
        for policy, some in own.items()
    ]  # fmt: skip


def _curves(done: Done) -> pl.DataFrame:
    """Distribution of completion times, one line for each row."""
    lines = []
    for row, some in done.items():
        if row.figure != "effects":
            jct_h = np.sort(np.concatenate([result.jobs["jct_s"].to_numpy() for result in some])) / HOUR_S
            part = 100 * np.arange(1, len(jct_h) + 1) / len(jct_h)
            step = max(1, len(jct_h) // 200)
            chart = f"{row.figure}, {row.case}: completion times"
            lines.append(points(chart, "completion time (h)", "jobs done (%)", row.policy, jct_h[::step], part[::step]))
    return pl.concat(lines)
