"""Small random runs of every engine, as scenarios of objects: pods with every rule, and jobs under every policy."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import polars as pl

import fastsim as fs
from fastsim.engine.online.plan import BACKFILL, QUEUES
from fastsim.policies import registry
from fastsim.scenario.outages import Maintenance
from fastsim.scenario.sort_keys import SERVED
from fastsim.workload import Workload
from tests.property.test_audit import engine_of, of_objects
from tests.strategies import LABELS, LONG_S, SHARES, TENANTS

SUMS = ("0.9*fgd + 0.1*pwr", "best_fit + gpu_packing", "dot_product(dim=share)", "fgd(gpu_pick=worst)")
"""Policies for pods beside those that have a name."""
ENDS_S = (None, 0.0, 0.5, 1.0, 2.0, 3.0, 3.0, 7.0)
"""Durations of pods; few distinct ones, so that events happen at once."""


@cache
def policies_of(engine: str) -> list[str]:
    """The policies that this engine plays; those that need a function or readings are others' matter."""
    return [name for name in registry.names() if engine_of(name) == engine and name not in ("python", *WATCHED)]


CHEAPER: dict[str, dict[str, Any]] = {"pollux": {"policy": "pollux(generations=5)", "round_s": 240.0}}
"""Options of runs whose searches would take a minute, by policy."""
WATCHED = ("coolest", "least_power", "least_utilised", "most_free_memory")
"""Policies that place pods by readings."""


def scenario_of(engine: str, draw: random.Random) -> fs.Scenario:
    """A run of this engine."""
    if engine == "pods":
        return pods(draw)
    name = draw.choice(policies_of(engine))
    scenario = of_objects(name, draw)
    return scenario.with_(until_s=None, **CHEAPER.get(name, {}))


def pods(draw: random.Random) -> fs.Scenario:
    """Up to fourteen pods with any queue and rules on up to five nodes."""
    cluster = fs.Cluster.mix([(1, _node(place, draw)) for place in range(draw.randint(1, 5))])
    queue = draw.choice(QUEUES)
    frame = pl.DataFrame([_pod(place, draw) for place in range(draw.randint(1, 14))], infer_schema_length=None)
    frame = frame.with_columns(pod_id=3 + 2 * pl.int_range(pl.len()), submit_s=pl.col("submit_s").sort())
    if queue in BACKFILL or draw.random() < 0.6:
        frame = frame.drop("job_id", "gang_size")
    return fs.Scenario(
        cluster, Workload.from_polars(_whole_gangs(frame), origin="keep"),
        draw.choice((*policies_of("pods"), *SUMS)), seed=draw.randrange(9), queue=queue,
        **_rules(queue, cluster.nodes.column("name").to_pylist(), draw),
    )  # fmt: skip


def _node(place: int, draw: random.Random) -> dict[str, Any]:
    gpus = draw.choice((0, 1, 2, 2, 4))
    add_s = draw.choice((None, None, None, 3.0))
    return {
        "name": f"n{place}", "cpu_milli": draw.choice((8000, 16_000)), "memory_mib": draw.choice((8192, 60_000)),
        "num_gpu": gpus, "gpu_model": draw.choice(("T4", "G2")) if gpus else None, "labels": draw.choice(LABELS),
        "add_s": add_s, "remove_s": draw.choice((None, None, None, (add_s or 0) + 6.0)),
    }  # fmt: skip


def _pod(place: int, draw: random.Random) -> dict[str, Any]:
    gpus, milli = draw.choice((*SHARES, (0, 0), (2, 1000), (4, 1000)))
    duration_s = draw.choice(ENDS_S)
    gang = draw.choice((None, None, None, 1, 2))
    return {
        "deadline_s": draw.choice((None, 20.0 + draw.randrange(9))),
        "submit_s": draw.randrange(13) + draw.choice((0.0, 0.0, 1 / 64)), "duration_s": duration_s, "num_gpu": gpus,
        "gpu_milli": milli, "cpu_milli": draw.choice((0, 500, 1999, 4000, 8000)),
        "memory_mib": draw.choice((0, 100, 4000)), "priority": draw.choice((None, 0, 1, 3, -1)),
        "tenant": draw.choice(TENANTS), "preemptible": draw.choice((None, True, False)),
        "est_duration_s": draw.choice((None, duration_s, 1.0, 5.0)), "native_id": f"pod-{place}",
        "gpu_models": draw.choice((None, None, None, ["T4"], ["G2", "T4"])),
        "job_id": gang, "gang_size": None if gang is None else 2,
    }  # fmt: skip


def _whole_gangs(frame: pl.DataFrame) -> pl.DataFrame:
    """The pods without those of a gang that has more members than it says, or fewer."""
    if "job_id" not in frame.columns:
        return frame
    members = pl.col("pod_id").count().over("job_id")
    kept = pl.col("job_id").is_not_null() & (members == 2)
    return frame.with_columns(pl.when(kept).then(pl.col(name)).alias(name) for name in ("job_id", "gang_size"))


def _rules(queue: str, names: list[str], draw: random.Random) -> dict[str, Any]:
    """Rules that have a meaning together with a queue rule."""
    quota = {"gpu_milli": draw.choice((500, 1000, 3000)), "cpu_milli": draw.choice((4000, 16_000))}
    losses = ("lost",) if queue == "drop" else ("requeue",) if queue.startswith(SERVED) else ("lost", "requeue")
    failures = draw.choice(("", "", "mtbf=8,mttr=2"))
    windows = [Maintenance(draw.choice(names), at, at + draw.choice((1.0, 5.0))) for at in (1.0, 6.0)]
    return {
        "preempt": "none" if queue in BACKFILL else draw.choice(("none", "priority")),
        "on_node_loss": draw.choice(losses), "checkpoint_every_s": draw.choice((None, 0.5, 1.0)),
        "restart_s": draw.choice((0.0, 0.0, 0.5, 3.0)), "failures": failures,
        "quotas": draw.choice(({}, {}, {"anna": quota}, {"anna": quota, "*": {"memory_mib": 8000}})),
        "weights": draw.choice(({}, {"anna": 2.0, "bert": 0.5})),
        "maintenance": draw.choice((None, None, tuple(windows[:1]))), "sample_s": draw.choice((None, None, 1.0)),
        "until_s": LONG_S if failures else draw.choice((None, None, 9.0)),
    }  # fmt: skip
