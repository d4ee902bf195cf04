"""Batches of jobs for the loops of rounds: kinds instead of names, steps instead of durations.

A workload without a `workload` column is one of pods: each runs for its `duration_s` at one step a second, on any
GPU model, and never shares GPUs. In ordered rounds, pods with equal requests are of one kind (:class:`PodBatches`).
:func:`runnable` refuses jobs that could never run, before they wait for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastsim.engine.rounds.accepted_kinds import AcceptedKinds
from fastsim.engine.rounds.options import Job, Setting
from fastsim.errors import InputError
from fastsim.performance.oracle import POD, Oracle
from fastsim.scenario.column_values import Floats, SortColumns, deadlines, filled
from fastsim.workload import Workload
from fastsim.workload import schema as s
from fastsim.workload.oversized_pods import smaller_jobs

Request = tuple[int, int, int]
"""GPUs, milli-CPU, MiB."""


class JobBatch(NamedTuple):
    """Jobs in order of arrival, as columns: seconds, GPUs of the gang, steps."""

    submit_s: npt.NDArray[np.float64]
    kind: npt.NDArray[np.int32]
    num_gpu: npt.NDArray[np.int32]
    total_steps: npt.NDArray[np.float64]
    weight: npt.NDArray[np.float64]
    deadline_s: npt.NDArray[np.float64]
    tenant: npt.NDArray[np.int32]

    @classmethod
    def of(cls, jobs: list[Job]) -> JobBatch:
        """Columns of a few jobs, without tenants."""
        rows = list(zip(*jobs, strict=True)) if jobs else [()] * 7
        return cls(
            np.array(rows[0], np.float64), np.array(rows[1], np.int32), np.array(rows[2], np.int32),
            np.array(rows[3], np.float64), np.array(rows[4], np.float64), np.array(rows[5], np.float64),
            np.full(len(jobs), -1, np.int32),
        )  # fmt: skip


@dataclass
class JobBatches:
    """The jobs of the workload called ``name``, batch by batch; ``tenants`` are the names met so far, by code.

    ``ideal__k`` is the rate of each kind that durations refer to, steps/s. ``accepted`` has the kinds of jobs that
    accept some GPU models only, which the oracle does not have. ``values`` of the columns ``sorting``, by which an
    order sorts, are collected as batches pass.
    """

    name: str
    source: Callable[[], Iterator[pa.RecordBatch]]
    oracle: Oracle
    ideal__k: npt.NDArray[np.float64]
    tenants: list[str] = field(default_factory=list)
    rows: int = 0
    accepted: AcceptedKinds | None = None
    sorting: SortColumns | None = None
    values: list[Floats] = field(default_factory=list)

    def __iter__(self) -> Iterator[JobBatch]:
        for batch in self.source():
            yield self.columns(batch)
            self.rows += batch.num_rows

    def columns(self, batch: pa.RecordBatch) -> JobBatch:
        """One record batch as columns of the engine."""
        submit = batch[s.SUBMIT_S].to_numpy()
        num_gpu = batch[s.NUM_GPU].to_numpy().astype(np.int32)
        kind = self.kinds(batch)
        ideal = self._ideal_s(batch, kind)
        if self.sorting:
            self.values.append(self.sorting.values(batch, ideal))
        return JobBatch(
            submit_s=submit,
            kind=kind,
            num_gpu=num_gpu,
            total_steps=self._steps(batch, kind),
            weight=filled(batch, s.WEIGHT, 1.0),
            deadline_s=np.nan_to_num(deadlines(batch, ideal), nan=np.inf, posinf=np.inf),
            tenant=self._tenants(batch),
        )

    def kinds(self, batch: pa.RecordBatch) -> npt.NDArray[np.int32]:
        """The kind of every row."""
        plain = self.plain_kinds(batch)
        return plain if self.accepted is None else self.accepted.kinds(batch, plain)

    def with_plain_kinds(
        self, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[tuple[pa.RecordBatch, npt.NDArray[np.int32]]]:
        """Each batch with the kinds of its rows as if all jobs accepted every GPU model; rows count from the first."""
        for batch in batches:
            yield batch, self.plain_kinds(batch)
            self.rows += batch.num_rows
        self.rows = 0

    def plain_kinds(self, batch: pa.RecordBatch) -> npt.NDArray[np.int32]:
        """The kind of every row as if all jobs accepted every GPU model."""
        num_gpu = batch[s.NUM_GPU].to_numpy()
        names = [POD] * batch.num_rows
        if s.WORKLOAD in batch.schema.names:
            names = [POD if name is None else name for name in batch[s.WORKLOAD].to_pylist()]
        index = self.oracle.kind_index
        kinds = [index.get(kind, -1) for kind in zip(names, num_gpu.tolist(), strict=True)]
        for row, kind in enumerate(kinds):
            if kind < 0:
                where = f"{self.name}:{self.rows + row + 1}: workload"
                expected = f"a kind that {self.oracle.name} has (rates= names others)"
                raise InputError(where, f"{names[row]!r} on {num_gpu[row]} GPUs", expected)
        return np.array(kinds, np.int32)

    def _steps(self, batch: pa.RecordBatch, kind: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        steps = filled(batch, s.TOTAL_WORK)
        if np.isnan(steps).any():
            steps = np.where(np.isnan(steps), filled(batch, s.DURATION_S) * self.ideal__k[kind], steps)
        if np.isnan(steps).any():
            row = self.rows + int(np.flatnonzero(np.isnan(steps))[0]) + 1
            where = f"{self.name}:{row}: total_work, duration_s"
            raise InputError(where, "neither", "one of them: a job that runs in rounds has an end")
        return steps

    def _ideal_s(self, batch: pa.RecordBatch, kind: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        """Seconds each job would take alone on the fastest model."""
        duration = filled(batch, s.DURATION_S)
        return np.where(np.isnan(duration), self._steps(batch, kind) / self.ideal__k[kind], duration)

    def _tenants(self, batch: pa.RecordBatch) -> npt.NDArray[np.int32]:
        if s.TENANT not in batch.schema.names:
            return np.full(batch.num_rows, -1, np.int32)
        codes = {name: code for code, name in enumerate(self.tenants)}
        code = []
        for name in batch[s.TENANT].to_pylist():
            if name is not None and name not in codes:
                codes[name] = len(self.tenants)
                self.tenants.append(name)
            code.append(-1 if name is None else codes[name])
        return np.array(code, np.int32)


def requests_of(workload: Workload) -> list[Request]:
    """The different requests of a workload, sorted."""
    return sorted({request for batch in workload.batches() for request in _rows(batch)})


def request_oracle(requests: list[Request], gpu_models: tuple[str, ...]) -> Oracle:
    """Rates of pods: one step a second for every request on every GPU model, GPUs never shared."""
    shape = (len(requests), len(gpu_models))
    together = np.broadcast_to(np.zeros(1), (len(requests), *shape))
    return Oracle(tuple((POD, request[0]) for request in requests), gpu_models, np.ones(shape), together, "pods")


def needs_by_kind(requests: list[Request]) -> npt.NDArray[np.float64]:
    """Milli-CPU and MiB of every request."""
    return np.array([request[1:] for request in requests], np.float64).reshape(len(requests), 2)


@dataclass
class PodBatches(JobBatches):
    """The pods of a workload, batch by batch; the kind of a pod is the position of its request."""

    requests: list[Request] = field(kw_only=True)

    def plain_kinds(self, batch: pa.RecordBatch) -> npt.NDArray[np.int32]:
        """The position of every row's request."""
        index = {request: kind for kind, request in enumerate(self.requests)}
        return np.array([index[request] for request in _rows(batch)], np.int32)


