"""Workloads of generated jobs: Gavel's simulator and its stand-alone trace generator, as one call each."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastsim.errors import ScenarioError
from fastsim.foundation.limits.knobs import JOBS, LENGTHS
from fastsim.foundation.limits.work_budget import Work
from fastsim.performance.gavel_rates import JOB_TABLES
from fastsim.performance.oracle import Oracle
from fastsim.workload import schema as s
from fastsim.workload.generators.gavel_jobs import (
    EARLY_GPU_MIX,
    GPU_MIX,
    SLO_MIX,
    WEIGHT_MIX,
    Choices,
    Durations,
    JobRecipe,
    JobStream,
    gavel_seconds,
)
from fastsim.workload.generators.python_random import Given, Mix, Twister, chain, floats_at, numbers_at
from fastsim.workload.pod_rows import Held, PodRows

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster

DURATIONS = "gavel"
"""Name of the durations of the published experiments."""
TABLE = next(iter(JOB_TABLES))
"""Table of types from which jobs are drawn if none is named."""
EARLY = "2019-09"
"""Month of jobs that were drawn in another order; their types are in the order of the table of May 2020."""
SCRIPT_GPU_MIX: Given = {1: 0.7, 2: 0.1, 4: 0.2}
"""Shares of jobs by their number of GPUs."""


class JobSource:
    """Opens the stream of a recipe from its first job, `jobs` jobs long."""

    def __init__(self, recipe: JobRecipe, jobs: int) -> None:
        self.recipe, self.jobs = recipe, jobs

    def __call__(self, rows: int) -> Iterator[pa.RecordBatch]:
        """The jobs in batches of one good size: they do not depend on `rows`."""
        return JobStream(self.recipe).batches(self.jobs)

    def stream(self) -> JobStream | None:
        """The endless stream that these jobs are the beginning of; None if all jobs come at once."""
        return JobStream(self.recipe) if self.recipe.mean_gap_s else None


def synth_gavel(
    jobs: int,
    seed: int = 0,
    *,
    rate_per_hour: float | None = None,
    mean_gap_s: float | None = None,
    rates: Oracle | str | os.PathLike[str] | None = None,
    multi_gpu: bool = False,
    priorities: bool = False,
    slos: bool = False,
    durations: float | str | Durations = DURATIONS,
    gpu_mix: Given = GPU_MIX,
    weight_mix: Given = WEIGHT_MIX,
    slo_mix: Given = SLO_MIX,
    warm_start: bool = False,
    cluster: Cluster | str | None = None,
    table: str = TABLE,
) -> PodRows:
    """`jobs` jobs as Gavel's simulator draws them; the same seed means its very jobs, given the same rates.

    rate_per_hour: mean arrivals per hour, or mean_gap_s: mean seconds between two; neither = all at 0 s. rates: an
    `Oracle`, or a file of one (default: the model that ships with fastsim); a job's steps are its duration times its
    rate on the fastest GPU model. multi_gpu: jobs have 1, 2, 4 or 8 GPUs. priorities: a fifth of the jobs has weight
    5. slos: deadlines of 1.2, 2 or 10 durations. durations: `gavel` = those of the published experiments, a number =
    seconds of every job, or a function of two uniform arrays. gpu_mix, weight_mix, slo_mix: own values and shares,
    `{1: 0.5, 4: 0.5}` or `1:0.5,4:0.5`. warm_start: the first jobs come at 0 s, enough to fill each GPU model of
    `cluster`. Workloads are drawn from Gavel's 26 types, or from all that the rates have if they lack one of those.
    table: month of the table of types, `2020-08` or `2020-05` = `A3C` before `LM`, as in the paper's figures; `2019-09`
    has that order, longer durations, fewer jobs of several GPUs, whatever their type, and no SLOs or warm start.
    """
    flags = {"multi_gpu": multi_gpu, "priorities": priorities, "slos": slos, "warm_start": warm_start}
    _check(jobs, seed, flags)
    _check_mixes(flags, {"gpu_mix": gpu_mix, "weight_mix": weight_mix, "slo_mix": slo_mix})
    if durations != DURATIONS and not (callable(durations) or isinstance(durations, int | float)):
        raise ScenarioError("synth.durations", repr(durations), f"{DURATIONS!r}, seconds, or a function")
    lasting: Any = gavel_seconds if durations == DURATIONS else durations
    gap_s, present, oracle = _gap_s(rate_per_hour, mean_gap_s), _gpus(cluster) if warm_start else (), _oracle(rates)
    early = table == EARLY and _check_early(slos, warm_start, lasting)
    recipe = JobRecipe(
        oracle=oracle, seed=seed, mean_gap_s=gap_s, multi_gpu=multi_gpu, priorities=priorities, slos=slos,
        durations=lasting, gpu_mix=EARLY_GPU_MIX if early and gpu_mix == GPU_MIX else gpu_mix, weight_mix=weight_mix,
        slo_mix=slo_mix, workloads=table_of(table, oracle, (*JOB_TABLES, EARLY)), present_gpus=present, early=early,
    )  # fmt: skip
    _check_rates(recipe)
    parameters = _parameters(recipe, jobs) | {"durations": _name(durations), "table": table}
    metadata = _metadata("gavel", seed, parameters) | _rates_metadata(rates)
    return PodRows(JobSource(recipe, jobs), recipe.columns, name="synth:gavel", rows=jobs, metadata=metadata)


def _check_mixes(flags: Mapping[str, bool], mixes: Mapping[str, Given]) -> None:
    """ScenarioError for a mix that is given although the flag is off that draws from it; both are in the same order."""
    usual = (GPU_MIX, WEIGHT_MIX, SLO_MIX)
    for (flag, on), (name, mix), known in zip(flags.items(), mixes.items(), usual, strict=False):
        if mix != known and not on:
            raise ScenarioError(f"synth.{name}", f"{flag}=False", f"{flag}=True, which draws from it")


def synth_gavel_trace(
    jobs: int,
    seed: int = 0,
    *,
    rate_per_hour: float | None = None,
    mean_gap_s: float | None = None,
    rates: Oracle | str | os.PathLike[str] | None = None,
    multi_gpu: bool = False,
    priorities: bool = False,
    min_h: float = 1.0,
    max_h: float = 4.0,
    lengths: int = 4,
    table: str = TABLE,
) -> PodRows:
    """`jobs` short jobs as Gavel's stand-alone trace generator draws them.

    Durations are `lengths` equally likely ones from `min_h` to `max_h` hours; the other options as in `synth_gavel`.
    """
    _check(jobs, seed, {"multi_gpu": multi_gpu, "priorities": priorities})
    gap_s = _gap_s(rate_per_hour, mean_gap_s)
    JOBS.refuse(jobs, work=Work.HELD_PODS)
    oracle = _oracle(rates)
    types = table_of(table, oracle)
    recipe = ScriptRecipe(
        oracle=oracle,
        seed=seed,
        mean_gap_s=gap_s,
        multi_gpu=multi_gpu,
        priorities=priorities,
        min_h=min_h,
        max_h=max_h,
        lengths=lengths,
        workloads=types,
    )
    drawn = script_jobs(recipe, jobs)
    parameters = {"jobs": jobs, "seed": seed, "mean_gap_s": gap_s, "rates": recipe.oracle.name, "multi_gpu": multi_gpu,
            "priorities": priorities, "min_h": min_h, "max_h": max_h, "lengths": lengths, "table": table}  # fmt: skip
    metadata = _metadata("gavel-trace", seed, parameters) | _rates_metadata(rates)
    return PodRows(Held(drawn), drawn.column_names, name="synth:gavel-trace", rows=jobs, metadata=metadata)


def _check(jobs: int, seed: int, flags: dict[str, bool]) -> None:
    for name, value in (("jobs", jobs), ("seed", seed)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ScenarioError(f"synth.{name}", repr(value), "a whole number, 0 or more")
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise ScenarioError(f"synth.{name}", repr(flag), "true or false")
    JOBS.refuse(jobs)


def _gap_s(rate_per_hour: float | None, mean_gap_s: float | None) -> float:
    if rate_per_hour is None:
        return mean_gap_s or 0.0
    if mean_gap_s is not None:
        raise ScenarioError("synth.rate_per_hour", "a mean_gap_s as well", "one of the two")
    if not rate_per_hour > 0:
        raise ScenarioError("synth.rate_per_hour", rate_per_hour, "a positive number")
    return 3600 / rate_per_hour


def _oracle(rates: Oracle | str | os.PathLike[str] | None) -> Oracle:
    if rates is None:
        return Oracle.default()
    if isinstance(rates, Oracle):
        return rates
    return Oracle.from_json(rates) if str(rates).endswith((".json", ".json.gz")) else Oracle.from_parquet(rates)


def _parameters(recipe: JobRecipe, jobs: int) -> dict[str, Any]:
    """The properties that fix the jobs, as metadata."""
    return {
        "jobs": jobs, "seed": recipe.seed, "mean_gap_s": recipe.mean_gap_s, "rates": recipe.oracle.name,
        "multi_gpu": recipe.multi_gpu, "priorities": recipe.priorities, "slos": recipe.slos,
        "present_gpus": list(recipe.present_gpus), "gpu_mix": recipe.gpus.shares(),
        "weight_mix": recipe.weights.shares(), "slo_mix": recipe.factors.shares(),
    }  # fmt: skip


def _check_early(slos: bool, warm_start: bool, lasting: Any) -> bool:
    """Refuse what jobs of September 2019 did not have; true."""
    for name, given in (("slos", slos), ("warm_start", warm_start), ("durations", lasting)):
        if given is True or (callable(given) and given is not gavel_seconds):
            raise ScenarioError(f"synth.{name}", _name(given), f"none of them with table={EARLY}")
    return True


def _check_rates(recipe: JobRecipe) -> None:
    """Refuse rates that lack some of a type, of which any job of September 2019 may be."""
    if recipe.early and not recipe.choices.runs__tc.all():
        raise ScenarioError("synth.table", f"{EARLY}, with rates that lack some", "rates of all types on 1 to 8 GPUs")


def table_of(name: str, oracle: Oracle, tables: Collection[str] = JOB_TABLES) -> tuple[str, ...]:
    """Types of jobs in the order of one of the tables; none = those of the rates, for the last revision's."""
    if name not in tables:
        raise ScenarioError("synth.table", repr(name), f"one of {', '.join(tables)}")
    types = JOB_TABLES["2020-05" if name == EARLY else name]
    missing = sorted(set(types) - {workload for workload, _ in oracle.kinds})
    if name != TABLE and missing:
        raise ScenarioError("synth.table", f"{name}, with rates that lack {missing[0]!r}", "rates of all types")
    return () if name == TABLE else types


