"""Random small scenarios: mixed clusters, workloads with ties and departures, plans and options."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, replace
from typing import Any

import hypothesis.strategies as st
import polars as pl
import pyarrow as pa
from hypothesis.strategies import DrawFn, SearchStrategy

from fastsim.cluster.cluster import Cluster
from fastsim.engine.online.plan import (
    BACKFILL,
    DIMS,
    GPU_PICKS,
    NORMALISERS,
    NORMS,
    PREFERENCE_KERNELS,
    QUEUES,
    OnlinePlan,
    PodRequest,
    ScoreTerm,
)
from fastsim.hardware.model_catalog import Catalog, GpuModel
from fastsim.scenario.outages import Maintenance, Outages
from fastsim.scenario.run_rules import NO_RULES, Rules
from fastsim.scenario.sort_keys import SERVED, column_of, queue_key
from fastsim.workload import Workload
from fastsim.workload.schema import pod_schema
from fastsim.workload.typical_pods import TypicalPods
from tests.reference.online.frag import Fragmentation
from tests.reference.online.nodes import Node, empty_node, taken
from tests.reference.online.select import Selection
from tests.reference.online.tables import pods, shapes


def scenarios_per_run(many: int) -> int:
    """How many random scenarios a test tries: all when it explores, else a twelfth."""
    return many if os.environ.get("FASTSIM_EXPLORE") else max(1, many // 12)


LONG_S = 100.0
"""End of runs without one in which nodes fail at random: what needs longer than they hold begins again for ever."""
MODELS = ("T4", "G2", "V100M16", "Odd")
"""Models of the random clusters; the last one draws a fraction of a watt more when used."""
CATALOG = Catalog.default().extended(gpu={"Odd": GpuModel(idle_w=10.25, peak_w=10.75)})
DETERMINISTIC = ("dot_product", "gpu_clustering", "gpu_packing", "best_fit", "fgd", "pwr", "simon")
"""Kernels whose raw scores depend on nothing but node and pod."""
KERNELS = (*DETERMINISTIC, "random")
"""All kernels but the user's own."""
PLAIN_QUEUES = tuple(
    rule for rule in QUEUES if rule not in ("drf", *BACKFILL) and rule.removesuffix("_skip") not in SERVED
)
"""Queue rules that look at neither tenants nor durations nor what pods have had."""
OWN_QUEUES = (
    "column(value)_skip", "-column(value), -column(priority)", "column(slo), gpus, -column(deadline_s), arrival",
    "-column(deadline_s), finish_ratio", "remaining, -column(value)_skip",
)  # fmt: skip
"""Sort keys as queue rules."""
SECONDS = st.integers(0, 12).map(float)
"""Few distinct times, so that many events happen at once."""
POD_SCHEMA: dict[str, Any] = {
    "pod_id": pl.Int64, "submit_s": pl.Float64, "duration_s": pl.Float64, "cpu_milli": pl.Int64,
    "memory_mib": pl.Int64, "num_gpu": pl.Int16, "gpu_milli": pl.Int16, "gpu_models": pl.List(pl.String),
    "priority": pl.Int32, "native_id": pl.String, "bound_node": pl.String, "bound_gpus": pl.List(pl.Int16),
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class Scenario:
    """Everything one run needs."""

    cluster: Cluster
    workload: Workload
    plan: OnlinePlan
    typical: TypicalPods
    seed: int
    sample_s: float | None
    until_s: float | None
    rules: Rules = NO_RULES

    def __repr__(self) -> str:
        """The rows themselves, so that a failing example can be read."""
        tables = (self.cluster.nodes, self.workload.table())
        rows = ["\n".join(str(_filled(row)) for row in table.to_pylist()) for table in tables]
        options = f"seed={self.seed} sample_s={self.sample_s} until_s={self.until_s}"
        return "\n".join(["Scenario", *rows, str(self.plan), str(self.typical), options, str(self.rules)])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


def _filled(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


@dataclass(frozen=True)
class Situation:
    """One node at one moment, one pod that asks for it, and what decides."""

    node: Node
    pod: PodRequest
    plan: OnlinePlan
    typical: TypicalPods


@st.composite
def node_rows(draw: DrawFn, churn: bool) -> dict[str, Any]:
    """One kind of node; with ``churn`` it may appear or disappear during the run."""
    gpus = draw(st.sampled_from((2, 1, 4, 2, 8, 0, 2, 11)))
    add_s = draw(_seldom(SECONDS)) if churn else None
    stays = draw(_seldom(st.integers(1, 8))) if churn else None
    return {
        "cpu_milli": draw(st.sampled_from((8000, 32_000, 9500, 16_000, 96_000, 140_000, 8000, 2000))),
        "memory_mib": draw(st.sampled_from((262_144, 262_144, 8192, 262_144, 8192, 0))),
        "num_gpu": gpus,
        "gpu_model": draw(st.sampled_from(MODELS)) if gpus else None,
        "max_pods": draw(_seldom(st.integers(1, 4))),
        "gpu_peak_w": draw(_seldom(st.just(777.5))) if gpus else None,
        "cpu_idle_w": draw(_seldom(st.just(0.4))),
        "cpu_model": draw(_seldom(st.just("Intel-Xeon-8369B"))),
        "cpu_cores_per_socket": draw(_seldom(st.just(3))),
        "add_s": add_s,
        "remove_s": None if stays is None else (add_s or 0.0) + stays,
    }


def _seldom(values: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """Mostly nothing."""
    return st.integers(0, 3).flatmap(lambda n: values if n == 3 else st.none())


@st.composite
def clusters(draw: DrawFn, churn: bool = True, sizes: tuple[int, ...] = (2, 3, 4, 2, 5, 8)) -> Cluster:
    """A few nodes of at most 4 kinds, so that ties are common."""
    kinds = draw(st.lists(node_rows(churn), min_size=1, max_size=4))
    rng, size = draw(_dice()), draw(st.sampled_from(sizes))
    return Cluster.mix([(1, {"name": f"n{i}", **rng.choice(kinds)}) for i in range(size)], catalog=CATALOG)


def _dice() -> SearchStrategy[random.Random]:
    """A seeded generator, for long rows of small choices that need not shrink one by one."""
    return st.integers(0, 2**32).map(random.Random)


SHARES = tuple((1, milli) for milli in (330, 500, 1000, 100, 999, 1, 700, 600))
"""Requests for at most one device: (devices, milli-GPU of each)."""


@st.composite
def requests(draw: DrawFn, cluster: Cluster) -> dict[str, Any]:
    """What a pod asks for: nothing, CPU only, a part of a device, or whole devices; seldom too much."""
    largest = {name: max(cluster.nodes[name].to_pylist()) for name in ("cpu_milli", "memory_mib", "num_gpu")}
    present = sorted({model for model in cluster.nodes["gpu_model"].to_pylist() if model})
    whole = tuple((n, 1000) for n in (2, 4, 8, 9) if n <= largest["num_gpu"])
    gpus, milli = draw(st.sampled_from((*SHARES, (0, 0), *whole) if largest["num_gpu"] else ((0, 0),)))
    amounts = (500, 1999, 2000, 4000, 7000, 0, 8000, 9500, 30_000)
    cpu = st.sampled_from([amount for amount in amounts if amount <= largest["cpu_milli"]])
    memory = st.sampled_from([amount for amount in (0, 2048, 100, 4000, 60_000) if amount <= largest["memory_mib"]])
    models = st.lists(st.sampled_from((*present, *present, "Unheard")), min_size=1, max_size=3)
    request = {
        "cpu_milli": draw(cpu),
        "memory_mib": draw(memory),
        "num_gpu": gpus,
        "gpu_milli": milli,
        "gpu_models": draw(_seldom(models)),
        "priority": draw(st.sampled_from((None, 0, 1, -2))),
    }
    return request | (draw(_seldom(_seldom(st.sampled_from(TOO_MUCH)))) or {})


TOO_MUCH: tuple[dict[str, Any], ...] = (
    {"cpu_milli": 200_000}, {"memory_mib": 300_000}, {"num_gpu": 12, "gpu_milli": 1000},
)  # fmt: skip
"""Requests no node of any random cluster can host."""


@st.composite
def workloads(draw: DrawFn, cluster: Cluster, departures: bool = True, most: int = 40, bound: bool = False) -> Workload:
    """5 to ``most`` pods of at most 8 classes, many at the same time; if ``bound`` some may be on nodes already."""
    classes = draw(st.lists(requests(cluster), min_size=2, max_size=8))
    rng, size = draw(_dice()), draw(st.sampled_from((most, most // 2, 5)))
    submit = sorted(rng.choice(range(13)) for _ in range(size))
    ends = (None, None, 0.0, 0.5, 2.0, 3.0, 7.0, 7.0) if departures else (None,)
    gap = draw(st.sampled_from((1, 3)))
    rows = [
        rng.choice(classes)
        | {"pod_id": 7 + gap * i, "submit_s": float(t), "duration_s": rng.choice(ends), "native_id": f"pod-{i}"}
        for i, t in enumerate(submit)
    ]
    if bound and draw(st.booleans()):
        nodes = cluster.nodes.select(["name", "num_gpu"]).to_pylist()
        rows = [row | _place(rng, row["num_gpu"], nodes) if rng.random() < 0.4 else row for row in rows]
    return Workload.from_arrow(pl.DataFrame(rows, schema=POD_SCHEMA).select(draw(_column_sets())))


def _place(rng: random.Random, count: Any, nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """A node that a pod is on when it arrives, sometimes with its devices there; there may be no room."""
    node = rng.choice(nodes)
    known = count <= node["num_gpu"] and rng.random() < 0.6
    gpus = sorted(rng.sample(range(node["num_gpu"]), count)) if known else None
    return {"bound_node": node["name"], "bound_gpus": gpus}


def _column_sets() -> SearchStrategy[list[str]]:
    """All columns, or all but one of the optional ones."""
    optional = ("native_id", "priority", "gpu_models", "duration_s", "bound_gpus")
    return st.sampled_from([list(POD_SCHEMA)] * 6 + [[c for c in POD_SCHEMA if c != left_out] for left_out in optional])


@st.composite
def sortable(draw: DrawFn, workload: Workload, queue: str) -> Workload:
    """The same pods with values in the columns that a queue rule may read, here and there; as they are for others."""
    if not any(map(column_of, queue_key(queue))):
        return workload
    rng, rows = draw(_dice()), workload.table().to_pylist()
    for row in rows:
        late_s = rng.choice((None, 0.0, 1.0, 5.0, 20.0))
        row |= {"deadline_s": None if late_s is None else row["submit_s"] + late_s, "slo": rng.choice((None, 1.0, 3.0)),
                "native_value": rng.choice((None, "0", "-1.5", "7", "1e2"))}  # fmt: skip
    schema = pod_schema([*workload.columns, "deadline_s", "slo", "native_value"])
    return Workload.from_arrow(pa.Table.from_pylist(rows, schema))


@st.composite
def terms(draw: DrawFn, kernels: tuple[str, ...] = KERNELS) -> ScoreTerm:
    """One weighted score."""
    return ScoreTerm(
        draw(st.sampled_from(kernels)),
        weight=draw(st.sampled_from((1, 1, 3, 100, 900, 0, -2))),
        normalise=draw(st.sampled_from(NORMALISERS)),
        dim=draw(st.sampled_from(DIMS)),
        norm=draw(st.sampled_from(NORMS)),
    )


@st.composite
def plans(draw: DrawFn, queues: tuple[str, ...] = PLAIN_QUEUES, kernels: tuple[str, ...] = KERNELS) -> OnlinePlan:
    """One to three scores and every way to pick devices and to queue."""
    return OnlinePlan(
        tuple(draw(st.lists(terms(kernels), min_size=1, max_size=3))),
        gpu_pick=draw(st.sampled_from(GPU_PICKS)),
        gpu_dim=draw(st.sampled_from(DIMS)),
        gpu_norm=draw(st.sampled_from(NORMS)),
        queue=draw(st.sampled_from(queues)),
    )


@st.composite
def typicals(draw: DrawFn, workload: Workload) -> TypicalPods:
    """Typical pods of the workload itself, with any options."""
    return TypicalPods.of(
        workload,
        threshold=draw(st.sampled_from((95, 100, 50, 1))),
        step=draw(st.sampled_from((1, 1, 3))),
        cpu_pods=draw(st.sampled_from((True, True, True, False))),
        gpu_weight=draw(st.sampled_from((0, 0, 2))),
    )


@st.composite
def scenarios(
    draw: DrawFn, churn: bool = True, departures: bool = True, queues: tuple[str, ...] = PLAIN_QUEUES,
    kernels: tuple[str, ...] = KERNELS, horizon: bool = True, sizes: tuple[int, ...] = (2, 3, 4, 2, 5, 8),
    most: int = 40, bound: bool = False,
) -> Scenario:  # fmt: skip
    """A whole random run."""
    cluster = draw(clusters(churn, sizes))
    workload = draw(workloads(cluster, departures=departures, most=most, bound=bound))
    plan = draw(plans(queues, kernels))
    return Scenario(
        cluster=cluster,
        workload=draw(sortable(workload, plan.queue)),
        plan=plan,
        typical=draw(typicals(workload)),
        seed=draw(st.sampled_from((0, 1, 42, 2**40))),
        sample_s=draw(_seldom(st.sampled_from((0.1, 1.0, 2.5)))),
        until_s=draw(_seldom(st.sampled_from((4.0, 9.0)))) if horizon else None,
    )


@st.composite
def situations(draw: DrawFn) -> Situation:
    """One node of a random cluster, used by pods of a random workload until some point."""
    cluster = draw(clusters(churn=False))
    workload = draw(workloads(cluster))
    plan, asked = draw(plans()), [pod.request for pod in pods(workload)]
    typical = draw(typicals(workload))
    node = empty_node(shapes(cluster)[0])
    select = Selection(OnlinePlan((), gpu_pick="random"), Fragmentation(typical), seed=draw(st.integers(0, 99)))
    for pod in asked[: draw(st.integers(0, len(asked) - 1))]:
        choice = select.choose([node], pod)
        if choice.position is not None:
            node = taken(node, pod, choice.devices)
    return Situation(node, asked[-1], plan, typical)


TENANTS = ("anna", "bert", "cleo", None)
CONSTRAINTS: tuple[dict[str, Any], ...] = (
    {"key": "zone", "op": "In", "values": ["a", "b"]}, {"key": "zone", "op": "NotIn", "values": ["a"]},
    {"key": "disk", "op": "Exists", "values": None}, {"key": "disk", "op": "DoesNotExist", "values": []},
    {"key": "rack", "op": "Gt", "values": ["1"]}, {"key": "rack", "op": "Lt", "values": ["2"]},
    {"key": "name", "op": "NotIn", "values": ["n0-0000"]},
)  # fmt: skip
LABELS = (None, [("zone", "a")], [("zone", "b"), ("rack", "2"), ("image:x", "900000000")],
          [("rack", "1"), ("disk", ""), ("image:x", "900000000"), ("image:y", "400000000")])  # fmt: skip
LAYOUTS = ("7*1g.10gb", "3g.40gb+2g.20gb+2*1g.10gb", "3g.40gb+1g.10gb")
SPREADS: tuple[list[dict[str, Any]], ...] = (
    [{"pods": "a", "topology": "name", "max_skew": 1, "min_domains": 1, "counted": []}],
    [{"pods": "b", "topology": "zone", "max_skew": 1, "min_domains": 2, "counted": [CONSTRAINTS[3]]},
     {"pods": "a", "topology": "name", "max_skew": 2, "min_domains": None, "counted": None}],
)  # fmt: skip
NEARS: tuple[list[dict[str, str]], ...] = (
    [{"rule": "apart", "pods": "a", "topology": "zone"}], [{"rule": "beside", "pods": "a", "topology": "zone"}],
    [{"rule": "beside", "pods": "b", "topology": "name"}, {"rule": "kept_away", "pods": "a", "topology": "name"}],
    [{"rule": "ports", "pods": "a", "topology": "name"}, {"rule": "ports", "pods": "b", "topology": "name"}],
    [{"rule": "beside", "pods": "a", "topology": "zone"}, {"rule": "beside", "pods": "a", "topology": "name"}],
)  # fmt: skip


def _preference(rule: str, weight: int, pods: str | None = None, topology: str | None = None, **more: Any) -> Any:
    blank = {"max_skew": None, "nodes": None}
    return {"rule": rule, "weight": weight, "pods": pods, "topology": topology, **blank, **more}


LIKINGS: tuple[list[dict[str, Any]], ...] = (
    [_preference("labels", 7, nodes=[CONSTRAINTS[0]]), _preference("labels", 90, nodes=[CONSTRAINTS[2]]),
     _preference("image", 2, topology="image:x"), _preference("image", 1, topology="image:y")],
    [_preference("taint", 1, nodes=[CONSTRAINTS[4]]), _preference("near", -30, "a", "zone"),
     _preference("near", 100, "b", "name"), _preference("taint", 1, nodes=[CONSTRAINTS[0]])],
    [_preference("spread", 1, "a", "zone", max_skew=2, nodes=[CONSTRAINTS[3]]), _preference("required", 1, "a", "rack"),
     _preference("spread", 1, "b", "name", max_skew=1)],
    [_preference("spread", 1, "a", "zone", max_skew=1), _preference("labels", 1, nodes=[CONSTRAINTS[6]])],
)  # fmt: skip
CONDITIONS = (
    "gpu_memory_mib", "extra_resources", "mig", "constraints", "pinned_node", "spread", "spread_sets", "near", "group",
    "max_per_node",
)  # fmt: skip
SPREAD = ("spread", "spread_sets", "near")
PREFERRING = ("preferences", "preference_sets")
RULES = ("tenant", "preemptible", "preempts", "budgets", "est_duration_s")
BUDGETS = (
    [{"name": "a", "least": 1}],
    [{"name": "a", "least": 1}, {"name": "b", "least": 3}],
    [{"name": "b", "least": 3}],
)


def _conditions(rng: random.Random, names: list[str]) -> dict[str, Any]:
    """Further requests, each of them seldom."""
    options: dict[str, Any] = {
        "gpu_memory_mib": (8, 16, 5), "extra_resources": ([("nic", 1)], [("nic", 2), ("fpga", 1)], [("nic", 0)]),
        "constraints": ([one] for one in CONSTRAINTS), "pinned_node": names,
        "mig": ("1g.10gb", "2*1g.10gb+3g.40gb", "2g.20gb", "1g.10gb"),
        "spread": SPREADS, "spread_sets": (["a"], ["a", "b"], ["b"]), "near": NEARS,
        "preferences": LIKINGS, "preference_sets": (["a"], ["a", "b"], ["b"]),
    }  # fmt: skip
    return {name: rng.choice([None, None, None, *values]) for name, values in options.items()}


def _partition(rng: random.Random, gpus: int) -> dict[str, str]:
    """A model that can be partitioned, and layouts for all of its GPUs or for some."""
    layouts = [rng.choice((*LAYOUTS, "")) for _ in range(gpus)]
    return {"gpu_model": "A100", "mig": rng.choice((*LAYOUTS, ";".join(layouts)))}


@st.composite
def labelled(draw: DrawFn, cluster: Cluster) -> Cluster:
    """The same nodes with labels, device memory, further resources and partitioned GPUs, here and there."""
    rng = draw(_dice())
    rows = [
        row | {
            "gpu_memory_mib": rng.choice((None, 16, 24)) if row["num_gpu"] else None,
            "labels": rng.choice(LABELS),
            "extra_resources": rng.choice((None, [("nic", 2)], [("nic", 1), ("fpga", 1)])),
            **(_partition(rng, row["num_gpu"]) if row["num_gpu"] and rng.random() < 0.5 else {}),
        }
        for row in cluster.nodes.to_pylist()
    ]  # fmt: skip
    return Cluster(pa.Table.from_pylist(rows, cluster.nodes.schema), CATALOG)


@st.composite
def demanding(draw: DrawFn, workload: Workload, names: list[str], gangs: bool, columns: tuple[str, ...]) -> Workload:
    """The same pods with further columns, here and there; gangs are sometimes incomplete at the end."""
    rng, rows = draw(_dice()), workload.table().to_pylist()
    classes = [_conditions(rng, names) for _ in range(4)]
    jobs = [(job, rng.choice((2, 2, 3, 4))) for job in range(3)]
    for row in rows:
        row |= rng.choice([{}, {}, *classes])
        group, most = rng.choice((None, "g", "h")), rng.choice((None, None, 1, 2))
        row |= {"tenant": rng.choice(TENANTS), "preemptible": rng.choice((None, True, False)),
                "preempts": rng.choice((None, None, True, False)), "budgets": rng.choice((None, None, *BUDGETS)),
                "group": group, "max_per_node": most if group else None,
                "est_duration_s": rng.choice((None, None, row.get("duration_s"), 1.0, 5.0)),
                "priority": rng.choice((None, 0, 1, 2, 3, -1))}  # fmt: skip
        if gangs and rng.random() < 0.4:
            row["job_id"], row["gang_size"] = rng.choice(jobs)
        elif gangs and rng.random() < 0.4:
            row["job_id"], row["after_gang"] = rng.choice(jobs)[0], True
    kept = [*workload.columns, *columns, *(("job_id", "gang_size", "after_gang") if gangs else ()), "priority"]
    schema = pod_schema(kept)
    return Workload.from_arrow(pa.Table.from_pylist(rows, schema))


@st.composite
def regimes(draw: DrawFn, queue: str, names: list[str]) -> Rules:
    """Any rules that have a meaning together with a queue rule."""
    rng = draw(_dice())
    windows = [Maintenance(rng.choice(names), t, t + rng.choice((1.0, 2.0, 5.0))) for t in (1.0, 3.0, 6.0)]
    quota = {"gpu_milli": rng.choice((500, 1000, 3000)), "cpu_milli": rng.choice((4000, 16_000))}
    losses = ("lost",) if queue == "drop" else ("requeue",) if queue.startswith(SERVED) else ("lost", "requeue")
    mtbf_s, mttr_s = rng.choice(((None, None), (None, None), (8.0, 2.0), (1.5, 0.7)))
    return Rules(
        preempt=rng.choice(("none", "priority", "priority")) if queue not in BACKFILL else "none",
        on_node_loss=rng.choice(losses),
        checkpoint_every_s=rng.choice((None, 0.0, 1.0, 0.7)),
        restart_s=rng.choice((0.0, 0.0, 0.5, 3.0)),
        quotas=rng.choice(({}, {"anna": quota}, {"anna": quota, "*": {"memory_mib": 8000}}, {"": {"gpu_milli": 500}})),
        weights=rng.choice(({}, {"anna": 2.0, "": 0.3})),
        outages=Outages(mtbf_s, mttr_s, tuple(rng.sample(windows, rng.choice((0, 0, 1, 3))))),
    )  # fmt: skip


@st.composite
def crowds(draw: DrawFn, queues: tuple[str, ...], bound: bool = False) -> Scenario:
    """Many pods of all sizes on two or three nodes of two devices; if ``bound`` some may be there already."""
    main, rng = draw(scenarios(queues=queues)), draw(_dice())
    shape = {"cpu_milli": 8000, "memory_mib": 8192, "num_gpu": 2, "gpu_model": "T4"}
    rows = [
        {"pod_id": i, "submit_s": float(t), "duration_s": rng.choice((1.0, 2.0, 3.0, 5.0, 8.0, None)),
         "cpu_milli": rng.choice((500, 1000, 3000, 6000, 8000)), "memory_mib": rng.choice((0, 1000, 4000)),
         **rng.choice(({"num_gpu": 0, "gpu_milli": 0}, {"num_gpu": 1, "gpu_milli": rng.choice((300, 700, 1000))},
                       {"num_gpu": 2, "gpu_milli": 1000}))}
        for i, t in enumerate(sorted(rng.choice(range(13)) for _ in range(40)))
    ]  # fmt: skip
    cluster = Cluster.mix([(rng.choice((2, 3)), {"name": "n", **shape})], catalog=CATALOG)
    nodes = cluster.nodes.select(["name", "num_gpu"]).to_pylist()
    if bound and draw(st.booleans()):
        rows = [row | _place(rng, row["num_gpu"], nodes) if rng.random() < 0.2 else row for row in rows]
    workload = draw(sortable(Workload.from_arrow(pl.DataFrame(rows, schema=POD_SCHEMA)), main.plan.queue))
    return replace(main, cluster=cluster, workload=workload, typical=draw(typicals(workload)))


@st.composite
def ruled(
    draw: DrawFn, queues: tuple[str, ...] = QUEUES, gangs: bool = True, crowded: bool = False, bound: bool = False,
    spread: bool = False, preferring: bool = False,
) -> Scenario:  # fmt: skip
    """A whole random run with everything that is off by default, each of it in some runs only.

    Where it is ``crowded`` the line is long, because all pods run for some time on few small nodes. With ``spread``
    pods have rules of spread and no other conditions, and where they are ``preferring`` scores of preferences decide.
    """
    main = draw(crowds(queues, bound) if crowded else scenarios(queues=queues, bound=bound))
    queue = main.plan.queue
    cluster = draw(labelled(main.cluster)) if preferring or draw(st.booleans()) else main.cluster
    names = cluster.nodes["name"].to_pylist()
    conditions = SPREAD if spread else draw(st.sampled_from(((), CONDITIONS, CONDITIONS[:1], CONDITIONS[-2:], SPREAD)))
    together = gangs and queue not in BACKFILL and draw(st.booleans())
    likes = PREFERRING if preferring or draw(st.booleans()) else ()
    workload = draw(demanding(main.workload, names, together, (*conditions, *likes, *RULES)))
    rules = draw(regimes(queue, names))
    until_s = LONG_S if main.until_s is None and rules.outages.mtbf_s is not None else main.until_s
    scores = draw(st.lists(st.sampled_from(PREFERENCE_KERNELS), min_size=1, unique=True)) if likes else ()
    own = () if preferring else main.plan.terms
    plan = replace(main.plan, terms=(*own, *map(ScoreTerm, scores, (1, 200, 3, 40, 5))))
    return replace(main, cluster=cluster, workload=workload, rules=rules, until_s=until_s, plan=plan)
