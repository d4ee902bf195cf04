"""The recorded runs of the Gavel simulator as runs of ours. Nothing here names a run.

Four settings stand nowhere but in the beginning of a scenario's name: rates of the physical cluster (``trace-phys``),
no least time between allocations (``minreset0``), one queue (``globalq``) and prices (``cost-``, of one cloud if
``gcp``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from fastsim.engine.rounds.job_batches import JobBatches
from fastsim.engine.rounds.options import QUIRKS, RoundOptions, Setting
from fastsim.engine.rounds.outcome import RoundOutcome
from fastsim.engine.shares.plan import Allocation, RoundView, SharePlan
from fastsim.engine.shares.run import run_rounds
from fastsim.policies import registry
from fastsim.policies.registry import ORIGINAL_NAMES
from fastsim.scenario.compat import switches_on
from fastsim.scenario.prices import CLOUDS, Prices
from fastsim.workload import Workload
from tests.golden.gavel import gavel

CLI_ORDER = ("v100", "p100", "k80")
"""The order of GPU models in the original's cluster texts."""
SOLVED = ("max_min", "finish_time", "min_total", "max_sum")
"""Beginnings of the names of policies that solve a program."""


@dataclass(frozen=True)
class Recorded:
    """One recorded run; ``row`` is its line of the summary."""

    row: dict[str, Any]

    @property
    def policy(self) -> str:
        """The original's name of the policy."""
        return str(self.row["policy"])

    @property
    def id(self) -> str:
        """Scenario and policy."""
        return f"{self.row['name']}__{self.policy}"

    @property
    def workload(self) -> Workload:
        """Its jobs."""
        trace = self.row["trace"]
        return Workload.from_gavel(gavel.GAVEL / "traces" / trace) if trace else gavel.jobs(self.row["name"])

    @property
    def setting(self) -> Setting:
        """Its cluster, rates and seed."""
        gpus = dict(zip(CLI_ORDER, _numbers(self.row["cluster"]), strict=True))
        oracle = gavel.oracle(oracle_of(self.row["name"]))
        best = oracle.alone__kg[:, oracle.gpu_models.index(oracle.fastest_first[0])]
        models = tuple(sorted(gpus))
        return Setting(models, np.array([gpus[m] for m in models]), oracle.restricted(models), best, self.row["seed"])

    @property
    def servers(self) -> tuple[int, ...]:
        """GPUs of each server, by model."""
        sizes = dict(zip(CLI_ORDER, _numbers(self.row["per_server"]), strict=True))
        return tuple(sizes[model] for model in sorted(sizes))

    @property
    def options(self) -> RoundOptions:
        """Its options, the original's quirks among them."""
        name, window = self.row["name"], self.row["window"]
        first_last = tuple(int(n) for n in window.split("-")) if window else None
        return RoundOptions(
            round_s=float(self.row["interval"]),
            realloc_s=0.0 if name.startswith("minreset0") else 1920.0,
            window=(first_last[0], first_last[1]) if first_last else None,
            global_queue=name.startswith("globalq"),
            prices=self.prices,
            compat=switches_on("gavel") & frozenset(QUIRKS),
            endless=self.row["trace"] is None,
        )

    @property
    def prices(self) -> Prices | None:
        """What its GPUs cost; the scenario's name says which clouds."""
        if not self.row["name"].startswith("cost-"):
            return None
        clouds = ("gcp",) if "gcp" in self.row["name"] else CLOUDS
        return Prices.from_folder(gavel.GAVEL / "prices", clouds, self.setting.gpu_models, azure_last_zone=True)

    def played(self, plan: SharePlan, **more: Any) -> RoundOutcome:
        """The run with this plan; ``more`` goes to ``run_rounds``."""
        setting = self.setting
        batches = JobBatches(self.id, self.workload.batches, setting.oracle, setting.reference__k)
        return run_rounds(setting, plan, batches, self.options, gpus_per_server=self.servers, **more)

    @property
    def outcome(self) -> RoundOutcome:
        """The run with our policy, which is made once for all tests."""
        return _outcome(self.id)

    def plan(self) -> SharePlan:
        """Our policy under the original's name."""
        policy: Any = registry.parse(ORIGINAL_NAMES[self.policy])
        plan: SharePlan = policy.begin(self.setting)
        return plan

    def jobs(self) -> pl.DataFrame:
        """What became of its jobs, by id."""
        return _jobs().filter((pl.col("scenario") == self.row["name"]) & (pl.col("policy") == self.policy))


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(":")]


def oracle_of(scenario: str) -> str:
    """Scenarios of the physical cluster have its rates."""
    return "physical_cluster_throughputs" if scenario.startswith("trace-phys") else "simulation_throughputs"


@cache
def _jobs() -> pl.DataFrame:
    return pl.read_parquet(gavel.GAVEL / "sim/jobs.parquet").sort("scenario", "policy", "job_id")


@cache
def runs() -> tuple[Recorded, ...]:
    """Every run that the original finished."""
    if not gavel.GAVEL.exists():
        return ()
    return tuple(Recorded(row) for row in gavel.settings().filter(pl.col("status") == "ok").rows(named=True))


@cache
def _outcome(name: str) -> RoundOutcome:
    [run] = [run for run in runs() if run.id == name]
    return run.played(run.plan())


def recorded(folder: str) -> list[Recorded]:
    """The runs that a folder has a file for."""
    names = {path.stem for path in (gavel.GAVEL / folder).glob("*.parquet")}
    return [run for run in runs() if run.id in names]


class Replay:
    """A policy that answers what the original answered."""

    def __init__(self, run: Recorded) -> None:
        rows = pl.read_parquet(gavel.GAVEL / "replay" / f"{run.id}.parquet")
        self.answers = {key[0]: part for key, part in rows.partition_by("call", as_dict=True).items()}
        self.calls = 0

    def allocate(self, view: RoundView) -> Allocation | None:
        """The next recorded answer."""
        rows = self.answers.get(self.calls)
        self.calls += 1
        if rows is None:
            return None
        assert rows["time"][0] == view.now_s
        share = rows.select(view.setting.gpu_models).to_numpy()
        return Allocation(rows["job0"].to_numpy().astype(np.int64), rows["job1"].to_numpy().astype(np.int64), share)

    def state(self) -> dict[str, Any]:
        """Answers so far."""
        return {"calls": self.calls}

    def restore(self, state: Any) -> None:
        """Go on from there."""
        self.calls = state["calls"]
