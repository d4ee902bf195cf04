"""The recorded calls of Gavel's policies: their rates, their jobs and their answers, as ours.

Nothing here names a call: scenarios and policies are the names of the files, and what a call knew of its cluster
stands in the recording.
"""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from fastsim.engine.rounds.options import Setting
from fastsim.engine.shares.plan import Allocation, Floats, RoundView
from fastsim.performance.oracle import Oracle
from fastsim.policies import registry
from fastsim.policies.registry import ORIGINAL_NAMES
from tests.conftest import SHARED

GAVEL = SHARED / "golden/gavel"
KIND = re.compile(r"\('(.*)', (\d+)\)")
FASTEST = "v100"
"""The model whose rates the original takes where it does not look at GPU models."""


@dataclass(frozen=True)
class Call:
    """One recorded call of a policy."""

    policy: str
    scenario: str
    meta: dict[str, Any]
    jobs: pl.DataFrame
    answer: pl.DataFrame

    @property
    def view(self) -> RoundView:
        """What our policy sees in this call."""
        return view_of_snapshot(self.meta, self.jobs)


@cache
def golden_oracle(name: str = "simulation_throughputs") -> Oracle:
    """The rates of one recorded table, on all its GPU models sorted by name."""
    known = json.loads((GAVEL / f"oracle/{name}.json").read_text())
    models = sorted(model for model in known if not model.endswith("_unconsolidated"))
    kinds = sorted({kind for model in models for kind in known[model]})
    position = {kind: index for index, kind in enumerate(kinds)}
    alone = np.full((len(kinds), len(models)), np.nan)
    shared = np.full((len(kinds), len(kinds), len(models)), np.nan)
    for g, model in enumerate(models):
        for kind, others in known[model].items():
            for other, rate in others.items():
                if other == "null":
                    alone[position[kind], g] = rate
                else:
                    shared[position[kind], position[other], g] = rate[0]
    return Oracle(tuple(kind_of(kind) for kind in kinds), tuple(models), alone, shared, name)


def kind_of(text: str) -> tuple[str, int]:
    """Workload and number of GPUs of a kind's name in the table."""
    found = KIND.fullmatch(text)
    assert found is not None, text
    return found[1], int(found[2])


def golden_setting(gpus: dict[str, int], seed: int = 0, oracle: str = "simulation_throughputs") -> Setting:
    """A cluster of so many GPUs of each model."""
    rates = golden_oracle(oracle)
    models = tuple(sorted(gpus))
    best = rates.alone__kg[:, rates.gpu_models.index(FASTEST)]
    return Setting(models, np.array([gpus[model] for model in models]), rates.restricted(models), best, seed)


def view_of_snapshot(meta: dict[str, Any], jobs: pl.DataFrame, seed: int = 0) -> RoundView:
    """What a policy sees in a recorded call."""
    setting = golden_setting(meta["cluster"], seed)
    now_s = float(meta["time"])
    index = setting.oracle.kind_index
    kinds = [index[kind] for kind in jobs.select("job_type", "scale_factor").iter_rows()]
    price = meta.get("instance_costs") or {}
    return RoundView(
        setting, now_s, jobs["job_id"].to_numpy(), np.array(kinds, np.int64), jobs["scale_factor"].to_numpy(),
        floats(jobs["priority_weight"], 1.0), now_s - floats(jobs["time_since_start"], 0.0),
        floats(jobs["num_steps_remaining"], 1.0), now_s + floats(jobs["slo_remaining_s"], np.inf),
        np.array([price.get(model, 0.0) for model in setting.gpu_models]),
    )  # fmt: skip


def floats(column: pl.Series, missing: float) -> Floats:
    """A recorded column as numbers."""
    return np.array(column.cast(pl.Float64).fill_null(missing).to_numpy())


@cache
def recordings(prefix: str) -> list[str]:
    """Names ``scenario__policy`` of recorded calls of policies whose name starts with ``prefix``."""
    found = (path.name.removesuffix(".meta.json") for path in (GAVEL / "lp").glob("*.meta.json"))
    return sorted(name for name in found if name.partition("__")[2].startswith(prefix))


@cache
def calls(name: str) -> list[Call]:
    """The recorded calls of one scenario and policy, in order."""
    scenario, _, policy = name.partition("__")
    inputs = pl.read_parquet(GAVEL / f"lp/{name}.inputs.parquet").partition_by("snap", as_dict=True)
    answers = pl.read_parquet(GAVEL / f"lp/{name}.alloc.parquet").partition_by("snap", as_dict=True)
    meta = json.loads((GAVEL / f"lp/{name}.meta.json").read_text())
    return [
        Call(policy, scenario, told, inputs[(told["snap"],)].sort("job_id"), answers[(told["snap"],)]) for told in meta
    ]


def recorded_allocation(call: Call) -> Allocation:
    """The original's answer as ours."""
    rows = call.answer.sort(pl.col("job1") >= 0, "job0", "job1")
    shares = rows.select(sorted(call.meta["cluster"])).to_numpy()
    return Allocation(rows["job0"].to_numpy(), rows["job1"].to_numpy(), np.array(shares))


def round_policy(name: str, **parameters: object) -> Any:
    """Our policy for one of the original's names, some parameters replaced."""
    policy: Any = registry.parse(ORIGINAL_NAMES[name])
    if parameters.get("solution") == "vertex" and hasattr(policy, "program_compat"):
        parameters["program_compat"] = False  # the published program has no corners
    return dataclasses.replace(policy, **parameters)
