"""Small random runs with any fields of a scenario: an audit finds nothing, and what only looks on changes nothing."""

from __future__ import annotations

import dataclasses
import random
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import fastsim as fs
from fastsim.engine.online.plan import GPU_PICKS
from fastsim.performance.applications.family import Applications
from fastsim.scenario.carbon import Carbon
from fastsim.scenario.compat import SYSTEMS
from fastsim.scenario.outages import Maintenance
from fastsim.scenario.prices import Prices
from fastsim.scenario.scenario import RECORDS
from fastsim.simulation.simulate import run
from fastsim.simulation.uses.cells import REFUSED, cells
from tests.fuzz import small_runs, trial
from tests.fuzz.trial import Trial

ENGINES = ("pods", "shares", "orders", "adaptive", "monitored")
"""Engines of small runs, as the table of uses names them."""
GIVEN = ("cluster", "workload", "policy", "queue", "preempt", "on_node_loss", "quotas", "weights")
"""Fields that a small run has and that hang on each other: rules of a queue, tenants of a workload."""
FEW, OFTEN = 0.15, 0.4
"""Parts of the fields that are given, in most runs and in some."""
UNIT_S = {"pods": 1.0, "shares": 1800.0, "orders": 1800.0, "adaptive": 300.0, "monitored": 15.0}
"""Some part of what small runs last, seconds."""


class Drawn(NamedTuple):
    """What a value of a field may depend on."""

    engine: str
    scenario: fs.Scenario
    draw: random.Random
    folder: Path

    @property
    def unit_s(self) -> float:
        """Seconds in which something happens in a run."""
        return UNIT_S[self.engine]

    def one(self, *values: Any) -> Any:
        """One of these values."""
        return self.draw.choice(values)

    def seconds(self, *units: float) -> float:
        """One of these times, in units of the run."""
        return float(self.unit_s * self.draw.choice(units))

    def models(self) -> tuple[str, ...]:
        """Models of the cluster's GPUs."""
        return tuple(sorted({model for model in self.scenario.cluster.nodes["gpu_model"].to_pylist() if model}))


def _of_small_run(name: str, of: Drawn) -> Any:
    return getattr(of.scenario, name)


def _deschedule(of: Drawn) -> tuple[str, ...]:
    steps = ("frag_one_pod:0.5", "cos_sim:1", "frag_one_pod:1@3", "frag_multi_pod:0.5@20", "cos_sim:0.3@0")
    return tuple(of.draw.sample(steps, of.one(1, 1, 2)))


def _prices(of: Drawn) -> Prices | str | None:
    models = of.models()
    if not models:
        return None
    if of.one(True, False):
        return "fixed?" + "&".join(f"{model}={of.one('0.5', '2', '3.25')}" for model in models)
    since_s = np.array([0.0, of.unit_s * 2])
    return Prices(models, since_s, np.array([[1.5] * len(models), [0.25] * len(models)]))


def _carbon(of: Drawn) -> Carbon | str | float:
    changing = Carbon(np.array([0.0, of.unit_s, 3 * of.unit_s]), np.array([100.0, 0.0, 400.0]), 1.25)
    values: tuple[Any, ...] = (350.0, "0", "420.5?pue=1.5", changing)
    return of.draw.choice(values)  # type: ignore[no-any-return]


def _maintenance(of: Drawn) -> tuple[Maintenance, ...]:
    names = of.scenario.cluster.nodes["name"].to_pylist()
    windows = ((0.0, 2.0), (1.0, 1.5), (3.0, float("inf")), (6.0, 9.0))
    return tuple(Maintenance(of.draw.choice(names), *window) for window in of.draw.sample(windows, of.one(1, 2, 3)))


def _typical(of: Drawn) -> Any:
    return of.one("same", "same?threshold=50", "synth:openb?pods=9&seed=1", fs.Workload.synth("openb", pods=5))


def _rates(of: Drawn) -> Any:
    if of.engine == "adaptive":
        return Applications.default()
    return of.one(None, "default", *(["synergy"] if of.engine == "orders" else []))