def _rows(batch: pa.RecordBatch) -> list[Any]:
    columns = (batch[name].to_pylist() for name in (s.NUM_GPU, s.CPU_MILLI, s.MEMORY_MIB))
    return list(zip(*columns, strict=True))


def runnable(batches: Iterable[JobBatch], setting: Setting, gpus: tuple[int, ...]) -> Iterator[JobBatch]:
    """The batches; InputError for a job that could never run or whose rate is not known."""
    oracle, most, start = setting.oracle, np.array(gpus), 0
    for batch in batches:
        rates = oracle.alone__kg[batch.kind]
        fits = batch.num_gpu[:, None] <= most
        _refuse(batch, start, (np.isnan(rates) & fits).any(axis=1), oracle.kinds, "no rate on some GPU model")
        expected = f"at most {most.max(initial=0)} GPUs of one model"
        _refuse(
            batch=batch,
            start=start,
            wrong=~fits.any(axis=1),
            kinds=oracle.kinds,
            expected=expected,
            do=f"leave such jobs out: {smaller_jobs('drop')}",
        )
        _refuse(batch, start, ~((rates > 0) & fits).any(axis=1), oracle.kinds, "a rate above 0 on some GPU model")
        start += len(batch.kind)
        yield batch


def _refuse(batch: JobBatch, start: int, wrong: Any, kinds: Any, expected: str, do: str = "") -> None:
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        workload, num_gpu = kinds[batch.kind[row]]
        raise InputError(f"job {start + row}", f"{workload} on {num_gpu} GPUs", expected, do)
