"""Every pod column under every engine: it changes the result, is refused, is named in a warning, or describes a pod."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.cluster.cluster import Cluster
from fastsim.errors import FastsimError
from fastsim.policies.orders import Order
from fastsim.simulation.fifo_pool import simulate_pool
from fastsim.simulation.uses.cells import DESCRIBES, ENGINES, IGNORED, REFUSED, USED, cells
from fastsim.simulation.uses.columns import CONDITIONS, COUNTED, NEUTRAL, ColumnFacts, UnusedColumns
from fastsim.telemetry import usage_profile
from fastsim.telemetry.telemetry import Telemetry
from fastsim.telemetry.usage_profile import Phase, Profile
from fastsim.workload.schema import POD_SCHEMA

Columns = Mapping[str, Any]
N = 6
PODS: Columns = {
    "pod_id": list(range(N)), "submit_s": [float(i) for i in range(N)], "duration_s": [100.0] * N,
    "cpu_milli": [0] * N, "memory_mib": [0] * N, "num_gpu": [1] * N, "gpu_milli": [1000] * N,
}  # fmt: skip
SPREAD = [{"pods": "all", "topology": "name", "max_skew": 1, "min_domains": None, "counted": None}]
NEAR = [{"rule": "apart", "pods": "all", "topology": "name"}]


def preference(rule: str, weight: int = 100, **more: Any) -> list[dict[str, Any]]:
    return [{"rule": rule, "weight": weight, "pods": None, "topology": None, "max_skew": None, "nodes": None, **more}]


SECOND = preference("labels", nodes=[{"key": "name", "op": "In", "values": ["node-1-0000"]}])
ELSEWHERE = preference("near", -100, pods="all", topology="name")
OTHER: Columns = {
    "pod_id": [2 * i for i in range(N)], "submit_s": [10.0 * i for i in range(N)], "duration_s": [40.0] * N,
    "cpu_milli": [3000] * N, "memory_mib": [3000] * N, "num_gpu": [2] * N, "gpu_milli": [500] * N,
    "gpu_memory_mib": [20_000] * N, "gpu_models": [["v100"]] * N, "job_id": [0, 1, 2, 0, 1, 2], "gang_size": [2] * N,
    "after_gang": [False, False, True, False, False, False],
    "task_role": ["worker"] * N, "qos": ["LS"] * N, "priority": list(range(N)), "preemptible": [False] * N,
    "preempts": [False] * N, "budgets": [[{"name": "b", "least": 1}], *[None] * (N - 1)],
    "tenant": ["a", "a", "a", "a", "a", "b"], "group": ["a", "b"] * 3, "max_per_node": [1] * N, "spread": [SPREAD] * N,
    "spread_sets": [["all"], ["none"]] * 3, "near": [NEAR] * N,
    "preferences": [SECOND] * N, "preference_sets": [["all"], ["none"]] * 3,
    "extra_resources": [[("nic", 1)]] * N, "mig": ["1g.10gb"] * N,
    "constraints": [[{"key": "name", "op": "In", "values": ["node-0-0000"]}]] * N, "pinned_node": ["node-1-0000"] * N,
    "bound_node": ["node-1-0000", *[None] * (N - 1)], "bound_gpus": [[1], *[None] * (N - 1)], "workload": ["w"] * N,
    "batch_size": [32] * N, "total_work": [50.0] * N, "min_replicas": [1] * N, "max_replicas": [2] * N,
    "deadline_s": [150.0] * N, "slo": [1.5] * N, "weight": [1.0, 9.0] * 3, "est_duration_s": [100.0, 400.0, 50.0] * 2,
    "orig_start_s": [5.0] * N, "orig_end_s": [9.0] * N, "orig_status": ["done"] * N, "censored": [True] * N,
    "native_id": ["x"] * N, "native_job_id": ["x"] * N,
}  # fmt: skip
"""Other values of each column."""
BESIDE: dict[str, Columns] = {
    "gang_size": {"job_id": [0, 0, 1, 1, 2, 2]}, "max_per_node": {"group": ["a"] * N}, "group": {"group": ["a"] * N},
    "spread": {"spread_sets": [["all"]] * N}, "near": {"spread_sets": [["all"]] * N},
    "after_gang": {"job_id": [0, 0, 0, 1, 2, 3], "gang_size": [2, None, None, None, None, 2]},
    "bound_gpus": {"bound_node": OTHER["bound_node"]}, "preemptible": {"priority": list(range(N))},
    "preempts": {"priority": list(range(N))}, "budgets": {"priority": list(range(N))},
    "spread_sets": {"spread_sets": [["all"]] * N},
    "preference_sets": {"preferences": [ELSEWHERE] * N},
}  # fmt: skip
"""Columns that the tables with and without a column both have."""


RESNET = "ResNet-18 (batch size 16)"


class WeightFirst(Order):
    """The heaviest jobs first."""

    key = ("-weight", "arrival")


def with_memory(cluster: fs.Cluster) -> fs.Cluster:
    """The cluster with 16,000 MiB on every device."""
    memory = pa.array([16_000] * len(cluster), pa.int64())
    index = cluster.nodes.column_names.index("gpu_memory_mib")
    return fs.Cluster(cluster.nodes.set_column(index, "gpu_memory_mib", memory), cluster.catalog)


class Engine(NamedTuple):
    """A way to run: options of :func:`fastsim.simulate`, further columns of all tables, other values of columns."""

    options: dict[str, Any]
    columns: Columns = {}  # noqa: RUF012
    other: Columns = {}  # noqa: RUF012


NODE = {"num_gpu": 2, "cpu_milli": 4000, "memory_mib": 4000, "gpu_memory_mib": 16_000}
CLUSTER = fs.Cluster.mix(
    [(1, {"name": f"node-{place}", "gpu_model": model, **NODE}) for place, model in enumerate(("k80", "v100"))]
)
ONE_NODE = fs.Cluster.mix([(1, {"name": "node", "gpu_model": "v100", **NODE})])
SIA = with_memory(Cluster.from_text("sia:1:1:0"))
TYPICAL = fs.Workload.synth("openb", pods=20)
"""Fragmentation is measured with these, so that no column changes it."""
PROFILES = {"w": Profile("w", (Phase(float("inf"), 500.0, 90.0),)), **usage_profile.PROFILES}
RUNS: dict[str, Engine] = {
    "pods": Engine({"cluster": CLUSTER, "policy": "fgd", "queue": "fifo"}),
    "shares": Engine(
        {"cluster": CLUSTER, "policy": "max_min_fairness", "round_s": 10.0}, other={"workload": [RESNET] * N}
    ),
    "orders": Engine({"cluster": CLUSTER, "policy": WeightFirst(), "round_s": 10.0}, other={"workload": [RESNET] * N}),
    "adaptive": Engine(
        {"cluster": SIA, "policy": "sia"},
        {"workload": ["cifar10"] * N, "batch_size": [256] * N},
        {"workload": ["ncf"] * N, "batch_size": [512] * N, "task_role": ["rigid"] * N},
    ),
    "monitored": Engine(
        {
            "cluster": fs.Cluster.uniform(nodes=2, gpu="V100M32", gpus=1),
            "policy": "gpushare",
            "telemetry": Telemetry(10.0, profiles=PROFILES),
        },
    ),
    "pool": Engine({}),
}
MET: dict[str, tuple[dict[str, Any], Columns]] = {
    "priorities": ({"queue": "priority"}, {}), "preemption": ({"preempt": "priority"}, {}),
    "estimates": ({"queue": "easy", "cluster": ONE_NODE}, {"num_gpu": [1, 2, 1, 1, 1, 1]}),
    "gangs": ({}, {"gang_size": [2] * N, "job_id": [0, 0, 1, 1, 2, 2]}), "limits": ({}, {"max_per_node": [1] * N}),
    "preferred": ({"policy": "fgd + preferred"}, {}), "spreads": ({}, {"spread": [SPREAD] * N}), "durations": ({}, {}),
    "telemetry": ({"telemetry": Telemetry(10.0, profiles=PROFILES)}, {}),
    "deadlines": (
        {"queue": "edf", "cluster": ONE_NODE}, {"num_gpu": [2] * N, "deadline_s": [905, 904, None, None, 901, 900]},
    ),
    "counted": ({"policy": "fcfs+greedy"}, {}),
}  # fmt: skip
"""Options and columns with which a condition holds."""
UNMET: dict[str, Columns] = {"durations": {"duration_s": None}, "gangs": {"gang_size": None, "job_id": None},
                             "limits": {"max_per_node": None}, "spreads": {"spread": None}}  # fmt: skip


def table(columns: Columns) -> pa.Table:
    fields = [field for field in POD_SCHEMA if columns.get(field.name) is not None]
    return pa.table([pa.array(columns[field.name], field.type) for field in fields], pa.schema(fields))


def played(engine: str, options: Mapping[str, Any], columns: Columns) -> tuple[list[pl.DataFrame], list[str]]:
    """The tables of a run, and the texts of `ColumnIgnored`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if engine == "pool":
            frames = [simulate_pool(table(columns), gpus=4)]
        else:
            workload = fs.Workload.from_arrow(table(columns), name="w")
            result = fs.simulate(workload=workload, typical=TYPICAL, **options)
            names = ("jobs", "placements", "timeline", "summary", "telemetry")
            frames = [getattr(result, name) for name in names if name != "telemetry" or "telemetry" in options]
    return frames, [str(one.message) for one in caught if issubclass(one.category, fs.ColumnIgnored)]