def _rates_metadata(rates: Oracle | str | os.PathLike[str] | None) -> dict[str, str]:
    """The metadata from which a run reads the same rates; an object has no text for it."""
    return {} if rates is None or isinstance(rates, Oracle) else {"fastsim.rates": str(rates)}


def _gpus(cluster: Cluster | str | None) -> tuple[int, ...]:
    """GPUs of each model of the cluster, models sorted by name."""
    if cluster is None:
        raise ScenarioError("synth.warm_start", "no cluster", "the cluster that the first jobs shall fill")
    from fastsim.cluster.cluster import Cluster

    nodes = Cluster.from_text(cluster).nodes.select(["gpu_model", "num_gpu"]).to_pylist()
    models = sorted({node["gpu_model"] for node in nodes if node["num_gpu"]})
    if not models:
        raise ScenarioError("synth.warm_start", "a cluster without GPUs", "GPUs that the first jobs shall fill")
    return tuple(sum(node["num_gpu"] for node in nodes if node["gpu_model"] == model) for model in models)


def _name(value: Any) -> str:
    return str(getattr(value, "__name__", value))


def _metadata(kind: str, seed: int, parameters: dict[str, Any]) -> dict[str, str]:
    return {
        "fastsim.source": f"synth {kind}",
        "fastsim.converter": f"fastsim synth {kind}",
        "fastsim.work_unit": "steps",
        "fastsim.seed": str(seed),
        "fastsim.params": json.dumps(parameters, sort_keys=True),
    }


