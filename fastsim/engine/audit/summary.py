"""The recomputed summary: counts, the state at the end, means over the run, waits, totals of jobs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import polars as pl

from fastsim.engine.audit.inputs import LOST, Evidence
from fastsim.engine.audit.jobs import HOUR_S
from fastsim.engine.audit.timeline import NODE_COLUMNS, integral, state_by_time
from fastsim.scenario.carbon import carbon_from

Figures = dict[str, Any]
KWH_J = 3.6e6
"""Joules of a kWh."""


def job_figures(run: Evidence, expected: pl.DataFrame) -> Figures:
    """Figures that follow from jobs alone; ``expected`` are the rows of ``expected_jobs``."""
    state = run.jobs["state"].cast(pl.String)
    counts = {f"pods_{name}": int((state == name).sum()) for name in ("running", "pending", "finished", "unplaced")}
    counts |= {"pods": len(state), "pods_lost": int(state.is_in(LOST).sum())}
    failed = run.pods.filter(state == "unplaced") if run.engine == "pods" else run.pods.clear()
    demand = {f"{name}_gpu_milli": _total(pods, pl.col("demand_milli"))
             for name, pods in (("arrived", run.pods), ("failed", failed))}  # fmt: skip
    demand |= {f"{name}_cpu_milli": _total(pods, pl.col("cpu_milli"))
              for name, pods in (("arrived", run.pods), ("failed", failed))}  # fmt: skip
    counting = expected.filter(expected["pod_id"].is_in(run.counted()["pod_id"].implode()))
    done = counting.filter(pl.col("state") == "finished")
    return {
        **counts, **demand, **spans("wait", counting["wait_s"]), **spans("jct", counting["jct_s"]),
        "makespan_s": end_of(run, expected) - run.first_s, "restarts": int(counting["restarts"].sum()),
        "preemptions": int(counting["preemptions"].sum()), "paused_mean_s": done["paused_s"].mean(),
        "cost": expected["cost"].sum(),
        "slowdown_mean": done["slowdown"].mean(), "slowdown_p50": done["slowdown"].quantile(0.5, "linear"),
        "slowdown_p99": done["slowdown"].quantile(0.99, "linear"), **shares_of_tenants(expected),
        **({"lost_work_s": run.jobs["lost_work_s"].sum()} if "lost_work_s" in run.jobs.columns else {}),
        **({} if run.allocates_gpus_alone else {"gpu_hours": expected["gpu_hours"].sum()}),
    }  # fmt: skip


def round_figures(run: Evidence, expected: pl.DataFrame) -> Figures:
    """Figures that only runs in rounds have."""
    if not run.in_rounds:
        return {}
    counting = expected.join(run.counted().select("pod_id", "deadline_s"), on="pod_id", suffix="_job")
    due = pl.coalesce(f for f in ("deadline_s_job", "deadline_s") if f in counting.columns)
    done, open_too_long = pl.col("state") == "finished", (pl.col("state") == "unplaced") | (due < run.last_s)
    late = pl.when(done).then(pl.col("end_s") > due).otherwise(open_too_long)
    violated = counting.filter(due.is_not_null() & late)
    figures: Figures = {"slo_violations": len(violated)}
    weights = run.counted().select("pod_id", "weight")
    weighed = counting.drop("weight", strict=False).join(weights, on="pod_id")
    for (weight,), rows in weighed.group_by("weight", maintain_order=True):
        figures[f"jct_mean_weight_{weight:g}_s"] = rows["jct_s"].mean()
    if run.engine == "orders":
        figures["gpu_demand_pct"] = gpu_demand_pct(run, expected)
    if run.engine == "adaptive":
        figures["gpu_hours_mean"] = expected["gpu_hours"].mean()
        figures["restarts_mean"] = expected["restarts"].mean()
    return figures


def node_figures(run: Evidence, nodes: pl.DataFrame) -> Figures:
    """Figures that follow from the state of the nodes: at the end, and means over the run."""
    expected = state_by_time(run, nodes)
    last = expected.filter(pl.col("t_s") <= run.last_s).row(-1, named=True)
    figures: Figures = {name: last[name] for name in (*NODE_COLUMNS, "power_cpu_w", "power_gpu_w")}
    figures |= state_figures(last) | {"eopc_w": last["power_w"]}
    figures["memory_alloc_pct"] = percent(last["memory_mib_alloc"], last["memory_mib_capacity"])
    figures["frag_ratio_pct"] = percent(last["frag_milli"], last["gpu_milli_capacity"] - last["gpu_milli_alloc"])
    figures |= {f"at_capacity_{name}": value for name, value in at_capacity(run, expected).items()}
    return figures | means(run, expected)


def state_figures(row: Figures) -> Figures:
    """Parts of the capacity at an instant."""
    return {
        "gpu_alloc_pct": percent(row["gpu_milli_alloc"], row["gpu_milli_capacity"]),
        "cpu_alloc_pct": percent(row["cpu_milli_alloc"], row["cpu_milli_capacity"]),
        "frag_pct": percent(row["frag_milli"], row["gpu_milli_capacity"]), "eopc_w": row["power_w"],
        "grar": row["gpu_milli_alloc"] / row["arrived_gpu_milli"] if row["arrived_gpu_milli"] else None,
    }  # fmt: skip


def at_capacity(run: Evidence, expected: pl.DataFrame) -> Figures:
    """The state after the last arrival up to which demand fits the GPUs; empty if other events share its instant."""
    arrivals = run.pods.select("submit_s", demand=pl.col("demand_milli").cum_sum())
    within = arrivals.join_asof(expected.select("t_s", "gpu_milli_capacity"), left_on="submit_s", right_on="t_s")
    rows = within.with_row_index().filter(pl.col("demand") <= pl.col("gpu_milli_capacity"))
    if run.in_rounds or rows.is_empty():
        return {}
    row, at_s = rows.row(-1, named=True)["index"], rows.row(-1, named=True)["submit_s"]
    brief = run.stays.filter((pl.col("start_s") == at_s) & (pl.col("end_s") == at_s))
    if len(brief) or (row + 1 < len(arrivals) and arrivals["submit_s"][row + 1] == at_s):
        return {}
    state = state_figures(expected.filter(pl.col("t_s") <= at_s).row(-1, named=True))
    del state["cpu_alloc_pct"]
    return state


def means(run: Evidence, expected: pl.DataFrame) -> Figures:
    """Means over the run, energy and, where GPUs are allocated as a whole, their hours."""
    span_s = run.last_s - run.first_s

    def over_time(column: str) -> float:
        return integral(expected, column, run.first_s, run.last_s)

    figures = {f"mean_{name}_alloc_pct": percent(over_time(f"{name}_milli_alloc"), over_time(f"{name}_milli_capacity"))
               for name in ("gpu", "cpu")}  # fmt: skip
    if span_s > 0:
        pairs = (("frag_milli", "frag_milli"), ("power_w", "power_w"), ("pods_pending", "pods_pending"))
        figures |= {f"mean_{name}": over_time(column) / span_s for name, column in pairs}
        figures["energy_kwh"] = over_time("power_w") / KWH_J
        figures |= emissions(run, expected)
    if run.allocates_gpus_alone:  # shared GPUs are held once; pods also hold instances, see ``job_figures``
        figures["gpu_hours"] = over_time("gpu_milli_alloc") / 1000 / HOUR_S
    return figures


def emissions(run: Evidence, expected: pl.DataFrame) -> Figures:
    """CO2 of the energy of each span in which the intensity is constant; empty without an intensity."""
    carbon = carbon_from(run.scenario.carbon)
    if carbon is None:
        return {}
    begins = [run.first_s, *(t for t in carbon.since_s[1:].tolist() if run.first_s < t < run.last_s)]
    grams = 0.0
    for begin_s, end_s in pairwise([*begins, run.last_s]):
        row = max((k for k, since_s in enumerate(carbon.since_s) if since_s <= begin_s), default=0)
        grams += integral(expected, "power_w", begin_s, end_s) / KWH_J * float(carbon.g_per_kwh[row])
    return {"co2_kg": grams * carbon.pue / 1000}


def end_of(run: Evidence, expected: pl.DataFrame) -> float:
    """The last instant of the run: the latest end, start or arrival of a job, seconds."""
    instants: list[Any] = [run.jobs["submit_s"].max(), expected["start_s"].max(), expected["end_s"].max()]
    return max((float(instant) for instant in instants if instant is not None), default=run.first_s)


def open_ended(run: Evidence) -> bool:
    """Whether the run does not end with a job: some jobs are unfinished, or ``until_s`` is set."""
    left = run.jobs["state"].cast(pl.String).is_in(["running", "pending"]).any()
    return bool(left or run.scenario.until_s is not None)


def spans(name: str, seconds: pl.Series) -> Figures:
    """Mean, percentiles and largest; None without any."""
    parts = {f"{name}_p{p}_s": seconds.quantile(p / 100, "linear") for p in (50, 95, 99)}
    return {f"{name}_mean_s": seconds.mean(), **parts, f"{name}_max_s": seconds.max()}


def shares_of_tenants(expected: pl.DataFrame) -> Figures:
    """Evenness of the GPU time of tenants, by Jain and Gini; None without GPU time, empty without tenants."""
    if "tenant" not in expected.columns:
        return {}
    x = (
        expected.filter(pl.col("tenant").is_not_null())
        .group_by("tenant", maintain_order=True)
        .agg(pl.col("gpu_hours").sum())["gpu_hours"]
        .sort()
    )
    n, total, squares = len(x), float(x.sum()), float((x * x).sum())
    if not total:
        return {"tenant_jain": None, "tenant_gini": None}
    ranks = sum((2 * i - n - 1) * part for i, part in enumerate(x, start=1))
    return {"tenant_jain": total**2 / (n * squares), "tenant_gini": ranks / (n * total)}


def gpu_demand_pct(run: Evidence, expected: pl.DataFrame) -> float | None:
    """GPUs demanded by active jobs over those of the cluster, mean over the run, percent."""
    gpus, span_s = sum(node["num_gpu"] for node in run.nodes), run.last_s - run.first_s
    there_s = expected["end_s"].fill_null(run.last_s) - run.jobs["submit_s"]
    return percent(float((run.pods["num_gpu"] * there_s).sum()), gpus * span_s)


def percent(part: float, whole: float) -> float | None:
    """A part in percent; None of nothing."""
    return 100 * part / whole if whole else None


def _total(pods: pl.DataFrame, what: pl.Expr) -> int:
    return int(pods.select(what.cast(pl.Int64).sum()).item())