PLAYED: dict[tuple[str, str], tuple[list[pl.DataFrame], list[str]]] = {}
"""Runs without other values, by engine and what they are made of."""


def played_once(engine: str, options: Mapping[str, Any], columns: Columns) -> tuple[list[pl.DataFrame], list[str]]:
    """The same of a run that many cases compare with."""
    key = (engine, repr((options, columns)))
    if key not in PLAYED:
        PLAYED[key] = played(engine, options, columns)
    return PLAYED[key]


def same(engine: str, before: list[pl.DataFrame], after: list[pl.DataFrame], without: Collection[str]) -> bool:
    """Whether two runs have the same figures, but for these columns themselves."""
    for one, two in zip(before, after, strict=True):
        own = [name for column in without for name in drop_of(one, column, engine)]
        if not one.drop(own).equals(two.drop([name for column in without for name in drop_of(two, column, engine)])):
            return False
    return True


def drop_of(frame: pl.DataFrame, column: str, engine: str) -> list[str]:
    """Columns of a table that repeat the column; the requested CPU and memory of orders are in their figures."""
    resource = column.partition("_")[0] + "_" if engine == "orders" and column in COUNTED else "\n"
    return [name for name in frame.columns if (name == column != "pod_id") or resource in name]


def unused(engine: str, use: str) -> list[str]:
    """Columns with this use in any run of an engine."""
    return [column for column, row in cells("columns").items() if row[engine] == (use, "", "")]


