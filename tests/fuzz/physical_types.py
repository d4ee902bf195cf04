"""Canonical tables whose columns come in every physical type, through every reader: equal values, or one refusal.

The cases of a table are the product of its columns, `FORMS`, layouts and readers in an order drawn once; further seeds
draw them again with other nested types.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fastsim.cluster.cluster import Cluster
from fastsim.cluster.node_table import NODE_SCHEMA
from fastsim.errors import FastsimError, InputError, ScenarioError
from fastsim.performance.applications.application_records import TYPES
from fastsim.performance.applications.application_table import APP_SCHEMA
from fastsim.performance.applications.family import Applications
from fastsim.performance.oracle import Oracle
from fastsim.performance.rate_table import RATE_SCHEMA
from fastsim.performance.sensitivity import Sensitivity
from fastsim.performance.sensitivity_table import SENSITIVITY_SCHEMA
from fastsim.scenario.outages import maintenance_from
from fastsim.scenario.run_rules import Rules
from fastsim.simulation.run_warnings import absent_tenants
from fastsim.telemetry.files import readings_of
from fastsim.telemetry.readings_table import SCHEMA as READINGS
from fastsim.workload import Workload
from fastsim.workload.lint import trace_findings
from fastsim.workload.schema import POD_SCHEMA
from fastsim.workload.typical_pods import COLUMNS as TYPICAL
from fastsim.workload.typical_pods import TypicalPods
from tests.fuzz import trial
from tests.fuzz.physical_forms import FORMS, Form, is_scalar
from tests.fuzz.trial import Trial

_RULE = {"key": "zone", "op": "In", "values": ["a", "b"]}
_SPREAD = {"pods": "web", "topology": "zone", "max_skew": 2, "min_domains": None, "counted": [_RULE]}
_LIKED = {"rule": "labels", "weight": 9, "pods": None, "topology": None, "max_skew": None, "nodes": [_RULE]}
PODS: dict[str, list[Any]] = {
    "pod_id": [0, 1, 2, 3], "submit_s": [0.0, 5.0, 5.5, 60.0], "cpu_milli": [1000, 0, 2000, 5],
    "memory_mib": [1024, 0, 3, 70_000], "num_gpu": [1, 0, 2, 1], "gpu_milli": [500, 0, 1000, 1000],
    "duration_s": [2.0, None, 0.0, 90.5], "gpu_memory_mib": [None, 0, 100, 5],
    "gpu_models": [["T4", "P100"], None, ["T4"], None], "job_id": [None, 3, 3, 1], "gang_size": [None, 2, 2, 1],
    "after_gang": [None, False, False, True],
    "task_role": ["worker", None, "ps", "worker"], "qos": ["LS", "BE", None, "LS"], "priority": [None, 5, 1, 0],
    "preemptible": [True, None, False, True], "preempts": [False, None, True, False],
    "budgets": [[{"name": "b", "least": 1}], None, [], [{"name": "b", "least": 1}, {"name": "c", "least": 0}]],
    "tenant": ["anna", None, "bo", "anna"], "group": [None, "g", "h", "g"],
    "max_per_node": [None, 1, 0, 2], "spread": [[_SPREAD], None, [_SPREAD, _SPREAD], None],
    "spread_sets": [["a"], None, ["a", "b"], None],
    "near": [[{"rule": "apart", "pods": "a", "topology": "zone"}], None, [], None],
    "preferences": [[_LIKED], None, [], [_LIKED, _LIKED]], "preference_sets": [["a"], None, ["a", "b"], None],
    "extra_resources": [[("x", 1)], None, [], [("y", 2), ("x", 0)]],
    "mig": [None, None, "1g.5gb", None], "constraints": [[_RULE], None, [], [_RULE, _RULE]],
    "pinned_node": [None, "n1", None, "n2"], "bound_node": [None, None, "n1", None],
    "bound_gpus": [None, None, [0, 1], None], "workload": ["a", "b", None, "a"], "batch_size": [None, 32, 64, 1],
    "total_work": [None, 1.5, 20.0, 3.0], "min_replicas": [None, 1, 2, 1], "max_replicas": [None, 1, 2, 1],
    "deadline_s": [None, 50.0, 60.0, 70.5], "slo": [None, 1.5, 2.0, 3.0], "weight": [None, 1.5, 2.0, 1.0],
    "est_duration_s": [None, 1.0, 2.0, 3.5], "orig_start_s": [None, 5.0, 6.0, 61.0],
    "orig_end_s": [None, 7.0, 8.0, 62.0], "orig_status": ["done", None, "failed", "done"],
    "censored": [False, None, True, False], "native_id": ["a", None, "ß", "c"],
    "native_job_id": [None, "j", "j", "i"], "native_note": ["x", "7", None, "y"],
}  # fmt: skip
NODES: dict[str, list[Any]] = {
    "node_id": [0, 1, 2], "name": ["n1", "n2", "n3"], "cpu_milli": [4000, 8000, 5], "memory_mib": [1024, 70_000, 0],
    "num_gpu": [2, 1, 0], "gpu_model": ["A100", "T4", None], "gpu_memory_mib": [None, 15_000, None],
    "cpu_model": [None, None, None], "max_pods": [None, 10, 1], "gpu_idle_w": [None, 10.0, None],
    "gpu_peak_w": [None, 70.5, None], "cpu_idle_w": [10.0, None, 5.5], "cpu_peak_w": [20.0, None, 5.5],
    "cpu_cores_per_socket": [None, 8, 16], "add_s": [None, 5.0, 6.5], "remove_s": [9.0, None, 8.0],
    "labels": [[("zone", "a")], None, [("zone", "b"), ("rack", "c")]], "extra_resources": [None, [("x", 5)], []],
    "mig": [None, None, None], "native_note": ["x", None, "8"],
}  # fmt: skip
READING_ROWS: dict[str, list[Any]] = {
    "ts": [1000, 2000, 61_000], "node": ["n1", "n1", None], "gpu_uuid": ["u", "u", "v"], "gpu_index": [0, 0, None],
    "model": ["T4", "T4", None], "namespace": [None, "d", "d"], "pod": [None, "p", "p"], "container": ["c", None, "c"],
    "metric": ["power_w", "power_w", "util_pct"], "value": [1.5, 20.0, 3.0],
}  # fmt: skip
RATES: dict[str, list[Any]] = {
    "workload": ["a", "a", "b"], "gpu_model": ["k80", "v100", "v100"], "num_gpu": [1, 1, 1],
    "num_nodes": [None, 1, 1], "consolidated": [True, None, True], "colocated_workload": [None, "b", None],
    "steps_per_s": [2.0, 1.5, 4.0], "colocated_steps_per_s": [None, 2.5, None],
}  # fmt: skip
SENSITIVITIES: dict[str, list[Any]] = {
    "workload": ["net", "net", "b"], "task": ["image", "image", None], "point": ["demand", "grid", "demand"],
    "cpus_per_gpu": [None, None, None], "batch_size": [32, None, 8], "iteration_s": [0.5, None, 1.0],
    "cpu": [4.0, 1.0, 1.5], "memory_gb": [50.0, 2.0, 3.0], "storage_mb_s": [None, None, 10.0],
    "speedup": [2.0, 1.0, 1.5],
}  # fmt: skip
WINDOWS: dict[str, list[Any]] = {"node": ["n1", "n2", "n1"], "down_s": [1.0, 2.5, 70.0], "up_s": [2.0, None, 80.5]}
TYPICAL_ROWS: dict[str, list[Any]] = {
    "cpu_milli": [1000, 5], "gpu_milli": [1000, 500], "num_gpu": [2, 1], "gpu_models": [["T4"], ["T4", "P100"]],
    "count": [3, 1], "frequency": [0.75, 0.25],
}  # fmt: skip
_TYPICAL_TYPES = (pa.int64(), pa.int16(), pa.int16(), pa.list_(pa.string()), pa.int64(), pa.float64())


def _small() -> pa.Table:
    """An application on one GPU model, with few measurements."""
    [row] = Applications.default().table().slice(0, 1).to_pylist()
    model = row["limits"][0]["gpu_model"]
    few = {"limits": row["limits"][:1], "epochs": row["epochs"][:4],
           "steps": [step for step in row["steps"] if step["gpu_model"] == model][:24]}  # fmt: skip
    return pa.Table.from_pylist([row | few], APP_SCHEMA)


def _applications() -> dict[str, list[Any]]:
    return dict(_small().to_pydict())


def _records() -> dict[str, list[Any]]:
    return dict(Applications.from_table(_small()).flat().to_pydict())


Read = Callable[[pa.Table, Path], Any]
"""The content of a table as a reader has it; the file is where it may be written."""


def _written(read: Callable[[str], Any], table: pa.Table, file: Path) -> Any:
    pq.write_table(table, file)
    return read(str(file))


def _pods(workload: Workload) -> Any:
    return workload.table().to_pydict()


def _linted(table: pa.Table, file: Path) -> Any:
    found = [f"{one.column}: {one.text}" for one in trace_findings(Workload.from_arrow(table)) if one.level == "error"]
    if found:
        raise InputError("lint: " + found[0].partition(":")[0], found[0], "no fault")
    return found


def _tenants(table: pa.Table, file: Path) -> Any:
    return absent_tenants(
        Workload.from_arrow(table), Rules(quotas={"anna": {"gpu_milli": 8000}, "nobody": {"gpu_milli": 1}})
    )


def _typical(path: str) -> Any:
    return repr(TypicalPods.from_parquet(path))


@dataclass(frozen=True)
class Canonical:
    """A canonical table: its columns, rows that obey every rule, and what reads it.

    Readers that are ``mapped`` take times for seconds; those in ``only`` look at one column.
    """

    schema: pa.Schema
    rows: Callable[[], Mapping[str, list[Any]]]
    readers: Mapping[str, Read]
    mapped: Sequence[str] = ()
    only: Mapping[str, str] = field(default_factory=dict)


def _file(read: Callable[[str], Any]) -> Read:
    return partial(_written, read)


def _rows(value: Mapping[str, list[Any]]) -> Mapping[str, list[Any]]:
    return value


TABLES: dict[str, Canonical] = {
    "pods": Canonical(
        pa.schema([*POD_SCHEMA, pa.field("native_note", pa.string())]), partial(_rows, PODS),
        {
            "from_arrow": lambda table, file: _pods(Workload.from_arrow(table)),
            "scan": _file(lambda path: _pods(Workload.scan(path))),
            "mapped": lambda table, file: _pods(Workload.from_csv(table, origin="keep")),
            "mapped file": _file(lambda path: _pods(Workload.from_csv(path, origin="keep"))),
            "lint": _linted, "quotas": _tenants,
        },
        ("mapped", "mapped file"), {"quotas": "tenant"},
    ),
    "nodes": Canonical(
        pa.schema([*NODE_SCHEMA, pa.field("native_note", pa.string())]), partial(_rows, NODES),
        {
            "from_arrow": lambda table, file: Cluster.from_arrow(table).nodes.to_pydict(),
            "from_parquet": _file(lambda path: Cluster.from_parquet(path).nodes.to_pydict()),
            "mapped": lambda table, file: Cluster.from_csv(table).nodes.to_pydict(),
            "mapped file": _file(lambda path: Cluster.from_csv(path).nodes.to_pydict()),
        },
        ("mapped", "mapped file"),
    ),
    "readings": Canonical(
        READINGS, partial(_rows, READING_ROWS), {"file": _file(lambda path: readings_of([path]).to_pydict())}
    ),
    "rates": Canonical(
        RATE_SCHEMA, partial(_rows, RATES),
        {
            "from_table": lambda table, file: Oracle.from_table(table).table().to_pydict(),
            "from_parquet": _file(lambda path: Oracle.from_parquet(path).table().to_pydict()),
        },
    ),
    "sensitivities": Canonical(
        SENSITIVITY_SCHEMA, partial(_rows, SENSITIVITIES),
        {
            "from_table": lambda table, file: repr(Sensitivity.from_table(table).profiles),
            "from_file": _file(lambda path: repr(Sensitivity.from_file(path).profiles)),
        },
    ),
    "applications": Canonical(
        APP_SCHEMA, _applications,
        {
            "from_table": lambda table, file: Applications.from_table(table).table().to_pydict(),
            "from_parquet": _file(lambda path: Applications.from_parquet(path).table().to_pydict()),
        },
    ),
    "records": Canonical(
        pa.schema(list(TYPES.items())), _records,
        {"from_file": _file(lambda path: Applications.from_file(path).table().to_pydict())},
    ),
    "maintenance": Canonical(
        pa.schema([("node", pa.string()), ("down_s", pa.float64()), ("up_s", pa.float64())]), partial(_rows, WINDOWS),
        {"table": lambda table, file: maintenance_from(table), "file": _file(maintenance_from)},
    ),
    "typical pods": Canonical(
        pa.schema(list(zip(TYPICAL, _TYPICAL_TYPES, strict=True))), partial(_rows, TYPICAL_ROWS),
        {"file": _file(_typical)},
    ),
}  # fmt: skip
"""Every table of users that Arrow carries; prices, intensities and watts are texts."""
LAYOUTS = ("whole", "sliced", "chunked", "nulls")
"""How a column lies in memory; ``nulls``: it has no values at all."""


def plain(kind: pa.DataType) -> pa.DataType:
    """The type of the cells of a dictionary, or the type itself."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


