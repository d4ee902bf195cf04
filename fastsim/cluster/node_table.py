"""The canonical node table: its columns with units, and the checks every cluster passes."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastsim.errors import InputError, suggestion
from fastsim.foundation.columns.physical_types import Unconvertible, canonical, cell_text, is_text, plain
from fastsim.foundation.limits.quantities import MOST_SECONDS, MOST_SECONDS_TEXT
from fastsim.hardware import mig
from fastsim.hardware.gpu_products import models_spelled
from fastsim.hardware.model_catalog import MOST_WATTS, Catalog
from fastsim.hardware.node_constraints import MAX_GPUS

if TYPE_CHECKING:
    from fastsim.kubernetes.snapshot import Snapshot

NODE_SCHEMA = pa.schema(
    [
        pa.field("node_id", pa.int64(), nullable=False),  # position, dense from 0; ties go to the smallest
        pa.field("name", pa.string(), nullable=False),  # unique
        pa.field("cpu_milli", pa.int64(), nullable=False),  # capacity, thousandths of a virtual CPU
        pa.field("memory_mib", pa.int64(), nullable=False),  # capacity, MiB
        pa.field("num_gpu", pa.int16(), nullable=False),  # devices, at most MAX_GPUS
        pa.field("gpu_model", pa.string()),  # null exactly when there are no devices
        pa.field("gpu_memory_mib", pa.int64()),  # of each device, MiB
        pa.field("cpu_model", pa.string()),  # null = the catalogue's default CPU
        pa.field("max_pods", pa.int32()),  # most pods at once; null = unlimited
        pa.field("gpu_idle_w", pa.float64()),  # watts of one device; null = the catalogue's
        pa.field("gpu_peak_w", pa.float64()),
        pa.field("cpu_idle_w", pa.float64()),  # watts of one socket; null = the catalogue's
        pa.field("cpu_peak_w", pa.float64()),
        pa.field("cpu_cores_per_socket", pa.int32()),
        pa.field("add_s", pa.float64()),  # seconds; null = always there
        pa.field("remove_s", pa.float64()),  # seconds; null = stays for ever
        pa.field("labels", pa.map_(pa.string(), pa.string())),  # matched by the constraints of pods
        pa.field("extra_resources", pa.map_(pa.string(), pa.int64())),  # further capacity by name, additive
        pa.field("mig", pa.string()),  # how its GPUs are partitioned, see fastsim.hardware.mig; null = they are whole
    ]
)
"""The full node table; every column after `num_gpu` may be null."""

NATIVE = "native_"
"""Prefix of the names of further columns: texts as the source had them, which no run reads."""

REQUIRED = ("cpu_milli", "memory_mib", "num_gpu")
"""Columns a node table must have; `node_id` and `name` are numbered when absent."""

USUAL = {"cpu_milli": 96_000, "memory_mib": 393_216}
"""Required columns that many tables of nodes lack, and a usual server."""
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
"""Label of nodes with the type by which a cloud sells them."""
_WATTS = ("gpu_idle_w", "gpu_peak_w", "cpu_idle_w", "cpu_peak_w")
_LIMIT = 2**40
# Arrow looks for a time-zone library whenever it has to infer the type of a Python value; these are typed.
_NONE, _ONE, _MOST_GPUS, _MOST = (pa.scalar(value, pa.int64()) for value in (0, 1, MAX_GPUS, _LIMIT))
_NO_WATTS, _NO_NAME = pa.scalar(0.0, pa.float64()), pa.scalar("", pa.string())
_MOST_WATTS, _MOST_SECONDS = pa.scalar(float(MOST_WATTS), pa.float64()), pa.scalar(MOST_SECONDS, pa.float64())

Where = Callable[[int], str]
"""Names row `i` (from 0) of the input, as in "nodes.csv:17"."""


class Nodes(NamedTuple):
    """Nodes as they were read, in the order in which a `Cluster` takes its parts, which checks them."""

    table: pa.Table
    catalog: Catalog
    name: str
    where: Where | None = None
    snapshot: Snapshot | None = None


def node_table(table: pa.Table, name: str, where: Where, catalog: Catalog) -> pa.Table:
    """The table with every canonical column, one chunk each, checked; problems are an InputError."""
    nodes = _in_catalogue_names(_complete(table, name, where), where, catalog)
    for column, mask, expected in _rules(nodes):
        bad = pc.fill_null(mask, False)
        if pc.any(bad).as_py():
            row = int(pc.index(bad, True).as_py())
            raise InputError(f"{where(row)}: {column}", cell_text(nodes[column], row), expected)
    _unique_names(nodes, where)
    _known_models(nodes, where, catalog)
    _possible_layouts(nodes, where)
    return nodes


def _complete(table: pa.Table, name: str, where: Where) -> pa.Table:
    names = table.column_names
    if not table.num_rows:
        raise InputError(name, "no nodes", "one node or more")
    for column in REQUIRED:
        if column not in names:
            do = f"map it: {column}=COLUMN, or {column}={USUAL[column]} for every node" if column in USUAL else ""
            raise InputError(f"{name}: {column}", f"columns {', '.join(names)}", "this required column", do)
    native = [name for name in names if name.startswith(NATIVE)]
    for column in (name for name in names if name not in NODE_SCHEMA.names and name not in native):
        likely = difflib.get_close_matches(column, NODE_SCHEMA.names, n=1, cutoff=0.85)
        if likely and likely[0] not in names:
            raise InputError(f"{name}: {column}", "an unknown column", likely[0], "rename or drop the column")
    schema = pa.schema([*NODE_SCHEMA, *(pa.field(name, pa.string()) for name in native)])
    return pa.Table.from_arrays([_column(table, field, where) for field in schema], schema=schema)


def _column(table: pa.Table, field: pa.Field, where: Where) -> pa.Array:
    if field.name not in table.column_names:
        return _default_column(field, table.num_rows)
    try:
        cast = _layouts(table[field.name]) if field.name == "mig" else canonical(table[field.name], field.type)
    except Unconvertible as fault:
        raise InputError(f"{where(fault.row)}: {field.name}", fault.found, f"{field.type}", fault.do) from None
    if not field.nullable and cast.null_count:
        row = int(pc.index(cast.is_null(), True).as_py())
        raise InputError(f"{where(row)}: {field.name}", "null", f"a value ({field.type})")
    return cast


def _layouts(column: pa.ChunkedArray) -> pa.Array:
    """Layouts of partitioned GPUs as texts; lists have one for each GPU."""
    layouts = plain(column)
    if not is_text(layouts.type):
        layouts = canonical(layouts, pa.list_(pa.string()))
    return pa.array([mig.layout_text(layout) for layout in layouts.to_pylist()], pa.string())


def _default_column(field: pa.Field, rows: int) -> pa.Array:
    if field.name == "node_id":
        return pa.array(np.arange(rows))
    if field.name == "name":
        return pa.array([f"node-{i:04d}" for i in range(rows)])
    return pa.nulls(rows, field.type)


def _rules(nodes: pa.Table) -> Iterable[tuple[str, Any, str]]:
    """(column, mask of bad rows, what was expected); where a column is empty, nothing in it can be wrong."""
    gpus = nodes["num_gpu"]
    yield "node_id", pc.not_equal(nodes["node_id"], pa.array(np.arange(len(nodes)))), "0, 1, 2, ... in row order"
    yield "num_gpu", pc.or_(pc.less(gpus, _NONE), pc.greater(gpus, _MOST_GPUS)), f"0 to {MAX_GPUS}"
    yield "gpu_model", pc.and_(pc.greater(gpus, _NONE), _blank(nodes["gpu_model"])), "a GPU model, because num_gpu > 0"
    yield "gpu_model", pc.and_(pc.equal(gpus, _NONE), nodes["gpu_model"].is_valid()), "null, because num_gpu is 0"
    filled = {name: nodes[name] for name in nodes.column_names if nodes[name].null_count < len(nodes)}
    for name in (name for name in ("cpu_milli", "memory_mib", "gpu_memory_mib") if name in filled):
        yield name, pc.or_(pc.less(filled[name], _NONE), pc.greater(filled[name], _MOST)), f"0 to {_LIMIT}"
    yield from _further_rules(filled)


def _further_rules(filled: Mapping[str, Any]) -> Iterable[tuple[str, Any, str]]:
    for name, least, expected in (
        ("max_pods", _NONE, "0 or more; null = unlimited"), ("cpu_cores_per_socket", _ONE, "1 or more"),
    ):  # fmt: skip
        if name in filled:
            yield name, pc.less(filled[name], least), expected
    for name in _WATTS:
        if name in filled:
            good = pc.and_(pc.less_equal(filled[name], _MOST_WATTS), pc.greater_equal(filled[name], _NO_WATTS))
            yield name, pc.invert(good), f"0 to {MOST_WATTS:,} watts"
    for kind in ("gpu", "cpu"):
        high, low = f"{kind}_peak_w", f"{kind}_idle_w"
        if high in filled and low in filled:
            yield high, pc.less(filled[high], filled[low]), f"at least {low}"
    for name in ("add_s", "remove_s"):
        if name in filled:
            good = pc.less_equal(pc.abs(filled[name]), _MOST_SECONDS)
            yield name, pc.invert(good), f"seconds within {MOST_SECONDS_TEXT} of 0; null = never"
    if "add_s" in filled and "remove_s" in filled:
        yield "remove_s", pc.less_equal(filled["remove_s"], filled["add_s"]), "later than add_s"
    yield from _map_rules(filled)


def _map_rules(filled: Mapping[str, Any]) -> Iterable[tuple[str, Any, str]]:
    if "labels" in filled:
        yield "labels", _maps(filled["labels"], lambda name, value: value is None), "a text for every label"
    if "extra_resources" in filled:
        bad = _maps(filled["extra_resources"], lambda name, value: value is None or not 0 <= value <= _LIMIT)
        yield "extra_resources", bad, f"0 to {_LIMIT} of every resource"
        parts = _maps(filled["extra_resources"], lambda name, value: mig.resource_name(name).startswith(mig.PREFIX))
        yield "extra_resources", parts, "no instances of GPUs; the column mig has the partitions of GPUs"


def _maps(column: Any, wrong: Callable[[str, Any], bool]) -> Any:
    """Mask of the rows whose map has a wrong entry or the same key twice."""
    rows = column.to_pylist()
    return pa.array([
        row is not None and (any(wrong(*entry) for entry in row) or len(dict(row)) < len(row)) for row in rows
    ], pa.bool_())  # fmt: skip


def _blank(names: Any) -> Any:
    return pc.equal(pc.fill_null(names, _NO_NAME), _NO_NAME)


def _unique_names(nodes: pa.Table, where: Where) -> None:
    names = nodes["name"].to_pylist()
    if len(set(names)) == len(names) and "" not in names:
        return
    names_before: set[str] = {""}
    for row, name in enumerate(names):
        if name in names_before:
            raise InputError(f"{where(row)}: name", repr(name), "a unique name")
        names_before.add(name)


def _in_catalogue_names(nodes: pa.Table, where: Where, catalog: Catalog) -> pa.Table:
    """The nodes with GPU models by the names of the catalogue; nodes with watts of their own keep theirs."""
    names = nodes["gpu_model"].to_pylist()
    unknown = {name for name in names if name and name not in catalog.gpu}
    if not unknown:
        return nodes
    own = pc.and_(nodes["gpu_idle_w"].is_valid(), nodes["gpu_peak_w"].is_valid()).to_pylist()
    for row, name in enumerate(names):
        if name in unknown and not own[row]:
            names[row] = _in_the_catalogue(f"{where(row)}: gpu_model", name, catalog)
    field = NODE_SCHEMA.field("gpu_model")
    return nodes.set_column(NODE_SCHEMA.get_field_index(field.name), field, pa.array(names, field.type))


def _in_the_catalogue(where: str, name: str, catalog: Catalog) -> str:
    models = models_spelled(name, catalog.gpu)
    if len(models) > 1:
        memory = ((model, catalog.gpu[model].memory_mib) for model in models)
        known = (f"{model} ({mib:,} MiB)" if mib else model for model, mib in memory)
        raise InputError(where, f"{name!r}, which is several models", f"one of: {', '.join(known)}")
    return models[0] if models else name


def _known_models(nodes: pa.Table, where: Where, catalog: Catalog) -> None:
    """InputError for a model outside the catalogue, unless the row has its own watts."""
    for column, known, own in (
        ("gpu_model", catalog.gpu, ("gpu_idle_w", "gpu_peak_w")),
        ("cpu_model", catalog.cpu, ("cpu_idle_w", "cpu_peak_w", "cpu_cores_per_socket")),
    ):
        unknown = pc.invert(pc.is_in(nodes[column], value_set=pa.array(sorted(known), pa.string())))
        unknown = pc.and_(unknown, nodes[column].is_valid())
        for name in own:
            without_watts = pc.and_(unknown, nodes[name].is_null())
            if pc.any(without_watts).as_py():
                row = int(pc.index(without_watts, True).as_py())
                how = "watts=FILE.csv in the cluster's text, or Catalog.from_csv"
                do = f"extend the catalogue ({how}) or fill {', '.join(own)}"
                models = sorted(filter(None, known))
                guess = suggestion(nodes[column][row].as_py(), models)
                do = f"{guess} Else {do}" if guess else do
                found = cell_text(nodes[column], row)
                raise InputError(f"{where(row)}: {column}", found, f"one of: {', '.join(models)}", do)


def _possible_layouts(nodes: pa.Table, where: Where) -> None:
    """InputError unless every layout suits the GPUs of its node."""
    texts = nodes["mig"].to_pylist() if nodes["mig"].null_count < len(nodes) else []
    checked = set()
    for row, text in enumerate(texts):
        key = text, nodes["num_gpu"][row].as_py(), nodes["gpu_model"][row].as_py()
        if text is not None and key not in checked:
            mig.refuse(f"{where(row)}: mig", *key)
            checked.add(key)


def offered(nodes: pa.Table) -> tuple[pa.Table, np.ndarray[Any, np.dtype[np.int32]]]:
    """The nodes as pods see them, and the number of partitioned GPUs of each.

    A partitioned GPU is not among `num_gpu`; its instances are among the `extra_resources`.
    """
    rows = len(nodes)
    if nodes["mig"].null_count == rows:
        return nodes, np.zeros(rows, np.int32)
    num_gpu = nodes["num_gpu"].to_pylist()
    partitions = [mig.instances(text, count) for text, count in zip(nodes["mig"].to_pylist(), num_gpu, strict=True)]
    partitioned = np.array([count for count, _ in partitions], np.int32)
    own = nodes["extra_resources"].to_pylist()
    amounts = [[*(amounts or ()), *more] or None for amounts, (_, more) in zip(own, partitions, strict=True)]
    for name, values in (("num_gpu", np.array(num_gpu) - partitioned), ("extra_resources", amounts)):
        field = NODE_SCHEMA.field(name)
        nodes = nodes.set_column(NODE_SCHEMA.get_field_index(name), field, pa.array(values, field.type))
    return nodes, partitioned


def watts(nodes: pa.Table, catalog: Catalog) -> pa.Table:
    """Watts per device and per socket of each node, overrides applied; devices of a node without GPUs draw 0.

    Columns gpu_idle_w, gpu_peak_w, cpu_idle_w, cpu_peak_w (float64) and cpu_cores_per_socket (int32), no nulls.
    """
    gpu = _looked_up(nodes["gpu_model"].to_pylist(), catalog.gpu, ("idle_w", "peak_w"))
    cpu_names = [name or "" for name in nodes["cpu_model"].to_pylist()]
    cpu = _looked_up(cpu_names, catalog.cpu, ("idle_w", "peak_w", "cores_per_socket"))
    looked_up = dict(zip(("gpu_idle_w", "gpu_peak_w"), gpu, strict=True))
    looked_up |= dict(zip(("cpu_idle_w", "cpu_peak_w", "cpu_cores_per_socket"), cpu, strict=True))
    columns = {
        name: pc.coalesce(nodes[name].combine_chunks(), pa.array(values, NODE_SCHEMA.field(name).type))
        for name, values in looked_up.items()
    }
    return pa.table(columns)


def _looked_up(names: list[str | None], known: Any, fields: tuple[str, ...]) -> list[list[Any]]:
    table = {
        name: [getattr(known[name], field) for field in fields] if name in known else [0.0] * len(fields)
        for name in dict.fromkeys(names)
    }
    return [[table[name][i] for name in names] for i in range(len(fields))]


def price_names(row: Mapping[str, Any]) -> list[str]:
    """Names that the price of a node may have: its own, its instance type, its GPU model or ``cpu`` without GPUs."""
    sold_as = dict(row["labels"] or ()).get(INSTANCE_TYPE, "")
    return [str(name) for name in (row["name"], sold_as, row["gpu_model"] or "cpu") if name]