@pytest.mark.parametrize("engine", ENGINES)
def test_columns_that_an_engine_never_uses_change_nothing_and_are_named(engine: str) -> None:
    run, ignored, describing = RUNS[engine], unused(engine, IGNORED), unused(engine, DESCRIBES)
    plain = {**PODS, **run.columns}
    changed = {**plain, **{column: {**OTHER, **run.other}[column] for column in (*ignored, *describing)}}
    before, after = (played(engine, run.options, columns) for columns in (plain, changed))
    assert same(engine, before[0], after[0], (*ignored, *describing))
    [text] = after[1]
    assert set(re.findall(r"\w+", text)).intersection(POD_SCHEMA.names) == set(ignored)


def cases() -> list[tuple[str, str, str, str]]:
    """Column, engine, condition with a sign (+ holds, - does not, nothing without one) and the use, where there is one.

    Columns that are never used have a run together.
    """
    found = []
    for column, row in cells("columns").items():
        for engine, cell in row.items():
            if not cell.condition:
                if cell.use in (USED, REFUSED):
                    found.append((column, engine, "", cell.use))
                continue
            found.append((column, engine, f"-{cell.condition}", cell.otherwise))
            if (engine, cell.condition) != ("shares", "counted"):  # no rounds of shares count them
                found.append((column, engine, f"+{cell.condition}", cell.use))
    return found