class Case:
    """One column of a canonical table in a form and a layout, and the reader of the table."""

    def __init__(self, name: str, choice: tuple[str, str, str, str], rng: random.Random) -> None:
        self.table = TABLES[name]
        self.column, self.form, self.layout, self.reader = choice
        rows = dict(self.table.rows())
        known = self.table.schema.field(self.column)
        if self.layout == "nulls" and known.nullable:
            rows[self.column] = [None] * len(rows[self.column])
        self.rows, self.rng = rows, rng

    def _array(self, name: str) -> pa.Array:
        return pa.array(self.rows[name], plain(self.table.schema.field(name).type))

    def canonical(self) -> pa.Table:
        """The table in its own types."""
        return pa.table({name: self._array(name) for name in self.table.schema.names})

    def stored(self) -> tuple[pa.Table, bool] | None:
        """The table with the column in its form, and whether its values are equal; None if they have no such form."""
        values, kind = self.rows[self.column], plain(self.table.schema.field(self.column).type)
        spare = [*values, *values, *values] if self.layout == "sliced" else values
        form: Form | None = FORMS[self.form](spare, kind, self.rng)
        if form is None:
            return None
        pieces: Any = form.column
        if self.layout == "sliced":
            pieces = pieces.slice(len(values), len(values))
        if self.layout == "chunked":
            pieces = pa.chunked_array([pieces.slice(0, 1), pieces.slice(1, 0), pieces.slice(1)], pieces.type)
        columns = {name: self._array(name) for name in self.table.schema.names} | {self.column: pieces}
        return pa.table(columns), form.equal


