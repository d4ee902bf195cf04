"""How long jobs had GPUs, worked out slowly from what each of them held in each round."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


class Held(NamedTuple):
    """What a job held from the beginning of a round until it was done or the round was over."""

    round: int
    job: int
    mate: int
    gpus: tuple[int, ...]
    begin_s: float
    end_s: float
    alone_s: float
    """Seconds in which it had the GPUs by itself, and half of those that it shared."""
    price: float
    vain: bool = False
    """A node went away, so that it does not go on there."""


@dataclass
class Tenure:
    """A job's time with GPUs and without them."""

    gpu_s: float = 0.0
    cost: float = 0.0
    paused_s: float = 0.0
    restarts: int = 0
    preemptions: int = 0
    last: Held | None = None

    def go_on(self, held: Held) -> None:
        """Add what it held in one more round."""
        before, self.last = self.last, held
        self.gpu_s += held.alone_s * len(held.gpus)
        self.cost += held.alone_s * len(held.gpus) * held.price / 3600
        if before is None:
            return
        goes_on = (before.round + 1, before.gpus, before.mate) == (held.round, held.gpus, held.mate)
        self.restarts += before.vain or not goes_on
        self.preemptions += held.begin_s > before.end_s
        self.paused_s += held.begin_s - before.end_s


def tenures(jobs: int, told: Iterable[Held]) -> list[Tenure]:
    """The tenure of each job, from what was held in order of the rounds."""
    found = [Tenure() for _ in range(jobs)]
    for held in told:
        found[held.job].go_on(held)
    return found


def held_in_rounds(
    history: Iterable[tuple[int, float, Any]], ends: list[float | None], last_s: float
) -> Iterator[Held]:
    """What tasks of ``share_rounds`` held; ``ends`` of jobs, None of one that is not complete, and of the run."""
    by_round: dict[int, list[tuple[float, Any]]] = {}
    for turn, now_s, task in history:
        by_round.setdefault(turn, []).append((now_s, task))
    last = {job: turn for turn, tasks in by_round.items() for _, task in tasks for job in task.candidate}
    for turn, tasks in by_round.items():
        over_s = min(last_s, max(task.finish_s for _, task in tasks))
        for now_s, task in tasks:
            until = [over_s if ends[job] is None or last[job] != turn else ends[job] for job in task.candidate]
            both_s = min(until) - now_s if len(until) == 2 else 0.0
            for job, end_s in zip(task.candidate, until, strict=True):
                mate = next((other for other in task.candidate if other != job), -1)
                yield Held(turn, job, mate, task.gpus, now_s, end_s, end_s - now_s - both_s / 2, task.price, task.vain)


def same_tenures(rows: Any, told: list[Tenure], priced: bool) -> bool:
    """Whether records of jobs say so."""
    counts = [(row["restarts"], row["preemptions"] - pauses(row, one)) for row, one in zip(rows, told, strict=True)]
    if counts != [(one.restarts, one.preemptions) for one in told]:
        return False
    for name in ("gpu_s", "paused_s", *(("cost",) if priced else ())):
        if not np.allclose(rows[name], [getattr(one, name) for one in told], rtol=1e-9, atol=1e-6):
            return False
    return True


def pauses(row: Any, one: Tenure) -> bool:
    """Whether the job had GPUs, and waits for some at the end of the run."""
    return one.last is not None and not row["ended"] and not row["holds"]
