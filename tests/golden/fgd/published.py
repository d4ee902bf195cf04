"""Our figures beside the recorded ones, run by run: ``python -m tests.golden.fgd.published [--full]``.

Three tables are reproduced: digests and totals of runs, the published allocation and fragmentation
curves of every trace, and points of the PWR paper's slides. ``FASTSIM_LONG=1`` in the environment, or ``--full`` here,
runs every curve; otherwise each policy meets each trace with one seed, taken in turn.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from fastsim.engine.result import Result
from fastsim.experiments.reproduce.placement_figures import grar, interpolated
from tests.conftest import LONG, SHARED
from tests.golden.fgd.fgd import FGD, arrivals, discrete, inputs, placement_sha256, plans, simulated

CURVES = ("alloc_pct", "frag_pct", "frag_ratio_pct")
SLIDES = SHARED / "golden/published/fgd-pwr.csv"
SLIDE_CURVES = ("power_total", "power_cpu", "power_saving_vs_fgd", "grar")


class Case(NamedTuple):
    """One run of a table: policy, trace and seed as the recordings name them."""

    policy: str
    trace: str
    seed: int

    def __str__(self) -> str:
        return f"{self.policy}-{self.trace}-seed{self.seed}"


def full() -> bool:
    """Whether every row was asked for."""
    return LONG or "--full" in sys.argv


@cache
def digests() -> dict[Case, dict[str, Any]]:
    """Digests and totals by case."""
    rows = [row for path in sorted(FGD.glob("*-hashes.csv")) for row in pl.read_csv(path).rows(named=True)]
    return {Case(row["policy"], row["trace"], row["seed"]): row for row in rows}


@cache
def curves() -> dict[Case, pl.DataFrame]:
    """Published curves of deterministic policies by case, as far as the recorded orders allow."""
    path = FGD / "published_discrete.parquet"
    orders = {file.stem for file in FGD.glob("inputs/orders/*.parquet")}
    if not path.exists():
        return {}
    tables = pl.read_parquet(path).partition_by("policy", "trace", "seed", as_dict=True, maintain_order=True)
    cases = {Case(*key): table.sort("arrive_pct") for key, table in tables.items()}
    random = {name for name, plan in plans().items() if any(term.kernel == "random" for term in plan.terms)}
    return {c: t for c, t in cases.items() if c.trace in orders and c.policy in plans() and c.policy not in random}


def digest_cases() -> list[Case]:
    """Rows of the digest table: every run is run."""
    return list(digests())


def curve_cases() -> list[Case]:
    """Published curves to run: all, or one seed for each policy on each trace, the next pair with the next seed."""
    return list(curves()) if full() else list(_one_seed_each(curves()))


def _one_seed_each(cases: dict[Case, Any]) -> Iterator[Case]:
    for turn, pair in enumerate(sorted({case[:2] for case in cases})):
        seeds = sorted(case for case in cases if case[:2] == pair)
        yield seeds[turn % len(seeds)]


@cache
def points() -> dict[str, list[dict[str, Any]]]:
    """Printed points of recorded policies on recorded traces, by trace; ``policy`` as the recordings name it."""
    if not SLIDES.exists():
        return {}
    rows = pl.read_csv(SLIDES, infer_schema_length=None).filter(pl.col("metric").is_in(SLIDE_CURVES)).with_columns(
        pl.col("policy_original").str.replace_all("_", "").alias("policy"),
        pl.col("panel").str.split(" ").list.first().alias("trace"),
    )  # fmt: skip
    traces = {file.stem for file in FGD.glob("inputs/orders/*.parquet")}
    rows = rows.filter(pl.col("policy").is_in(list(plans())), pl.col("trace").is_in(list(traces)))
    return {str(trace): table.to_dicts() for (trace,), table in rows.group_by("trace", maintain_order=True)}


@cache
def slide_policies() -> dict[str, set[str]]:
    """Policies with points on the slides, and the one that they are compared with, by trace."""
    return {trace: {"FGD", *(row["policy"] for row in printed)} for trace, printed in points().items()}


class Figures(NamedTuple):
    """What is compared of one run; what nobody recorded of it is empty."""

    curve: pl.DataFrame
    slides: dict[str, np.ndarray]
    totals: dict[str, Any]


@cache
def figures(case: Case) -> Figures:
    """Figures of our run, which is made once for all tables."""
    digested, drawn = case in digests(), case.policy in slide_policies().get(case.trace, ())
    result = simulated(*case, record="all" if digested else "timeline")
    return Figures(
        curve(result, case) if case in curves() else pl.DataFrame(),
        slides(result, case) if drawn else {},
        totals(result, case) if digested else {},
    )


def slides(result: Result, case: Case) -> dict[str, np.ndarray]:
    """Power in watts and GRAR of our run over demand."""
    rows, capacity = arrivals(result), int(inputs(case.trace, case.seed).nodes["num_gpu"].sum()) * 1000
    x, cpu_w = rows["arrived_gpu_milli"].to_numpy(), rows["power_cpu_w"].to_numpy()
    columns = {
        "power_cpu": cpu_w, "power_total": cpu_w + rows["power_gpu_w"].to_numpy(),
        "grar": grar(rows["gpu_milli_alloc"].to_numpy(), x),
    }  # fmt: skip
    return {name: interpolated(x, column, capacity)[1] for name, column in columns.items()}


def totals(result: Result, case: Case) -> dict[str, Any]:
    """The digest table's row of our run."""
    rows, run = arrivals(result), inputs(case.trace, case.seed)
    capacity = int(run.nodes["num_gpu"].sum()) * 1000
    within = rows.filter(pl.col("arrived_gpu_milli") <= capacity)
    placed = int(rows["pods_running"][-1])
    return {
        "pods": len(rows), "placed": placed, "failed": len(rows) - placed,
        "placement_sha256": placement_sha256(result, run), "at100_seq": within["pod_id"][-1],
        "final_used_cpu_milli": rows["cpu_milli_alloc"][-1],
        **{f"final_{name}": value for name, value in _state(rows).items()},
        **{f"at100_{name}": value for name, value in _state(within).items()},
    }  # fmt: skip


