"""The figures of the two placement papers: runs, their curves, and the deviation from published curves.

A run places about 10,000 pods on 1,213 nodes. Its curves are allocation and fragmentation at 0 to 130 per cent of
arrived demand (``alloc_pct``, ``frag_pct``, ``frag_ratio_pct``), and power and GRAR at 0 to 100 per cent in steps of
half a per cent (``power_w``, ``power_cpu_w`` of it, ``grar``). Rounding and interpolation are those of the papers.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from fastsim.engine.tables import FRAG_COLUMNS
from fastsim.errors import reading
from fastsim.experiments.reproduce.fgd_protocol import RECORDED, trace
from fastsim.simulation.run_warnings import PodTooLarge
from fastsim.simulation.simulate import simulate

POLICIES = {
    "random": "Random", "dot_product": "DotProd", "gpu_clustering": "GpuClustering", "gpu_packing": "GpuPacking",
    "best_fit": "BestFit", "fgd": "FGD",
}  # fmt: skip
"""Policies of the FGD paper's figures and their names in the published curves."""
MIXES = (
    "pwr", "0.5*pwr + 0.5*fgd", "0.3*pwr + 0.7*fgd", "0.2*pwr + 0.8*fgd", "0.1*pwr + 0.9*fgd", "0.05*pwr + 0.95*fgd",
    "0.025*pwr + 0.975*fgd",
)  # fmt: skip
"""Policies that the PWR paper adds."""
FIRST_SEED = 42
"""First seed of the published experiments."""
SEEDS_PER_TASK = 5
"""Seeds per task: fewer balance workers better, more read the trace less often."""
LIMITS = {"alloc_pct": 1e-9, "frag_pct": 1e-9, "frag_ratio_pct": 0.01}
"""Two decimals are published, so equal figures differ by float noise only; the ratio is rounded for each pod."""
Floats = npt.NDArray[np.float64]
Numbers = npt.ArrayLike
FAILURES, LIST_PREFIX = "analysis_fail.csv", "openb_pod_list_"
"""The artifact's file of failed pods, and what its names of traces begin with."""
LAST_PCT = 130
"""Arrived demand at the end of the FGD protocol, in per cent of the cluster's GPU capacity."""
GRID_STEP = 0.005
"""Distance of the PWR paper's grid points, as a fraction of the cluster's GPU capacity."""


class Task(NamedTuple):
    """Runs of one trace, for one worker."""

    data: Path | None
    trace: str
    seeds: tuple[int, ...]
    policies: tuple[str, ...] = tuple(POLICIES)


class PlacementRun(NamedTuple):
    """One run: number of pods, seconds, curves (an array for each name), pods that fitted nowhere, and the parts of
    figures 8 and 9c (:func:`parts`)."""

    policy: str
    trace: str
    seed: int
    pods: int
    cpu_s: float
    loop_s: float
    curves: dict[str, Any]
    failed: int = 0
    parts: Mapping[tuple[str, str], float] = {}


Published = Mapping[tuple[str, str, int], pl.DataFrame]
"""Published curves by policy, trace and seed."""


def tasks(data: Path | None, names: Sequence[str], seeds: int, policies: Sequence[str] = tuple(POLICIES)) -> list[Task]:
    """The tasks of all runs, trace by trace."""
    all_seeds = tuple(range(FIRST_SEED, FIRST_SEED + seeds))
    return [
        Task(data, name, all_seeds[k : k + SEEDS_PER_TASK], tuple(policies))
        for name in names
        for k in range(0, seeds, SEEDS_PER_TASK)
    ]


