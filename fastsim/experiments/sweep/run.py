"""Running a sweep: the runs that its store lacks, the longest first, and one table of all runs."""

from __future__ import annotations

import json
import math
import os
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fastsim.errors import FastsimError, ResultError, ScenarioError
from fastsim.experiments.executors.choice import executor_on
from fastsim.experiments.executors.executor import Executor, Outcome, OutOfTime
from fastsim.experiments.sweep.scenario_builder import effort
from fastsim.experiments.sweep.store import Store, store_at
from fastsim.foundation import interrupts
from fastsim.foundation.nested_text import json_value
from fastsim.foundation.object_cache import OBJECTS
from fastsim.simulation.run_warnings import Message, warn

if TYPE_CHECKING:
    import polars as pl

    from fastsim.experiments.sweep.named_run import Run
    from fastsim.scenario.scenario import Scenario
    from fastsim.simulation.simulate import Progress

TABLE = "sweep.parquet"
"""The table of all runs, in the folder of the sweep."""
PLAN = "sweep.json"
"""The keys of the sweep, in its folder."""
FAILED = "failed.json"
"""Error messages by name of the run; absent if all runs are complete."""
ERROR = "error"
"""The column of the table with the message of a failed run; absent if all runs are complete."""
GRACE_S = 10.0
"""Seconds beyond a run's own time limit after which its process is killed."""


class SweepFailed(FastsimError):
    """Some runs of a sweep failed; ``table`` has all others, ``failures`` error messages by name of the run."""

    def __init__(self, message: str, table: pl.DataFrame | None, failures: dict[str, str]) -> None:
        super().__init__(message)
        self.table, self.failures = table, failures


@dataclass
class State:
    """Progress of a sweep, in runs; ``retried`` counts runs begun again after the death of their worker."""

    total: int
    done: int = 0
    failed: int = 0
    retried: int = 0
    kept: int = 0
    """Runs that were complete before."""


Watch = Callable[[State], None]


@dataclass(frozen=True)
class Where:
    """The executor of the runs, see :func:`fastsim.experiments.executors.executor.executor_on`, and the seconds that
    each run may take."""

    on: str = "processes"
    workers: int = 1
    address: str | None = None
    timeout_s: float | None = None

    def executor(self, items: int) -> Executor:
        """The executor for so many runs."""
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise ScenarioError("timeout_s", repr(self.timeout_s), "seconds above 0")
        most_s = None if self.timeout_s is None or self.on != "processes" else self.timeout_s + GRACE_S
        return executor_on(self.on, self.workers, items, self.address, most_s)


class Assignment(NamedTuple):
    """A run for a worker.

    ``sweep`` identifies the sweep in the object cache, ``base`` is the folder of relative paths, ``driver`` the process
    id of the caller.
    """

    scenario: Scenario
    name: str
    store: Store
    sweep: str
    timeout_s: float | None
    base: str
    driver: int


def run_to_store(assignment: Assignment) -> list[Message]:
    """Run one scenario and store its result; the answer is the run's warnings."""
    from fastsim.simulation.simulate import played

    if os.getpid() != assignment.driver and os.getcwd() != assignment.base and os.path.isdir(assignment.base):
        os.chdir(assignment.base)  # relative paths are those of the caller
    record = assignment.store.record(assignment.name)
    if record is not None and record.get("scenario_id") == assignment.scenario.id:
        return []  # an earlier worker stored the run and died before its answer arrived
    OBJECTS.cache_for(assignment.sweep)
    began = time.monotonic()

    def in_time(_: int) -> None:
        if assignment.timeout_s is not None and time.monotonic() - began > assignment.timeout_s:
            raise OutOfTime(f"took more than {assignment.timeout_s:g} s")

    def write(folder: Path) -> list[Message]:
        return played(assignment.scenario.with_(out=str(folder)), in_time)[1]

    messages: list[Message] = assignment.store.write_run(assignment.name, write)
    return messages


def swept(
    runs: Sequence[Run], out: str | os.PathLike[str], workers: int = 1, progress: Progress | None = None, *,
    where: Where | None = None, watch: Watch | None = None, storage_options: Mapping[str, Any] | None = None,
    name: str = "sweep",
) -> pl.DataFrame:  # fmt: skip
    """Run those that are not complete in this folder or URL, and write the table of all runs there.

    ``progress`` is called with the number of complete runs, ``watch`` with the ``State``. After an interruption, the
    same call goes on. Failed runs do not stop others; SweepFailed lists them at the end. ScenarioError before the
    first run if one cannot begin, with ``name`` as that of the sweep; ResultError if another sweep is writing to the
    folder.
    """
    store = store_at(out, storage_options)
    with interrupts.deferred(), store.held():
        missing = [run for run in runs if not is_complete(store, run)]
        refuse_mismatches(missing, name)
        return _swept(runs, missing, store, where or Where(workers=workers), (progress, watch))