def _outcome(read: Read, table: pa.Table, file: Path) -> Any:
    """What a reader makes of a table: content, or the error that it raised on purpose."""
    try:
        return read(table, file)
    except FastsimError as error:
        return error


def _tried(name: str, choices: Sequence[tuple[str, str, str, str]], folder: Path, seed: int) -> str:
    case = Case(name, choices[seed % len(choices)], random.Random(seed))
    stored = case.stored()
    if stored is None or (case.form.startswith("date") and case.column.endswith("_s")):  # days are no such seconds
        return "none"
    table, equal = stored
    read, file = case.table.readers[case.reader], folder / "table.parquet"
    if case.reader.endswith("file") or case.reader in ("scan", "from_parquet", "from_file"):
        try:
            pq.write_table(table, file)
        except (pa.ArrowException, OSError, TypeError):
            return "unwritten"  # Parquet has no such type
        equal = equal or pq.read_schema(file).field(case.column).type != table.schema.field(case.column).type
    expected, found = _outcome(read, case.canonical(), file), _outcome(read, table, file)
    what = f"{name}.{case.column} as {table.schema.field(case.column).type}, {case.layout}, by {case.reader}"
    if isinstance(found, FastsimError):
        trial.refuse_unclear(str(found))
        assert isinstance(found, InputError | ScenarioError), f"{what}: {found!r}"
        assert case.column in str(found), f"{what}: no column in {found}"
        return f"refused: {found}"
    assert not isinstance(expected, FastsimError), f"{what}: {expected} only in the canonical type"
    assert found == expected, f"{what}: {str(found)[:600]}\n  instead of {str(expected)[:600]}"
    assert equal or _may_be_equal(case, table), f"{what}: taken"
    return "valid"