def task_runs(task: Task) -> list[PlacementRun]:
    """Run all policies with all seeds of one task."""
    pods = trace(task.data, task.trace)
    runs = []
    for seed in task.seeds:
        cluster, workload = pods.offered(seed)
        for policy in task.policies:
            with warnings.catch_warnings():
                # A few openb pods are larger than any node; they count as arrived and unplaced, as in the papers.
                warnings.simplefilter("ignore", PodTooLarge)
                result = simulate(cluster, workload, policy, typical=pods.typical, seed=seed, record="timeline")
            count, timing = result.provenance["workload"]["pods"], result.timing
            run_curves = curves(result.timeline, cluster.total_gpus)
            failed = int(result.summary["pods_unplaced"][0])
            run = PlacementRun(
                policy=policy,
                trace=task.trace,
                seed=seed,
                pods=count,
                cpu_s=timing["cpu_s"],
                loop_s=timing["loop_s"],
                curves=run_curves,
                failed=failed,
            )
            runs.append(run._replace(parts=parts(result.timeline, cluster.total_gpus)))
    return runs


def parts(timeline: pl.DataFrame, gpus: int) -> dict[tuple[str, str], float]:
    """By figure and kind: fragmentation of free GPUs when 100 per cent have arrived (8, per cent of all GPUs),
    and pods that fitted nowhere by the GPUs that they requested (9c)."""
    rows = timeline.filter(pl.col("event") == "arrival")
    full = rows.filter(pl.col("arrived_gpu_milli") >= 1000 * gpus).head(1)
    free_pct = {("8", name): float(value) / (10 * gpus) for name in FRAG_COLUMNS for value in full[name]}
    request = pl.col("arrived_gpu_milli").diff().fill_null(pl.col("arrived_gpu_milli"))
    failed = rows.select(kind_of_request(request), pl.col("pods_unplaced").diff().fill_null(pl.col("pods_unplaced")))
    counted = failed.group_by("kind", maintain_order=True).agg(pl.col("pods_unplaced").sum()).sort("kind")
    return free_pct | {("9c", name): float(count) for name, count in counted.iter_rows()}