def _window(of: Drawn) -> str | tuple[int, int]:
    first = of.draw.randrange(of.scenario.workload.rows)
    last = of.draw.randint(first + 1, of.scenario.workload.rows)
    return of.one(f"{first}:{last}", (first, last))  # type: ignore[no-any-return]


def _compat(of: Drawn) -> str:
    return str(of.one(*SYSTEMS, "whole_steps", "late_shares,lease_cost", "use_from_zero", "idle_gap_accounting"))


def _telemetry(of: Drawn) -> Any:
    every_s = of.unit_s if of.engine == "pods" else 4 * of.unit_s
    return of.one(every_s, f"{every_s}?refresh_s={every_s / 2}:{every_s}", f"{2 * every_s}?epoch=2024-02-29T12:00:00Z")


FIELDS: dict[str, Callable[[Drawn], Any]] = {
    **{name: partial(_of_small_run, name) for name in GIVEN},
    "seed": lambda of: of.one(0, 1, 2**64 - 1, of.draw.randrange(2**32)), "typical": _typical,
    "gpu_pick": lambda of: of.one(*GPU_PICKS), "sample_s": lambda of: of.seconds(0.5, 1.0, 3.0),
    "until_s": lambda of: of.seconds(0.0, 0.5, 2.0, 5.0, 9.0), "record": lambda of: of.one(*RECORDS),
    "deschedule": _deschedule, "inflation": lambda of: of.one(1.0, 1.25, 2.0), "retarget": _typical,
    "checkpoint_every_s": lambda of: of.one(None, 0.0, 0.5, 1.0),
    "restart_s": lambda of: of.one(0.0, 0.5, 3.0) if of.engine == "pods" else of.one(0.0, 20.0, 59.0),
    "failures": lambda of: of.one("mtbf=8,mttr=2", "mtbf=1.5,mttr=0.7"), "maintenance": _maintenance,
    "compat": _compat, "round_s": lambda of: of.one(60.0, 300.0, 420.0),
    "realloc_s": lambda of: of.one(0.0, 400.0, 2000.0), "begin_s": lambda of: of.one(0.0, 100.0, 7200.0),
    "window": _window, "rates": _rates, "prices": _prices, "carbon": _carbon,
    "global_queue": lambda _: True, "profiling": lambda of: of.one(0.3, 0.5, 0.8),
    "references": lambda of: of.one(1, 3, 26), "ideal": lambda _: True, "interference": lambda of: of.one(0.1, 0.5),
    "telemetry": _telemetry, "name": lambda of: of.one("a run", "\u00df"), "out": lambda of: str(of.folder / "out"),
    "log": lambda of: str(of.folder / "log.txt"),
}  # fmt: skip
"""A value of every field of a scenario."""
PAIRS = ("max_min_fairness", "max_sum_throughput", "finish_time_fairness", "fifo")
"""Policies of which some let jobs share GPUs."""
LOOKS_ON: dict[str, Any] = {"carbon": None, "telemetry": None, "name": "", "out": None, "log": None, "record": "all"}
"""Fields that change no decision, and their values in a run without them."""
DECIDES = (("monitored", "telemetry"),)
"""Engines in which such a field decides: a monitored scheduler sees the readings."""
OF_ONLOOKERS = ("co2_kg",)
"""Columns of the summary that such a field fills in."""


def usable(engine: str) -> list[str]:
    """Fields that runs of this engine may have."""
    table = cells("options")
    return [name for name in FIELDS if table[name][engine].use != REFUSED]


def scenario_of(engine: str, draw: random.Random, folder: Path) -> fs.Scenario:
    """A small run of this engine with further fields."""
    return with_fields(engine, small_runs.scenario_of(engine, draw), draw, folder)


def with_fields(engine: str, plain: fs.Scenario, draw: random.Random, folder: Path) -> fs.Scenario:
    """A small run with further fields."""
    if plain.policy in PAIRS and draw.random() < 0.5:
        plain = plain.with_(policy=f"{plain.policy}(mode=packed)")
    often, of = draw.choice((FEW, FEW, OFTEN)), Drawn(engine, plain, draw, folder)
    chosen = {name: FIELDS[name](of) for name in usable(engine) if name not in GIVEN and draw.random() < often}
    if engine == "shares" and "mode=packed" not in str(plain.policy):  # policies that let no jobs share GPUs
        chosen = {name: value for name, value in chosen.items() if name not in ("profiling", "references")}
    return _ending(engine, plain.with_(**chosen))