def compared(column: str, engine: str, condition: str) -> tuple[dict[str, Any], Columns, Columns]:
    """Options, the columns of one run, and those of a run with other values of one column."""
    run = RUNS[engine]
    beside = {"num_gpu": [0] * N, "gpu_milli": [0] * N} if (column, engine) == ("mig", "pods") else {}
    options, plain = dict(run.options), {**PODS, **BESIDE.get(column, {}), **beside, **run.columns}
    if condition.startswith("+"):
        more, columns = MET[condition[1:]]
        options, plain = options | more, {**plain, **columns}
    elif condition.startswith("-"):
        plain |= UNMET.get(condition[1:], {})
    changed = {**plain, column: {**OTHER, **run.other}[column]}
    if column == "num_gpu":
        changed["gpu_milli"] = [1000] * N
    return options, plain, changed


@pytest.mark.parametrize(("column", "engine", "condition", "use"), cases())
def test_a_column_changes_the_result_or_is_refused_or_named(column: str, engine: str, condition: str, use: str) -> None:
    options, plain, changed = compared(column, engine, condition)
    if use == REFUSED:
        with pytest.raises(FastsimError, match=column if column != "bound_gpus" else "bound_"):
            played(engine, options, changed)
        return
    (before, _), (after, told) = played_once(engine, options, plain), played(engine, options, changed)
    assert same(engine, before, after, [column]) == (use != USED)
    assert any(column in text for text in told) == (use == IGNORED)
    assert len(told) <= 1, "one line with all columns"


def test_the_table_has_every_column_and_every_engine() -> None:
    assert list(cells("columns")) == POD_SCHEMA.names
    every = [cell for row in cells("columns").values() for cell in row.values()]
    assert all(tuple(row) == ENGINES for row in cells("columns").values())
    assert {cell.use for cell in every} == {USED, REFUSED, IGNORED, DESCRIBES}
    assert {cell.otherwise for cell in every} == {"", IGNORED, DESCRIBES}
    assert {cell.condition for cell in every} - {""} == CONDITIONS.keys() == MET.keys()
    assert OTHER.keys() == set(POD_SCHEMA.names)


@pytest.mark.parametrize("name", NEUTRAL)
def test_neutral_values_are_no_request(name: str) -> None:
    for engine in ENGINES:
        unused = UnusedColumns(engine, ColumnFacts((name,)))
        kind = POD_SCHEMA.field(name).type
        unused.add(pa.table({name: pa.array([NEUTRAL[name], None], kind)}))
        unused.add(pa.table({name: pa.array([None, None], kind)}))
        assert unused.messages("w") == []


def test_one_line_names_all_columns_and_what_they_need() -> None:
    pods = {**PODS, **{name: OTHER[name] for name in ("priority", "slo", "est_duration_s", "max_replicas")}}
    _, told = played("pods", RUNS["pods"].options, pods)
    assert told == [
        "w: the online engine does not look at priority (without a queue rule or preemption by priority), "
        "max_replicas, slo (without a queue rule by deadline), est_duration_s (without backfilling or a queue rule by "
        "duration)"
    ]
    _, told = played("orders", RUNS["orders"].options, pods | {"cpu_milli": [1] * N})
    assert told == [
        "w: these rounds give out GPUs and do not count cpu_milli; these rounds do not look at priority, max_replicas, "
        "est_duration_s"
    ]


@pytest.mark.parametrize("engine", ["pods", "orders"])
@pytest.mark.parametrize("column", ["max_replicas", "priority", "est_duration_s"])
def test_a_column_that_an_order_reads_is_used(engine: str, column: str) -> None:
    order = {"pods": {"queue": f"-column({column})"}, "orders": {"policy": f"order(key='-column({column})')"}}[engine]
    plain = {**PODS, "num_gpu": [2] * N, "max_replicas": [1] * N, "priority": [0] * N, "est_duration_s": [9.0] * N}
    options = RUNS[engine].options | {"cluster": ONE_NODE} | order
    before, told = played(engine, options, plain)
    after, said = played(engine, options, plain | {column: [*range(N)]})
    assert not same(engine, before, after, [column])
    assert not any(column in text for text in (*told, *said))


def test_columns_of_a_file_are_looked_at_as_they_are_read(tmp_path: Any) -> None:
    workload = fs.Workload.from_arrow(table({**PODS, "slo": OTHER["slo"]}))
    workload.write(tmp_path / "pods.parquet")
    with pytest.warns(fs.ColumnIgnored, match=r"does not look at slo \(without a queue rule by deadline\)$"):
        fs.simulate(CLUSTER, tmp_path / "pods.parquet", out=tmp_path / "run")
