"""Rules of pod rows; the first row that breaks one is named with row, column, found and expected."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastsim.errors import InputError
from fastsim.foundation.columns.equal_cells import distinct_rows
from fastsim.foundation.columns.physical_types import Unconvertible, canonical, cell_text
from fastsim.foundation.limits.quantities import MOST_SECONDS, MOST_SECONDS_TEXT
from fastsim.hardware import mig
from fastsim.hardware.node_constraints import MOST_SPREAD, NEAR_RULES, PREFERENCES, constraint_fault, further
from fastsim.workload import schema as s

CPU_LIMIT = 2**31 - 1
"""Largest CPU request, milli; keeps sums over any trace inside 64 bits."""
MOST_GPUS = 64
"""Most devices of a node."""
MEMORY_LIMIT = 2**40
"""Largest memory request, MiB."""
MOST_WEIGHT = 10_000
"""Largest weight of a preference."""
ABOUT = {
    "labels": {"nodes"}, "taint": {"nodes"}, "spread": {"pods", "topology"}, "near": {"pods", "topology"},
    "required": {"pods", "topology"}, "image": {"topology", "weight"},
}  # fmt: skip
"""What a preference of each kind has to say."""
UNIQUE = "every id once"
"""Expectation of the ids of pods."""

PARTNERS = (
    (s.GANG_SIZE, s.JOB_ID, "the job, because gang_size is more than 1", 1),
    (s.AFTER_GANG, s.JOB_ID, "the job whose gang starts first", False),
    (s.MAX_PER_NODE, s.GROUP, "the group whose pods max_per_node counts", None),
)
"""Column, the column without which it means nothing, what that one says, and the value that needs no partner."""

_ZERO, _MOST = pa.scalar(0.0, pa.float64()), pa.scalar(MOST_SECONDS, pa.float64())
_COUNTS = (s.GPU_MEMORY_MIB, s.MAX_PER_NODE, s.BATCH_SIZE, s.MIN_REPLICAS, s.MAX_REPLICAS)
_SPANS = (s.DURATION_S, s.EST_DURATION_S, s.TOTAL_WORK, s.SLO)
_DATES = (s.SUBMIT_S, s.DEADLINE_S, s.ORIG_START_S, s.ORIG_END_S)


@dataclass(frozen=True)
class Fault:
    """One wrong cell: `row` counts from 0 inside the batch."""

    row: int
    column: str
    found: object
    expected: str
    do: str = ""


def required_columns(where: str, names: Sequence[str]) -> None:
    """InputError unless `names` has every required column and no misspelt optional one."""
    missing = [name for name in s.REQUIRED if name not in names]
    if missing:
        hint = "times are seconds: submit_s, duration_s" if s.SUBMIT_S in missing else ""
        raise InputError(f"{where}: {missing[0]}", f"columns {', '.join(names)}", "this required column", hint)
    for name in (name for name in names if name not in s.POD_SCHEMA.names and not s.is_native(name)):
        likely = difflib.get_close_matches(name, s.POD_SCHEMA.names, n=1, cutoff=0.85)
        if likely and likely[0] not in names:
            raise InputError(f"{where}: {name}", "an unknown column", f"{likely[0]}", "rename or drop the column")


def conformed(batch: pa.RecordBatch) -> pa.RecordBatch | Fault:
    """The batch with canonical columns and types only, or the first cell that cannot be converted."""
    schema = s.pod_schema(batch.schema.names)
    columns = []
    for field in schema:
        column = batch.column(field.name)
        try:
            columns.append(canonical(column, field.type))
        except Unconvertible as fault:
            return Fault(fault.row, field.name, fault.found, fault.expected, fault.do)
        if not field.nullable and columns[-1].null_count:
            return Fault(_first(columns[-1].is_null()), field.name, "null", f"a value ({field.type})")
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def request_fault(batch: pa.RecordBatch) -> Fault | None:
    """The first row whose request, time or model list breaks a rule, if any."""
    return min(request_faults(batch), key=lambda fault: fault.row, default=None)


def request_faults(batch: pa.RecordBatch) -> list[Fault]:
    """For each rule that is broken, the first row that breaks it."""
    return [fault for rule in (_numbers, _gpus, _models, _partners, _bound, _conditions) for fault in rule(batch)]


def _numbers(batch: pa.RecordBatch) -> Iterable[Fault]:
    names = batch.schema.names
    yield from _outside(batch, s.CPU_MILLI, 0, CPU_LIMIT)
    yield from _outside(batch, s.MEMORY_MIB, 0, MEMORY_LIMIT)
    for name in _COUNTS:
        if name in names:
            yield from _outside(batch, name, 0, MEMORY_LIMIT)
    if s.GANG_SIZE in names:
        yield from _outside(batch, s.GANG_SIZE, 1, CPU_LIMIT)
    for name in (*_SPANS, *_DATES):
        if name in names:
            yield from _not_finite(batch, name, negative=name in _DATES)
    if s.WEIGHT in names:
        yield from _weights(batch.column(s.WEIGHT))
    if s.DEADLINE_S in names:
        yield from _passed_deadlines(batch)


def _weights(weights: pa.Array) -> Iterable[Fault]:
    good = pc.and_(pc.less_equal(weights, _MOST), pc.greater(weights, 0.0))
    bad = pc.invert(good).fill_null(False)
    if pc.any(bad).as_py():
        row = _first(bad)
        yield Fault(row, s.WEIGHT, float(weights[row].as_py()), "a number above 0, at most 2**53; null = 1")


def _passed_deadlines(batch: pa.RecordBatch) -> Iterable[Fault]:
    deadlines = batch.column(s.DEADLINE_S)
    bad = pc.less(deadlines, batch.column(s.SUBMIT_S)).fill_null(False)
    if pc.any(bad).as_py():
        row = _first(bad)
        submit_s = float(batch.column(s.SUBMIT_S)[row].as_py())
        yield Fault(row, s.DEADLINE_S, float(deadlines[row].as_py()), f"submit_s ({submit_s:g}) or later; null = none")


def _outside(batch: pa.RecordBatch, name: str, low: int, high: int) -> Iterable[Fault]:
    column = batch.column(name).drop_null() if batch.column(name).null_count else batch.column(name)
    extremes = pc.min_max(column)
    if extremes["min"].as_py() is None or (extremes["min"].as_py() >= low and extremes["max"].as_py() <= high):
        return
    full = batch.column(name)
    row = _first(pc.or_(pc.less(full, low), pc.greater(full, high)))
    yield Fault(row, name, int(full[row].as_py()), f"{low} to {high}")


def _not_finite(batch: pa.RecordBatch, name: str, negative: bool) -> Iterable[Fault]:
    column = batch.column(name)
    good = pc.less_equal(pc.abs(column), _MOST)  # not so for NaN
    if not negative:
        good = pc.and_(good, pc.greater_equal(column, _ZERO))
    bad = pc.invert(good).fill_null(False)
    if pc.any(bad).as_py():
        row = _first(bad)
        found = float(column[row].as_py())
        null = "; null = runs for ever" if name == s.DURATION_S else ""
        kind = "a finite number of seconds" if name.endswith("_s") else "a finite number"
        if MOST_SECONDS < abs(found) < np.inf:
            kind = f"at most {MOST_SECONDS_TEXT}" if name.endswith("_s") else "at most 2**53"
        yield Fault(row, name, found, f"{kind}{'' if negative else ', not negative'}{null}")


def _gpus(batch: pa.RecordBatch) -> Iterable[Fault]:
    count = batch.column(s.NUM_GPU).to_numpy(zero_copy_only=False)
    milli = batch.column(s.GPU_MILLI).to_numpy(zero_copy_only=False)
    rules = (
        (count < 0, s.NUM_GPU, count, "0 or more"),
        ((count == 0) & (milli != 0), s.GPU_MILLI, milli, "0, because num_gpu is 0"),
        ((count == 1) & ((milli < 1) | (milli > 1000)), s.GPU_MILLI, milli, "1 to 1000"),
        ((count > 1) & (milli != 1000), s.GPU_MILLI, milli, "1000, because num_gpu is more than 1"),
    )
    for bad, name, values, expected in rules:
        if bad.any():
            row = int(bad.argmax())
            yield Fault(row, name, int(values[row]), expected)


def _models(batch: pa.RecordBatch) -> Iterable[Fault]:
    if s.GPU_MODELS not in batch.schema.names:
        return
    lists = batch.column(s.GPU_MODELS)
    empty = pc.equal(pc.list_value_length(lists), 0).fill_null(False)
    if pc.any(empty).as_py():
        yield Fault(_first(empty), s.GPU_MODELS, "an empty list", "at least one model; null = any")
    names = lists.flatten()
    nameless = pc.or_kleene(names.is_null(), pc.equal(names, "")).fill_null(True)
    if pc.any(nameless).as_py():
        row = int(pc.list_parent_indices(lists)[_first(nameless)].as_py())
        yield Fault(row, s.GPU_MODELS, cell_text(lists, row), "model names")


def _partners(batch: pa.RecordBatch) -> Iterable[Fault]:
    """Values that mean nothing without the value of another column: a gang is known by its job."""
    names = batch.schema.names
    for name, partner, expected, alone in PARTNERS:
        if name not in names or batch.column(name).null_count == batch.num_rows:
            continue
        lonely = batch.column(name).is_valid()
        if alone is not None:
            lonely = pc.and_(lonely, pc.fill_null(pc.not_equal(batch.column(name), alone), False))
        if partner in names:
            lonely = pc.and_(lonely, batch.column(partner).is_null())
        if pc.any(lonely).as_py():
            yield Fault(_first(lonely), partner, "null", expected)


def _bound(batch: pa.RecordBatch) -> Iterable[Fault]:
    """Devices that pods hold are as many as `num_gpu`, and their node is named."""
    if s.BOUND_GPUS not in batch.schema.names or batch.column(s.BOUND_GPUS).null_count == batch.num_rows:
        return
    devices, counts = batch.column(s.BOUND_GPUS).to_pylist(), batch.column(s.NUM_GPU).to_pylist()
    nodes = batch.column(s.BOUND_NODE).to_pylist() if s.BOUND_NODE in batch.schema.names else [None] * len(devices)
    for row, (gpus, count, node) in enumerate(zip(devices, counts, nodes, strict=True)):
        if gpus is None:
            continue
        good = len(set(gpus)) == len(gpus) == count and all(gpu is not None and 0 <= gpu < MOST_GPUS for gpu in gpus)
        if not good or node is None:
            found = str(gpus) if node is not None else f"{gpus} without a {s.BOUND_NODE}"
            yield Fault(row, s.BOUND_GPUS, found, f"num_gpu ({count}) different numbers below {MOST_GPUS}; null = any")
            return


def _conditions(batch: pa.RecordBatch) -> Iterable[Fault]:
    rules = (
        (s.CONSTRAINTS, _wrong_constraints), (s.EXTRA_RESOURCES, _wrong_amounts), (s.MIG, _wrong_instances),
        (s.SPREAD, _wrong_spread), (s.SPREAD_SETS, _wrong_sets), (s.NEAR, _wrong_near),
        (s.BUDGETS, _wrong_budgets), (s.PREFERENCES, _wrong_preferences), (s.PREFERENCE_SETS, _wrong_sets),
    )  # fmt: skip
    for name, wrong in rules:
        if name not in batch.schema.names or batch.column(name).null_count == batch.num_rows:
            continue
        rows, _ = distinct_rows([batch.column(name)])
        for row, value in zip(rows.tolist(), batch.column(name).take(pa.array(rows)).to_pylist(), strict=True):
            expected = None if value is None else wrong(value)
            if expected is not None:
                yield Fault(row, name, str(value), expected)
                break


def _wrong_constraints(constraints: list[Any]) -> str | None:
    faults = ["a key, an operator and values" if item is None else constraint_fault(item) for item in constraints]
    return next((expected for expected in faults if expected is not None), None)


def _wrong_spread(rules: list[Any]) -> str | None:
    if len(rules) > MOST_SPREAD or any(rule is None for rule in rules):
        return f"at most {MOST_SPREAD} rules"
    faults = [_wrong_constraints(rule["counted"] or []) for rule in rules]
    if any(None in (rule["pods"], rule["max_skew"]) or not rule["topology"] for rule in rules):
        return "pods, topology and max_skew in each rule"
    if any(rule["max_skew"] < 1 or (rule["min_domains"] or 1) < 1 for rule in rules):
        return "max_skew and min_domains of 1 or more"
    return next((expected for expected in faults if expected is not None), None)


def _wrong_near(rules: list[Any]) -> str | None:
    if len(rules) > MOST_SPREAD or any(rule is None or not rule["pods"] or not rule["topology"] for rule in rules):
        return f"at most {MOST_SPREAD} rules, each with pods and topology"
    kinds = all(rule["rule"] in NEAR_RULES for rule in rules)
    return None if kinds else f"a rule of {', '.join(NEAR_RULES)}"


def _wrong_preferences(preferences: list[Any]) -> str | None:
    if any(one is None or one["rule"] not in PREFERENCES for one in preferences):
        return f"in each preference a rule of {', '.join(PREFERENCES)}"
    if any(not ABOUT[one["rule"]] <= {name for name, value in one.items() if value} for one in preferences):
        return "; ".join(f"{' and '.join(sorted(names))} for {rule}" for rule, names in ABOUT.items())
    if any(abs(one["weight"] or 0) > MOST_WEIGHT or not (one["max_skew"] or 1) >= 1 for one in preferences):
        return f"a weight within {MOST_WEIGHT:,} of 0, and a max_skew of 1 or more"
    faults = [_wrong_constraints(one["nodes"] or []) for one in preferences]
    return next((expected for expected in faults if expected is not None), None)


def _wrong_sets(sets: list[str | None]) -> str | None:
    return None if None not in sets and len(set(sets)) == len(sets) else "names, each once"


def _wrong_budgets(budgets: list[Any]) -> str | None:
    if None in budgets or any(None in (budget["name"], budget["least"]) or budget["least"] < 0 for budget in budgets):
        return "a name and a number of pods, 0 or more, in each budget"
    return _wrong_sets([budget["name"] for budget in budgets])


def _wrong_amounts(amounts: list[tuple[str, int | None]]) -> str | None:
    good = all(amount is not None and 0 <= amount <= MEMORY_LIMIT for _, amount in amounts)
    if not good or len(dict(amounts)) < len(amounts):
        return f"each resource once, 0 to {MEMORY_LIMIT} of it"
    return mig.request_fault(further(amounts, None))


def _wrong_instances(text: str) -> str | None:
    try:
        return mig.request_fault(mig.request(text))
    except ValueError:
        return "instances such as '1g.10gb' or '2*1g.10gb'"


def _first(mask: pa.Array) -> int:
    return int(pc.index(mask.fill_null(False), True).as_py())


class RowOrder:
    """Checks batch by batch that rows are sorted by `submit_s` and that every `pod_id` stands once.

    Ids that rise need no more than the last one. If they do not, ``again`` opens the stream anew for all of its ids.
    """

    def __init__(self, again: Callable[[], Iterable[pa.RecordBatch]]) -> None:
        self.again = again
        self.submit, self.pod, self.rows = -np.inf, np.iinfo(np.int64).min, 0
        self._repeats: Repeats | None = None

    def fault(self, batch: pa.RecordBatch) -> Fault | None:
        """The first row that goes back in time or whose id an earlier row has."""
        submit = np.concatenate(([self.submit], batch.column(s.SUBMIT_S).to_numpy()))
        pod = np.concatenate(([self.pod], batch.column(s.POD_ID).to_numpy()))
        self.submit, self.pod = submit[-1], pod[-1]
        faults: list[Fault] = []
        late = submit[1:] < submit[:-1]
        if late.any():
            row = int(late.argmax())
            found = f"{submit[row + 1].item()} after {submit[row].item()}"
            faults.append(Fault(row, s.SUBMIT_S, found, "rows sorted by submit_s"))
        if self._repeats is None and (pod[1:] <= pod[:-1]).any():
            self._repeats = Repeats.of(all_ids(self.again()))
        if self._repeats is not None:
            faults += self._repeats.faults(self.rows, batch.num_rows)
        self.rows += batch.num_rows
        return min(faults, key=lambda fault: fault.row, default=None)


class Repeats(NamedTuple):
    """Rows, from 0, whose id an earlier row has, in order; that earlier row, and the id."""

    row: np.ndarray[Any, Any]
    earlier: np.ndarray[Any, Any]
    value: np.ndarray[Any, Any]

    @classmethod
    def of(cls, ids: np.ndarray[Any, Any]) -> Repeats:
        """The repeats among the ids of all rows."""
        order = np.argsort(ids, kind="stable")
        same = ids[order[1:]] == ids[order[:-1]]
        row, earlier = order[1:][same], order[:-1][same]
        by_row = np.argsort(row)
        return cls(row[by_row], earlier[by_row], ids[row[by_row]])

    def faults(self, first: int, count: int) -> list[Fault]:
        """The first repeat among ``count`` rows from ``first`` on, if there is one."""
        at = int(np.searchsorted(self.row, first))
        if at == len(self.row) or self.row[at] >= first + count:
            return []
        found = f"{self.value[at]}, as in row {self.earlier[at] + 1}"
        return [Fault(int(self.row[at]) - first, s.POD_ID, found, UNIQUE)]


def all_ids(batches: Iterable[pa.RecordBatch]) -> np.ndarray[Any, Any]:
    """The ids of all rows, up to the first batch in which some are missing or no whole numbers."""
    ids = [np.zeros(0, np.int64)]
    with suppress(pa.ArrowException):
        for batch in batches:
            column = batch.column(s.POD_ID).cast(pa.int64())
            if column.null_count:
                break
            ids.append(column.to_numpy())
    return np.concatenate(ids)


def checked(
    source: Callable[[], Iterable[pa.RecordBatch]], where: Callable[[int], str], known_good: bool = False
) -> Iterable[pa.RecordBatch]:
    """The batches, conformed and checked; `where(row)` names row `row` (from 0 over the whole stream).

    Rows that are ``known_good`` are not checked again, only brought into the canonical types.
    """
    order, done = RowOrder(source), 0
    for batch in source():
        good = conformed(batch)
        if isinstance(good, Fault):
            fault: Fault | None = good
        else:
            fault = None if known_good else request_fault(good) or order.fault(good)
        if fault is not None:
            raise InputError(f"{where(done + fault.row)}: {fault.column}", fault.found, fault.expected, fault.do)
        done += batch.num_rows
        yield good