@dataclass(frozen=True)
class ScriptRecipe:
    """Options of the generator: durations are `lengths` equally likely hours from `min_h` to `max_h`."""

    oracle: Oracle
    seed: int = 0
    mean_gap_s: float = 0.0
    multi_gpu: bool = False
    priorities: bool = False
    min_h: float = 1.0
    max_h: float = 4.0
    lengths: int = 4
    workloads: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean_gap_s) and self.mean_gap_s >= 0):
            raise ScenarioError("jobs.mean_gap_s", self.mean_gap_s, "seconds, 0 or more")
        if not (0 < self.min_h <= self.max_h < math.inf and self.lengths >= 1):
            found = f"{self.lengths} durations from {self.min_h} to {self.max_h} h"
            raise ScenarioError("jobs.lengths", found, "1 or more, from a positive number up")
        LENGTHS.refuse(self.lengths)


def script_jobs(recipe: ScriptRecipe, count: int) -> pa.Table:
    """The first `count` jobs as rows of a workload."""
    mix, oracle, seed = Mix.of(SCRIPT_GPU_MIX, "gpu_mix"), recipe.oracle, recipe.seed
    sizes = tuple(int(value) for value in mix.values) if recipe.multi_gpu else (1,)
    choices = Choices(oracle, sizes, recipe.workloads)
    workload, weight = _workloads(Twister(seed), choices, count, recipe.priorities)
    size = np.zeros(count, np.int64)
    if recipe.multi_gpu:
        gangs: Any = choices.runs__tc[:, 1:].all(axis=1)
        requested = gangs[workload]
        size[requested] = mix.picks(Twister(seed + 3).floats(int(requested.sum())))
    hours = np.linspace(recipe.min_h, recipe.max_h, recipe.lengths)
    duration_s = 3600 * hours[Twister(seed + 2).below(recipe.lengths, count)]
    columns: dict[str, Any] = {
        s.POD_ID: np.arange(count),
        s.SUBMIT_S: _arrivals(Twister(seed + 1), recipe.mean_gap_s, count),
        s.CPU_MILLI: np.zeros(count, np.int64),
        s.MEMORY_MIB: np.zeros(count, np.int64),
        s.NUM_GPU: np.array(sizes, np.int16)[size],
        s.GPU_MILLI: np.full(count, 1000, np.int16),
        s.DURATION_S: duration_s,
        s.WORKLOAD: np.array(choices.names, object)[workload],
        s.TOTAL_WORK: duration_s * choices.rate__tc[workload, size],
        s.WEIGHT: weight,
    }
    return pa.table(columns)


def _workloads(words: Twister, choices: Choices, count: int, priorities: bool) -> tuple[Any, Any]:
    """Positions of workloads, and weights."""
    if not priorities:
        return words.below(choices.limit, count), np.ones(count)
    words_ahead = 64 + 6 * count
    while True:
        drawn = words.ahead(words_ahead)
        number = numbers_at(drawn, choices.limit)
        places = np.where(number < choices.limit, np.arange(words_ahead), words_ahead)
        ends = np.minimum.accumulate(places[::-1])[::-1]
        at = chain(ends + 3, count)
        picked = ends[at]
        if len(at) == count and (not count or picked[-1] + 3 <= words_ahead):
            return number[picked], Mix.of(WEIGHT_MIX, "weight_mix").at(floats_at(drawn)[picked + 1])
        words_ahead *= 2


def _arrivals(gaps: Twister, mean_gap_s: float, count: int) -> Any:
    """The first job comes at 0 s, every other a gap after the one before."""
    if not mean_gap_s or count < 2:
        return np.zeros(count)
    rate = 1 / mean_gap_s
    steps = [0.0, *(-math.log(1.0 - u) / rate for u in gaps.floats(count - 1).tolist())]
    return np.add.accumulate(np.array(steps))
