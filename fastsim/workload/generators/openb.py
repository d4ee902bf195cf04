"""Synthetic workloads from calibrated statistics; the same seed always means the same pods.

Every concern (requests, repeats, durations, gaps, hours, models, warm start) has its own random stream, so changing
one option never reshuffles the rest, and a longer trace begins with the shorter one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastsim.errors import ScenarioError
from fastsim.foundation.draws.random_streams import Stream
from fastsim.foundation.limits.knobs import PODS, RESIDENTS
from fastsim.workload import schema as s
from fastsim.workload.generators.arrivals_and_durations import Mixture, PoissonClock, SeasonalClock, refuse_rate
from fastsim.workload.generators.requests import FREQUENT, SET, Columns, ModelSets, Requests, RequestTable
from fastsim.workload.pod_rows import BATCH_ROWS, PodRows

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster

TABLES = Path(__file__).parent / "tables"

ARRIVALS = ("seasonal", "poisson", "order")
DURATIONS = ("body", "full", "forever")


@dataclass(frozen=True)
class OpenbOptions:
    """Parameters of `synth_openb`; see there for their meaning and units."""

    pods: int
    seed: int = 0
    arrivals: str = "seasonal"
    durations: str = "body"
    rate_per_hour: float | None = None
    load: float | None = None
    gpu_milli: int | None = None
    gpu_spec_share: float = 0.0
    warm_start: bool = False
    rate_clip: tuple[float, float] | None = None


def synth_openb(
    pods: int,
    seed: int = 0,
    *,
    arrivals: str = "seasonal",
    durations: str = "body",
    rate_per_hour: float | None = None,
    load: float | None = None,
    cluster: Cluster | str | None = None,
    gpu_spec_share: float = 0.0,
    warm_start: bool = False,
    rate_clip: tuple[float, float] | None = None,
) -> PodRows:
    """`pods` arriving pods that look like the openb trace.

    arrivals: `seasonal` = hour of the day and a persistent hourly factor, `poisson` = constant rate, `order` = one per
    second. durations: `body` = up to 2 days whatever the QoS, `full` = by QoS with the heavy tail, `forever`.
    rate_per_hour: mean arrivals per hour (default: the trace's 10.05). load: instead of a rate, mean GPU demand in
    service over the capacity of `cluster` (1.0 = as much as there is). gpu_spec_share: share of GPU pods that name
    models (the trace's constrained list has 0.338). warm_start: the pods already running arrive first, at 0 s, with
    what is left of their durations. rate_clip: bounds of the hourly rate as multiples of its mean.
    """
    gpu_milli = _capacity(cluster)
    options = OpenbOptions(
        pods=pods,
        seed=seed,
        arrivals=arrivals,
        durations=durations,
        rate_per_hour=rate_per_hour,
        load=load,
        gpu_milli=gpu_milli,
        gpu_spec_share=gpu_spec_share,
        warm_start=warm_start,
        rate_clip=rate_clip,
    )
    _check(options)
    recipe = _Recipe(options, openb_table())
    metadata = {
        "fastsim.source": "synth openb",
        "fastsim.source_license": "aggregate statistics of cluster-trace-gpu-v2023",
        "fastsim.converter": "fastsim synth openb",
        "fastsim.seed": str(seed),
        "fastsim.params": json.dumps(asdict(options), sort_keys=True),
    }
    rows = pods + recipe.residents
    return PodRows(partial(_batches, recipe), recipe.columns(), name="synth:openb", rows=rows, metadata=metadata)


@cache
def openb_table() -> Mapping[str, Any]:
    """The calibrated statistics of the openb trace."""
    table: Mapping[str, Any] = json.loads((TABLES / "openb_workload.json").read_text(encoding="utf-8"))
    return table


def _capacity(cluster: Cluster | str | None) -> int | None:
    if cluster is None:
        return None
    from fastsim.cluster.cluster import Cluster

    if isinstance(cluster, str):
        cluster = Cluster.preset(cluster)
    if not isinstance(cluster, Cluster):
        raise ScenarioError("synth.cluster", repr(cluster), "a cluster or the name of a preset")
    return cluster.total_gpu_milli


def _check(options: OpenbOptions) -> None:
    for name, choices in (("arrivals", ARRIVALS), ("durations", DURATIONS)):
        if getattr(options, name) not in choices:
            raise ScenarioError(f"synth.{name}", repr(getattr(options, name)), f"one of: {', '.join(choices)}")
    for name in ("pods", "seed"):
        value = getattr(options, name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise ScenarioError(f"synth.{name}", repr(value), "a whole number")
    if options.pods < 0:
        raise ScenarioError("synth.pods", options.pods, "0 or more")
    PODS.refuse(options.pods)
    for name in ("rate_per_hour", "load"):
        value = getattr(options, name)
        if value is not None and not (math.isfinite(value) and value > 0):
            raise ScenarioError(f"synth.{name}", value, "a positive number")
    if not 0 <= options.gpu_spec_share <= 1:
        raise ScenarioError("synth.gpu_spec_share", options.gpu_spec_share, "0 to 1")
    if options.rate_clip is not None and not 0 < options.rate_clip[0] <= options.rate_clip[1]:
        raise ScenarioError("synth.rate_clip", options.rate_clip, "two positive bounds, the lower first")
    _check_together(options)


def _check_together(options: OpenbOptions) -> None:
    if options.load is not None and options.rate_per_hour is not None:
        raise ScenarioError("synth.load", "a rate_per_hour as well", "one of the two")
    if options.load is not None and not options.gpu_milli:
        raise ScenarioError("synth.load", "no cluster with GPUs", "the cluster the load refers to")
    if options.load is not None and options.arrivals == "order":
        raise ScenarioError("synth.load", "arrivals='order'", "arrivals with a rate")
    if options.durations == "forever" and (options.warm_start or options.load is not None):
        raise ScenarioError("synth.durations", "'forever'", "durations that end, for a load or a warm start")
    if options.warm_start and options.arrivals == "order":
        raise ScenarioError("synth.warm_start", "arrivals='order'", "arrivals with a rate")


class _Recipe:
    """Everything that follows from the options before the first pod is drawn."""

    def __init__(self, options: OpenbOptions, table: Mapping[str, Any]) -> None:
        self.options, self.table = options, table
        self.requests = RequestTable(table)
        self.mixtures = _mixtures(options.durations, table["durations"], self.requests.qos)
        mean_s = [mixture.mean() for mixture in self.mixtures]
        self.rate_per_hour = options.rate_per_hour or table["arrivals"]["rate_per_hour"]
        if options.load is not None and options.gpu_milli:
            gpu_seconds = self.requests.mean_gpu_seconds(mean_s)
            self.rate_per_hour = 3600 * options.load * options.gpu_milli / 1000 / gpu_seconds
        if options.arrivals != "order":
            refuse_rate(self.rate_per_hour, options.pods)
        self.resident_chance = self.requests.resident_chance(mean_s) if mean_s else self.requests.chance
        standing = self.rate_per_hour / 3600 * self.requests.mean_seconds(mean_s) if options.warm_start else 0
        self.residents = round(standing)
        RESIDENTS.refuse(self.residents)

    def columns(self) -> list[str]:
        """Names of the columns every batch has."""
        names = [s.POD_ID, s.SUBMIT_S, *FREQUENT, s.QOS]
        names += [s.DURATION_S] if self.mixtures else []
        return names + ([s.GPU_MODELS] if self.options.gpu_spec_share else [])

    def models(self, concern: str = "") -> ModelSets:
        """A fresh choice of GPU models."""
        options = self.options
        return ModelSets(self.table["constraints"], options.seed, options.gpu_spec_share, concern=concern)

    def clock(self) -> PoissonClock:
        """A fresh arrival clock."""
        arrivals, options = self.table["arrivals"], self.options
        if options.arrivals == "poisson":
            return PoissonClock(options.seed, self.rate_per_hour, arrivals["same_instant"])
        tie = arrivals["same_instant"]
        return SeasonalClock(options.seed, self.rate_per_hour, arrivals, tie, options.rate_clip)


def _mixtures(durations: str, table: Mapping[str, Any], qos: list[str]) -> list[Mixture]:
    """One mixture per QoS class; none if pods run for ever."""
    if durations == "forever":
        return []
    if durations == "body":
        return [Mixture.of(table["body"], table["body_limit_s"])] * len(qos)
    return [Mixture.of(table.get(name, table["all"]), table["limit_s"]) for name in qos]


def _batches(recipe: _Recipe, rows: int) -> Iterator[pa.RecordBatch]:
    del rows  # the pods do not depend on the size of the pieces, so one good size serves every reader
    yield from _residents(recipe)
    yield from _arrivals(recipe)


def _residents(recipe: _Recipe) -> Iterator[pa.RecordBatch]:
    """The pods running at 0 s."""
    seed = recipe.options.seed
    requests = Requests(recipe.requests, seed, chance=recipe.resident_chance, concern="warm.")
    requests.naming(recipe.models("warm."))
    biased = [mixture.length_biased() for mixture in recipe.mixtures]
    draws, left = Stream(seed, "warm.duration"), Stream(seed, "warm.left")
    for start in range(0, recipe.residents, BATCH_ROWS):
        count = min(BATCH_ROWS, recipe.residents - start)
        columns = requests.take(np.zeros(count, bool))
        seconds = _seconds(biased, columns[s.QOS], draws) * left.uniform(count)
        yield _batch(recipe, start, columns, np.zeros(count), seconds)


def _arrivals(recipe: _Recipe) -> Iterator[pa.RecordBatch]:
    seed, ordered = recipe.options.seed, recipe.options.arrivals == "order"
    requests = Requests(recipe.requests, seed).naming(recipe.models())
    repeats, draws, clock = Stream(seed, "request.repeat"), Stream(seed, "duration"), recipe.clock()
    table = recipe.table["arrivals"]
    for start in range(0, recipe.options.pods, BATCH_ROWS):
        count = min(BATCH_ROWS, recipe.options.pods - start)
        again = repeats.uniform(count)
        columns = requests.take(again < table["repeat"])
        submit = np.arange(start, start + count, dtype=np.float64)
        if not ordered:
            submit = clock.times(again < table["same_instant"])
        seconds = _seconds(recipe.mixtures, columns[s.QOS], draws) if recipe.mixtures else None
        yield _batch(recipe, recipe.residents + start, columns, submit, seconds)


def _seconds(mixtures: list[Mixture], qos: Any, draws: Stream) -> Any:
    uniform = draws.uniform(2 * len(qos)).reshape(-1, 2)
    if len(set(mixtures)) == 1:
        return mixtures[0].at(uniform[:, 0], uniform[:, 1])
    seconds = np.empty(len(qos))
    for index, mixture in enumerate(mixtures):
        rows = np.flatnonzero(qos == index)
        seconds[rows] = mixture.at(uniform[rows, 0], uniform[rows, 1])
    return seconds


def _batch(recipe: _Recipe, first_id: int, columns: Columns, submit: Any, seconds: Any) -> pa.RecordBatch:
    count = len(submit)
    names = pa.array(recipe.requests.qos)
    values: dict[str, Any] = {s.POD_ID: np.arange(first_id, first_id + count), s.SUBMIT_S: submit}
    values |= {name: columns[name] for name in FREQUENT}
    values[s.QOS] = pa.DictionaryArray.from_arrays(pa.array(columns[s.QOS].astype(np.int8)), names)
    if seconds is not None:
        # The source counts whole seconds, and a pod that runs at all is there for one.
        values[s.DURATION_S] = np.maximum(np.rint(seconds), 1.0)
    if recipe.options.gpu_spec_share:
        values[s.GPU_MODELS] = recipe.models().column(columns[SET])
    schema = s.pod_schema(recipe.columns())
    return pa.RecordBatch.from_arrays([pa.array(values[f.name], f.type) for f in schema], schema=schema)