def refuse_mismatches(runs: Sequence[Run], where: str) -> None:
    """ScenarioError that lists the runs whose policy, workload and cluster do not go together; nothing is run."""
    from fastsim.simulation.uses.inputs import refuse_mismatch

    found: dict[str, list[str]] = {}
    OBJECTS.cache_for(where)
    try:
        for run in runs:
            interrupts.check()
            try:
                refuse_mismatch(run.scenario)
            except FastsimError as error:
                found.setdefault(str(error), []).append(run.name)
    finally:
        OBJECTS.cache_for(None)
    if found:
        count = sum(map(len, found.values()))
        lines = [f"{name}{f' and {len(more)} more' if more else ''}: {text}" for text, (name, *more) in found.items()]
        raise ScenarioError(where, f"{count} of {len(runs)} runs that cannot begin", "none", "; ".join(lines))


def _swept(
    runs: Sequence[Run], missing: Sequence[Run], store: Store, where: Where,
    listeners: tuple[Progress | None, Watch | None],
) -> pl.DataFrame:  # fmt: skip
    _note_axes(store, runs)
    state = State(len(runs), kept=len(runs) - len(missing))
    failures = _run_missing(missing, store, where, state, listeners)
    table = table_of([run for run in runs if run.name not in failures], store)
    if table is not None:
        store.write_frame(TABLE, _with_failures(table, runs, failures))
    store.write_text(FAILED, json.dumps(failures, indent=1) + "\n" if failures else None)
    if table is None or failures:
        name, text = next(iter(failures.items()))
        message = f"{len(failures)} of {len(runs)} runs failed, see {store.path(FAILED)}; {name}: {text}"
        raise SweepFailed(message, table, failures)
    return table


def _run_missing(
    missing: Sequence[Run], store: Store, where: Where, state: State, listeners: tuple[Progress | None, Watch | None]
) -> dict[str, str]:
    """Run the missing ones; error messages by name of the run."""
    sweep, shown, failures = uuid.uuid4().hex, set[Message](), dict[str, str]()
    base, driver = os.getcwd(), os.getpid()
    positions = LongestFirst([run.scenario for run in missing])
    assignments = [
        Assignment(
            scenario=run.scenario,
            name=run.name,
            store=store,
            sweep=sweep,
            timeout_s=where.timeout_s,
            base=base,
            driver=driver,
        )
        for run in missing
    ]
    if not assignments:
        return failures
    if listeners[1] is not None:
        listeners[1](state)
    try:
        with where.executor(len(assignments)) as executor:
            for outcome in executor.completed(run_to_store, (assignments[at] for at in positions)):
                at = positions.order[outcome.at]
                if outcome.error is None:
                    positions.note_end(at)
                _take(outcome, assignments[at].name, failures, shown)
                state.done, state.failed = state.done + 1, len(failures)
                state.retried = executor.retries
                if listeners[0] is not None:
                    listeners[0](state.kept + state.done - state.failed)
                if listeners[1] is not None:
                    listeners[1](state)
    finally:
        OBJECTS.cache_for(None)
    return {run.name: failures[run.name] for run in missing if run.name in failures}


def _take(outcome: Outcome, name: str, failures: dict[str, str], shown: set[Message]) -> None:
    if outcome.error is None:
        warn(set(outcome.answer) - shown, depth=3)
        shown |= set(outcome.answer)
    elif isinstance(outcome.error, FastsimError):
        failures[name] = " ".join(str(outcome.error).split())
    else:
        failures[name] = f"internal error: {type(outcome.error).__name__}: {' '.join(str(outcome.error).split())}"


def _note_axes(store: Store, runs: Sequence[Run]) -> None:
    """Store the keys in which the runs differ; ResultError if the store's runs differ in other keys."""
    axes = list(runs[0].listed)
    text = store.text(PLAN)
    try:
        before = None if text is None else json_value(text)["axes"]
    except (ValueError, KeyError, TypeError):
        raise ResultError(f"{store.path(PLAN)}: found no readable list of axes, expected that of a sweep") from None
    if before is not None and before != axes:
        stored, expected = (", ".join(names) or "nothing" for names in (before, axes))
        raise ResultError(f"{store.path('')}: found runs by {stored}, expected by {expected}; choose another folder")
    if before is None:
        store.write_text(PLAN, json.dumps({"axes": axes}) + "\n")