def _state(rows: pl.DataFrame) -> dict[str, float]:
    return {
        "used_gpu_milli": rows["gpu_milli_alloc"][-1], "frag_gpu_milli": rows["frag_milli"][-1],
        "power_cpu_w": rows["power_cpu_w"][-1], "power_gpu_w": rows["power_gpu_w"][-1],
    }  # fmt: skip


def curve(result: Result, case: Case) -> pl.DataFrame:
    """The published table of our run."""
    return discrete(result, int(inputs(case.trace, case.seed).nodes["num_gpu"].sum()))


def deviations(case: Case) -> dict[str, float]:
    """Largest absolute difference of each curve from the published one, in percentage points."""
    ours = figures(case).curve
    return {name: float((ours[name] - curves()[case][name]).abs().max()) for name in CURVES}  # type: ignore[arg-type]


def main() -> None:
    """Print one line for each case with its largest deviations."""
    print(f"{'digests and totals':40} equal columns")
    for case in digest_cases():
        ours, row = figures(case).totals, digests()[case]
        wrong = [name for name, value in ours.items() if abs_difference(value, row[name]) > 1e-3]
        print(f"{case!s:40} {len(ours) - len(wrong)}/{len(ours)} {' '.join(wrong)}", flush=True)
    print(f"\n{'published curves':40} {'  '.join(CURVES)}  (largest difference, percentage points)")
    for case in curve_cases():
        found = deviations(case)
        print(f"{case!s:40} {'  '.join(f'{found[name]:9.4f}' for name in CURVES)}", flush=True)


def abs_difference(one: Any, other: Any) -> float:
    """How far two cells are apart; texts are equal or infinitely far."""
    if isinstance(one, str):
        return 0.0 if one == other else float("inf")
    return abs(float(one) - float(other))


if __name__ == "__main__":
    main()