def _may_be_equal(case: Case, table: pa.Table) -> bool:
    """Whether values of another meaning may come out equal: seconds of times, and values that nobody looks at."""
    kind = table.schema.field(case.column).type
    nothing = table[case.column].null_count == table.num_rows
    return nothing or (pa.types.is_temporal(kind) and case.reader in case.table.mapped and case.column.endswith("_s"))


def choices_of(name: str) -> list[tuple[str, str, str, str]]:
    """Column, form, layout and reader of every case of a table, in an order drawn once."""
    known = TABLES[name]
    forms = [
        [form for form in FORMS if is_scalar(plain(one.type)) or not form.startswith(_SCALARS)] for one in known.schema
    ]
    found = [
        (one.name, form, layout, reader)
        for one, of_column in zip(known.schema, forms, strict=True)
        for form, layout, reader in itertools.product(of_column, LAYOUTS, known.readers)
        if known.only.get(reader, one.name) == one.name
    ]
    random.Random(0).shuffle(found)
    return found


_SCALARS = ("int", "uint", "float", "half", "double", "decimal", "string", "large_string", "bool", "timestamp", "date3",
            "date6", "time", "duration")  # fmt: skip


def prepare(name: str) -> Trial:
    """The trial of a table, in the worker."""
    return partial(_tried, name, choices_of(name), trial.folder("types"))


TARGETS: dict[str, Callable[[], Trial]] = {f"types of {name}": partial(prepare, name) for name in TABLES}
"""Trials by name."""