def is_complete(store: Store, run: Run) -> bool:
    """Whether the store has this run; ResultError if it has another one of this name."""
    record = store.record(run.name)
    if record is None:
        return False
    if record.get("scenario_id") != run.scenario.id:
        path = store.path(run.name)
        raise ResultError(f"{path}: found another run, expected the one of the sweep; choose another folder")
    return True


def table_of(runs: Sequence[Run], store: Store) -> pl.DataFrame | None:
    """One row for each of these runs: its name, its values of the listed keys, and its summary."""
    import polars as pl

    rows = []
    for run in runs:
        row = store.frame(run.name, "summary")
        rows.append(pl.DataFrame({"run": [run.name], "id": [run.scenario.id], **_cells(run)}))
        rows[-1] = rows[-1].hstack(row.drop(run.listed, strict=False))
    return pl.concat(rows, how="diagonal_relaxed") if rows else None


def _with_failures(table: pl.DataFrame, runs: Sequence[Run], failures: Mapping[str, str]) -> pl.DataFrame:
    """The table with a row for each failed run: its keys, no figures, and what happened in the column ``error``."""
    import polars as pl

    failed = [run for run in runs if run.name in failures]
    if not failed:
        return table
    rows = [pl.DataFrame({"run": [run.name], "id": [run.scenario.id], **_cells(run), ERROR: [failures[run.name]]})
            for run in failed]  # fmt: skip
    return pl.concat([table, *rows], how="diagonal_relaxed")


def _cells(run: Run) -> dict[str, list[Any]]:
    """The values of the listed keys of a run, texts for objects."""
    return {name: [value if _is_plain(value) else str(value)] for name, value in run.listed.items()}


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | bool) or value is None


class _PolicyRuns:
    """Waiting runs of one policy under one load, the largest first."""

    def __init__(self, load: float) -> None:
        self.load = load
        self.waiting: deque[tuple[float, int]] = deque()
        self.begun = False
        self.least_s = math.inf
        """Least seconds per unit of effort so far, as others include the start of a worker."""

    def urgency(self) -> tuple[bool, float, float, float, int]:
        """Sort key, larger is earlier; ties go to the smallest position."""
        size, position = self.waiting[0]
        return not self.begun, self.least_s * size, size, self.load, -position


class LongestFirst(Iterator[int]):
    """Positions of runs, longest expected time first, by the times measured so far; ``order`` has those drawn."""

    def __init__(self, scenarios: Sequence[Scenario], clock_s: Callable[[], float] = time.monotonic) -> None:
        self.order: list[int] = []
        self._clock_s = clock_s
        self._kinds: list[_PolicyRuns] = []
        self._sizes: list[float] = []
        self._began_s: dict[int, float] = {}
        groups: dict[tuple[str, float], _PolicyRuns] = {}
        for scenario in scenarios:
            size, load = effort(scenario)
            self._kinds.append(groups.setdefault((str(scenario.policy), load), _PolicyRuns(load)))
            self._sizes.append(max(size, 1.0))
        for position in sorted(range(len(scenarios)), key=lambda position: -self._sizes[position]):
            self._kinds[position].waiting.append((self._sizes[position], position))
        self._left = list(groups.values())

    def __next__(self) -> int:
        if not self._left:
            raise StopIteration
        kind = max(self._left, key=_PolicyRuns.urgency)
        kind.begun = True
        _, position = kind.waiting.popleft()
        if not kind.waiting:
            self._left.remove(kind)
        self._began_s[position] = self._clock_s()
        self.order.append(position)
        return position

    def note_end(self, position: int) -> None:
        """Record that this run is complete, and its time."""
        took_s = self._clock_s() - self._began_s.pop(position)
        kind = self._kinds[position]
        kind.least_s = min(kind.least_s, took_s / self._sizes[position])


class SweepTable(NamedTuple):
    """A row for each run, and the keys in which the runs differ."""

    rows: pl.DataFrame
    axes: tuple[str, ...]


def sweep_table(place: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> SweepTable:
    """The table in the folder or at the URL of a finished sweep."""
    store = store_at(place, options)
    plan, rows = store.text(PLAN), store.whole(TABLE)
    if plan is None or rows is None:
        raise ResultError(f"{place}: found no {TABLE}, expected the folder of a sweep that has come to an end")
    return SweepTable(rows, tuple(json_value(plan)["axes"]))
