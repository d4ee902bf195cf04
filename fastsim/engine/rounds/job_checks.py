"""Jobs that can run at all: those that cannot are told before they wait for ever."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.options import Setting
from fastsim.errors import InputError


def runnable(batches: Iterable[JobBatch], setting: Setting, gpus: tuple[int, ...]) -> Iterator[JobBatch]:
    """The batches, each refused if one of its jobs can never run or its rate is not known."""
    oracle, most, start = setting.oracle, np.array(gpus), 0
    for batch in batches:
        rates = oracle.alone__kg[batch.kind]
        fits = batch.num_gpu[:, None] <= most
        _refuse(batch, start, (np.isnan(rates) & fits).any(axis=1), oracle.kinds, "no rate on some GPU model")
        _refuse(batch, start, ~fits.any(axis=1), oracle.kinds, f"at most {most.max(initial=0)} GPUs of one model")
        _refuse(batch, start, ~((rates > 0) & fits).any(axis=1), oracle.kinds, "a rate above 0 on some GPU model")
        start += len(batch.kind)
        yield batch


def _refuse(batch: JobBatch, start: int, wrong: Any, kinds: Any, expected: str) -> None:
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        workload, num_gpu = kinds[batch.kind[row]]
        raise InputError(f"job {start + row}", f"{workload} on {num_gpu} GPUs", expected)
