"""Figures of the Gavel paper that need no runs: 1, ratios of rates, and 11, shares of jobs among entities."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import polars as pl

from fastsim.engine.rounds.options import Setting
from fastsim.engine.shares.plan import Floats, RoundView
from fastsim.experiments.reproduce.published_numbers import number_cell, published_numbers
from fastsim.experiments.reproduce.reproduction import Cell
from fastsim.performance.gavel_rates import JOB_NAMES
from fastsim.performance.oracle import Oracle
from fastsim.policies.shares.water_filling import WaterFillingFairness

PRICES = {"v100": 0.74, "p100": 0.43, "k80": 0.135}
"""Dollars an hour in the original's program."""
ENTITIES = {"fairness": "a:1, b:2, c:3", "first come first served": "a:1:fifo, b:2:fifo, c:3:fifo"}
"""Entities of figure 11 by the name of their inner rule in its panels."""
ORACLE, RANDOM = "oracle", "random"
"""Kinds of rates of jobs in its panels."""
ENTITY_JOBS, MEMBERS, ENTITY_GPUS, TIMESTEPS = 18, 6, 3, 4
"""Jobs of figure 11, those of an entity, GPUs of each model, and timesteps from one job to the next."""


def ratio_cells(rates: str) -> Iterator[Cell]:
    """Rates of single GPUs over those of the K80, for every batch size: the figure does not name the one it shows."""
    oracle = Oracle.default() if rates == "default" else Oracle.from_json(rates)
    table = _single_gpu_rates(oracle).select("workload", "gpu_model", "steps_per_s")
    steps = {(workload, model): rate for workload, model, rate in table.iter_rows()}
    for row in published_numbers("gavel").filter(figure="1").iter_rows(named=True):
        price = PRICES["k80"] / PRICES[row["series"]] if row["panel"] == "b" else 1.0
        for workload, model in steps:
            if model == row["series"] and workload.split(" (")[0] == row["x"] and steps.get((workload, "k80")):
                ratio = price * steps[workload, model] / steps[workload, "k80"]
                yield number_cell(row, ratio, case=f"{row['panel']}, {workload}", comparable=False)


def entity_cells(rates: str) -> Iterator[Cell]:
    """Water filling among entities with one job more at a time, as played without GLPK_MI (``hold=all``); parts of jobs
    and totals are those of the panel with the rates of the oracle."""
    speeds = _speeds(Oracle.default() if rates == "default" else Oracle.from_json(rates))
    reached = {
        (drawn, inside, mode, count): _normalised(oracle, inside, mode, count)
        for drawn, oracle in speeds.items() for inside in ENTITIES for mode in ("base", "perf")
        for count in range(1, ENTITY_JOBS + 1)
    }  # fmt: skip
    for row in published_numbers("gavel").filter(figure="11").iter_rows(named=True):
        inside = next(name for name in ENTITIES if f", {name} inside" in row["panel"])
        drawn = RANDOM if f", {RANDOM} throughputs" in row["panel"] else ORACLE
        each, job = row["metric"].startswith("normalised"), row["panel"].partition(" of job ")[2].partition(" ")[0]
        mode = "base" if row["series"].endswith(("water_filling", "agnostic")) else "perf"
        count = int(row["x"]) if each else -(-int(row["x"]) // TIMESTEPS)
        rate = reached[drawn, inside, mode, count]
        if row["metric"].startswith("total"):
            yield number_cell(row, float(rate.sum()))
        elif row["metric"].startswith("fraction"):
            yield number_cell(row, float(rate[int(row["series"].removeprefix("job "))] / rate.sum()))
        else:
            yield number_cell(row, float(rate[int(job)]), exact=True)


def _speeds(oracle: Oracle) -> dict[str, Oracle]:
    """Rates of the jobs, a kind each: those of drawn types, or three drawn numbers that rise from model to model."""
    models, draw = sorted(PRICES), random.Random(0)
    known = oracle.restricted(models)
    kinds = [known.kind_index[draw.choice(JOB_NAMES), 1] for _ in range(ENTITY_JOBS)]
    draw = random.Random(0)
    rising = np.array([sorted(draw.random() for _ in models) for _ in range(ENTITY_JOBS)])
    jobs = tuple((f"job {number}", 1) for number in range(ENTITY_JOBS))
    apart = np.zeros((ENTITY_JOBS, ENTITY_JOBS, len(models)))
    drawn = {ORACLE: known.alone__kg[kinds], RANDOM: rising}
    return {name: Oracle(jobs, tuple(models), rate__jg, apart, name) for name, rate__jg in drawn.items()}


def _normalised(oracle: Oracle, inside: str, mode: str, count: int) -> Floats:
    """Effective rate of each of the first jobs over that of a proportional share of the GPUs; in mode ``base``, which
    is not aware of GPU models, its share of the time."""
    models = oracle.gpu_models
    gpus, zeros, ids = np.full(len(models), ENTITY_GPUS), np.zeros(count), np.arange(count)
    setting = Setting(models, gpus, oracle, oracle.alone__kg.max(axis=1))
    weight: Floats = np.where(inside == "fairness", 1.0 + ids % 2, 1.0)
    tenant = tuple("abc"[job // MEMBERS] for job in range(count))
    view = RoundView(
        setting=setting,
        now_s=0.0,
        job_id=ids,
        kind=ids,
        num_gpu=np.ones(count, np.int64),
        weight=weight,
        submit_s=zeros,
        steps_left=zeros + 1,
        deadline_s=zeros + np.inf,
        price__g=np.zeros(len(models)),
        tenant=tenant,
    )
    policy = WaterFillingFairness(mode=mode, entities=ENTITIES[inside], hold="all", program_compat=True)
    allocation = policy.begin(setting).allocator.allocate(view)
    rate__jg = np.ones_like(view.rate__jg) if mode == "base" else view.rate__jg
    reached = np.zeros(count)
    if allocation is not None:
        np.add.at(reached, allocation.first, (allocation.share__rg * rate__jg[allocation.first]).sum(axis=1))
    return np.asarray(reached / rate__jg.mean(axis=1), np.float64)


def _single_gpu_rates(oracle: Oracle) -> pl.DataFrame:
    table = pl.DataFrame(pl.from_arrow(oracle.table())).with_columns(pl.col("workload", "gpu_model").cast(pl.String))
    alone = table.filter(pl.col("num_gpu") == 1, pl.col("colocated_workload").is_null())
    return alone.unique(["workload", "gpu_model"], keep="first", maintain_order=True)