def kind_of_request(gpu_milli: pl.Expr) -> pl.Expr:
    """The kind of a pod in figure 9c by its GPUs, in thousandths."""
    part, whole = pl.lit("part of a GPU"), pl.format("GPUs: {}", gpu_milli // 1000)
    return pl.when(gpu_milli % 1000 > 0).then(part).otherwise(whole).alias("kind")


def curves(timeline: pl.DataFrame, gpus: int) -> dict[str, Any]:
    """All curves of a run on a cluster of ``gpus`` GPUs."""
    rows = timeline.select(
        "arrived_gpu_milli", "gpu_milli_alloc", "frag_milli", pl.sum_horizontal(FRAG_COLUMNS).alias("idle_milli"),
        (pl.col("power_cpu_w") + pl.col("power_gpu_w")).alias("power_w"), "power_cpu_w",
    )  # fmt: skip
    rows = rows.filter(timeline["event"] == "arrival")
    arrived, alloc, frag, idle, power, power_cpu = (rows[name].to_numpy() for name in rows.columns)
    by_name: dict[str, Any] = dict(discrete_table(arrived, alloc, frag, idle, gpus))
    by_name["power_w"] = interpolated(arrived, power, 1000 * gpus)[1]
    by_name["power_cpu_w"] = interpolated(arrived, power_cpu, 1000 * gpus)[1]
    by_name["grar"] = interpolated(arrived, grar(alloc, arrived), 1000 * gpus)[1]
    return by_name


def published(data: Path | None) -> dict[tuple[str, str, int], pl.DataFrame]:
    """Published curves by policy, trace and seed; none without data."""
    path = Path() if data is None else data / RECORDED / "published_discrete.parquet"
    if not path.is_file():
        return {}
    tables = pl.read_parquet(path).partition_by("policy", "trace", "seed", as_dict=True)
    return {(str(key[0]), str(key[1]), int(key[2])): table.sort("arrive_pct") for key, table in tables.items()}


def published_failures(data: Path | None) -> dict[tuple[str, str, str], float]:
    """Published failed pods by policy, trace and kind, means over seeds; none unless the artifact's file is there."""
    paths = [] if data is None else [data / FAILURES, data / "experiments/analysis/expected_results" / FAILURES]
    path = next((one for one in paths if one.is_file()), None)
    if path is None:
        return {}
    milli = pl.col("num_gpu") * pl.when(pl.col("num_gpu") == 1).then("gpu_milli").otherwise(1000)
    with reading(path, "the artifact's table of failed pods", (pl.exceptions.PolarsError,)):
        table = pl.read_csv(path)
        rows = table.with_columns(kind_of_request(milli), pl.col("workload").str.strip_prefix(LIST_PREFIX))
        # A seed without failed pods has no row: the seeds of the whole file count.
        mean = pl.col("num_pod").sum() / table["seed"].n_unique()
        means = rows.group_by("sc_policy", "workload", "kind", maintain_order=True).agg(mean)
    return {(policy[3:], trace, kind): mean for policy, trace, kind, mean in means.iter_rows()}


def largest(ours: Any, theirs: Any) -> float:
    """Largest difference of two curves; infinite where only one has a value."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if ours.shape != theirs.shape or not np.array_equal(np.isnan(ours), np.isnan(theirs)):
        return float("inf")
    return float(np.nanmax(np.abs(ours - theirs)))


def furthest(ours: Any, theirs: Any) -> int:
    """The index at which two curves of one length differ most: the last of equal ones, and first where one has no
    value."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    gaps = np.abs(ours - theirs)
    gaps[np.isnan(ours) != np.isnan(theirs)] = np.inf
    gaps[np.isnan(ours) & np.isnan(theirs)] = -1.0
    return len(gaps) - 1 - int(np.argmax(gaps[::-1]))


def deviations(runs: Sequence[PlacementRun], curves_of: Published) -> tuple[dict[str, float], int]:
    """Largest difference of each curve of the deterministic policies from the published one; number of curves."""
    worst, compared = dict.fromkeys(LIMITS, 0.0), 0
    for run in runs:
        table = curves_of.get((POLICIES.get(run.policy, ""), run.trace, run.seed))
        if table is not None and run.policy != "random":
            compared += 1
            worst = {name: max(deviation, largest(run.curves[name], table[name])) for name, deviation in worst.items()}
    return worst, compared


def random_deviation(runs: Sequence[PlacementRun], curves_of: Published) -> float | None:
    """Largest difference of allocation under ``random``, each trace averaged over its seeds, from the published one."""
    ours: dict[str, list[Any]] = {}
    theirs: dict[str, list[Any]] = {}
    for run in runs:
        table = curves_of.get((POLICIES.get(run.policy, ""), run.trace, run.seed))
        if table is not None and run.policy == "random":
            ours.setdefault(run.trace, []).append(run.curves["alloc_pct"])
            theirs.setdefault(run.trace, []).append(table["alloc_pct"].to_numpy())
    deviations = [largest(np.mean(ours[name], axis=0), np.mean(theirs[name], axis=0)) for name in ours]
    return max(deviations, default=None)


def curve_table(runs: Sequence[PlacementRun]) -> pl.DataFrame:
    """Allocation and fragmentation of all runs as one table, like the published one."""
    names = ("arrive_pct", *LIMITS)
    frames = [
        pl.DataFrame({"trace": run.trace, "policy": run.policy, "seed": run.seed}
                     | {name: run.curves[name] for name in names})
        for run in runs
    ]  # fmt: skip
    return pl.concat(frames)


def discrete_table(
    arrived_gpu_milli: Numbers, gpu_milli_alloc: Numbers, frag_milli: Numbers, idle_milli: Numbers, total_gpus: int
) -> dict[str, npt.NDArray[np.generic]]:
    """FGD-paper table: one row for each whole per cent of arrived demand, 0 to 130.

    ``idle_milli`` is all free milli-GPU (the sum of the seven fragmentation classes). Columns:
    ``arrive_pct``, ``alloc_pct`` and ``frag_pct`` (of the cluster's GPUs) and ``frag_ratio_pct`` (of the
    idle milli-GPU). A per cent without a step takes the steps one per cent around it; NaN without any.
    """
    capacity_pct = total_gpus * 10.0
    arrive = np.rint(_floats(arrived_gpu_milli) / capacity_pct).astype(np.int64)
    alloc: Floats = np.round(_floats(gpu_milli_alloc) / capacity_pct, 2)
    frag, idle = _floats(frag_milli), _floats(idle_milli)
    ratio = np.round(100 * np.divide(frag, idle, out=np.zeros_like(frag), where=idle > 0), 2)
    percents = np.arange(LAST_PCT + 1)
    frag_mean = _means(np.round(frag, 2), arrive, percents)
    return {
        "arrive_pct": percents,
        "alloc_pct": np.round(_means(alloc, arrive, percents), 2),
        "frag_pct": np.round(100 * frag_mean / 1000 / total_gpus, 2),
        "frag_ratio_pct": _means(ratio, arrive, percents),
    }


def interpolated(
    arrived_gpu_milli: Numbers, values: Numbers, capacity_milli: int, last: float = 1.0
) -> tuple[Floats, Floats]:
    """PWR-paper curve: ``values`` over arrived demand (fraction of capacity) on the grid 0, 0.005, … ``last``.

    Interpolation is linear in the position among grid points and steps, not in the demand, as in the paper's
    notebook; the first of several equal demands counts.
    """
    x, first = np.unique(_floats(arrived_gpu_milli) / capacity_milli, return_index=True)
    y = _floats(values)[first]
    grid: Floats = np.arange(round(last / GRID_STEP) + 1, dtype=np.float64) * GRID_STEP
    union = np.union1d(x, grid)
    positions = np.searchsorted(union, x)
    by_position = np.interp(np.arange(len(union)), positions, y)
    return grid, by_position[np.searchsorted(union, grid)]


def power_saving_pct(reference_w: Numbers, power_w: Numbers) -> Floats:
    """Power saved against the reference (FGD in the paper), per cent of the reference."""
    reference = _floats(reference_w)
    saving: Floats = 100 * (reference - _floats(power_w)) / reference
    return saving


def grar(gpu_milli_alloc: Numbers, arrived_gpu_milli: Numbers) -> Floats:
    """GPU resource allocation ratio: allocated over arrived milli-GPU; 1 before any demand has arrived."""
    alloc, arrived = _floats(gpu_milli_alloc), _floats(arrived_gpu_milli)
    ratio: Floats = np.divide(alloc, arrived, out=np.ones_like(alloc), where=arrived > 0)
    return ratio


def averaged(curves: Sequence[Mapping[str, Numbers]]) -> dict[str, Floats]:
    """Mean of tables with the same columns over seeds."""
    return {name: np.mean([_floats(curve[name]) for curve in curves], axis=0) for name in curves[0]}


def _floats(values: Numbers) -> Floats:
    return np.asarray(values, dtype=np.float64)


def _means(values: Floats, arrive: npt.NDArray[np.int64], percents: npt.NDArray[np.int64]) -> Floats:
    """Mean of the values at each per cent, or around it where there is none."""
    means: Floats = np.full(len(percents), np.nan)
    order = np.argsort(arrive, kind="stable")
    ranked = arrive[order]
    edges = np.arange(percents[0] - 1, percents[-1] + 3)
    first = np.searchsorted(ranked, edges).tolist()  # of each whole per cent, from the one below the first
    for i in range(len(percents)):
        below, here, after, above = first[i : i + 4]
        # Values are added in their own order: the last bits of a sum depend on it.
        near = values[order[here:after]] if here < after else values[np.sort(order[below:above])]
        if len(near):
            means[i] = np.add.reduce(near) / len(near)
    return means