def _ending(engine: str, scenario: fs.Scenario) -> fs.Scenario:
    """The scenario with an end if nodes fail: what needs longer than they hold begins again for ever."""
    endless = scenario.until_s is None and (scenario.failures or scenario.telemetry is not None)
    return scenario.with_(until_s=20.0 if engine == "pods" else 60 * UNIT_S[engine]) if endless else scenario


def require_true(engine: str, scenario: fs.Scenario) -> None:
    """AssertionError unless the figures of a run are sound, audited, and those of the run without onlookers."""
    result = run(scenario, overwrite=True)
    for name in ("summary", "stages"):
        trial.require_sound(result.frames[name])
    if result.recorded("placements"):
        found = [str(one) for one in result.audit(scenario).differences]
        assert not found, f"{len(found)} figures differ: {'; '.join(found[:4])}"
    given = [name for name, value in LOOKS_ON.items() if getattr(scenario, name) != value]
    seen = {name: LOOKS_ON[name] for name in given if (engine, name) not in DECIDES}
    if seen:
        require_same(result, run(scenario.with_(**seen)), (*seen,))


def require_same(found: fs.Result, plain: fs.Result, seen: tuple[str, ...]) -> None:
    """AssertionError unless a run with onlookers has the tables of the run without them."""
    for name in ("summary", "jobs", "placements", "timeline", "stages"):
        if not found.recorded(name):
            continue
        one, two = (_in_order(frames[name]) for frames in (found.frames, plain.frames))
        if found.provenance["options"]["record"] == "none":  # counts alone, no times of pods
            known = [column for column in one.columns if one[column].null_count() == 0]
            one, two = one.select(known), two.select(known)
        assert one.equals(two), f"{name} with {', '.join(seen)}: {first_difference(one, two)}"


def _in_order(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows by pod: those of a folder are in the order in which pods left."""
    order = [name for name in ("pod_id", "attempt", "start_s") if name in frame.columns]
    frame = frame.drop(OF_ONLOOKERS, strict=False)
    return frame.sort(order) if order else frame


def first_difference(one: pl.DataFrame, other: pl.DataFrame) -> str:
    """The first cells that differ."""
    if one.schema != other.schema or len(one) != len(other):
        return f"{len(one)} rows of {one.schema}, {len(other)} rows of {other.schema}"
    for row, (mine, theirs) in enumerate(zip(one.rows(named=True), other.rows(named=True), strict=True)):
        if different := {name: (mine[name], theirs[name]) for name in mine if mine[name] != theirs[name]}:
            return f"row {row}: {different}"
    return "no cell that Python tells apart"


def tried(engine: str, folder: Path, seed: int) -> str:
    """One run."""
    draw = random.Random(f"fields {engine} {seed}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scenario = scenario_of(engine, draw, folder)
        try:
            require_true(engine, scenario)
        except fs.errors.FastsimError as error:
            trial.refuse_unclear(str(error))
            return f"refused: {error}"
        except AssertionError as error:
            raise AssertionError(f"{given(scenario)}: {error}") from error
    return "valid"


def given(scenario: fs.Scenario) -> str:
    """The fields of a scenario that differ from their defaults, but for its inputs."""
    fields = {item.name: getattr(scenario, item.name) for item in dataclasses.fields(scenario)}
    plain = fs.Scenario()
    return ", ".join(
        f"{name}={value!r}" for name, value in fields.items()
        if name not in ("cluster", "workload") and value is not getattr(plain, name) and value != getattr(plain, name)
    )  # fmt: skip


def prepare(engine: str) -> Trial:
    """A trial of one engine."""
    return partial(tried, engine, trial.folder("fields"))


TARGETS: dict[str, Callable[[], Trial]] = {f"scenarios of {engine}": partial(prepare, engine) for engine in ENGINES}
"""Trials by name."""
