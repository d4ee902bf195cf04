"""What a run in rounds compares when it goes on from a state: properties of the run, policy, jobs that had arrived.

A resumed run reads the same jobs again and skips those that had arrived; its result is that of an uninterrupted run,
to the bit. After ``RunState.without_memory`` another policy may resume, so that many policies share one warm-up. That
policy begins without a state of its own, and allocates as soon as ``realloc_s`` allows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim.engine.checkpoints.state import RunState, other_than, short_text
from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.node_outages import NodeOutages
from fastsim.engine.rounds.options import RoundOptions, Setting
from fastsim.engine.rounds.outcome import GANG, MOMENT
from fastsim.engine.tables import ROW
from fastsim.errors import InputError, PolicyError

DECIDED = (
    "policies", "gpu_models", "gpus", "seed", "rates", "round_s", "realloc_s", "restart_s", "window", "global_queue",
    "prices", "compat", "endless", "recorded", "measured", "records", "estimates", "begin_s", "nodes",
)  # fmt: skip
"""Properties of a run that a resumed run must share; the end of the run may differ."""
COLUMNS = ("submit_s", "kind", "num_gpu", "total", "weight", "deadline_s", "tenant")
"""Fields of a job's record in the order of the columns of a batch."""


def check_decided(state: RunState, decided: Mapping[str, Any], policy: list[Any]) -> None:
    """ScenarioError or PolicyError if a run with other properties or another policy is to resume from this state."""
    then, before = state.meta["decided"], state.meta["policy"]
    for name in DECIDED:
        if then[name] != decided[name]:
            raise other_than(f"checkpoint: {name}", decided[name], then[name])
    if before is not None and before != policy:
        expected = f"{short_text(before)}, as before"
        raise PolicyError("checkpoint", short_text(policy), expected, "another policy goes on with without_memory()")


def jobs_to_come(state: RunState, batches: Iterable[JobBatch]) -> Iterator[JobBatch]:
    """The jobs that had not arrived at this state, or were not admitted; those that were must be the same."""
    arrived, start = arrived_jobs(state), 0
    known = max(len(arrived), state.meta["loop"].get("reported", 0))
    for batch in batches:
        rest = _rest(arrived, batch, start)
        start += len(batch.kind)
        if len(rest.kind):
            yield rest
    if start < known:
        expected = f"at least {known}, as when the checkpoint was written"
        raise InputError("workload", f"{start} jobs", expected)


def arrived_jobs(state: RunState) -> npt.NDArray[Any]:
    """Records of the jobs that had arrived, by id."""
    jobs = np.concatenate([state.arrays[name].view(GANG) for name in ("ended_jobs", "gangs")])
    return jobs[np.argsort(jobs["id"])]


def _rest(arrived: npt.NDArray[Any], batch: JobBatch, start: int) -> JobBatch:
    here = arrived[start : start + len(batch.kind)]
    columns: list[npt.NDArray[Any]] = list(batch)
    for name, column in zip(COLUMNS, columns, strict=True):
        wrong = here[name] != column[: len(here)]
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            expected = f"{here[name][row]}, as when the checkpoint was written"
            raise InputError(f"job {start + row}: {name}", column[row], expected)
    return JobBatch(*(column[len(here) :] for column in columns))


def decisions(
    setting: Setting, options: RoundOptions, gpus: tuple[int, ...], recorded: bool, measured: bool,
    nodes: NodeOutages | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Everything that decides a run in rounds besides its jobs and its policy."""
    names = ("round_s", "realloc_s", "restart_s", "global_queue", "endless", "begin_s")
    return {
        "policies": "of shares", "window": None if options.window is None else list(options.window),
        "gpu_models": list(setting.gpu_models), "gpus": list(gpus), "seed": setting.seed, "rates": _rates(setting),
        "prices": options.prices is not None, "compat": sorted(options.compat), "recorded": recorded,
        "measured": measured, "records": [repr(kind.descr) for kind in (GANG, MOMENT, ROW)],
        "nodes": None if nodes is None else nodes.checksum(),
        **{name: getattr(options, name) for name in names},
    }  # fmt: skip


def _rates(setting: Setting) -> str:
    total = hashlib.sha256(repr(setting.oracle.kinds).encode())
    for table in (setting.oracle.alone__kg, setting.oracle.shared__kkg):
        one = table.size > 1 and not any(table.strides)  # all cells are one place in memory
        total.update(repr(table.shape).encode() if one else b"")
        total.update(np.ascontiguousarray(table[:1, :1, :1] if one else table).tobytes())
    return total.hexdigest()
