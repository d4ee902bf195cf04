"""An ordered round explained: the order of the jobs, what was free when each one's turn came, and who let none pass.

Jobs that keep their GPUs are served before all others. What those before a job hold counts as at the end of the round:
under ``tune`` some give resources back to others while the round is filled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastsim.decisions.rounds.columns import RUNS, WAITS, counted
from fastsim.decisions.rounds.replayed_round import Ids, PlayedRound, RoundReplay, Row
from fastsim.engine.orders.run import OrderedDriver
from fastsim.engine.orders.server_demands import RESOURCES
from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.outcome import GANG, RECORDS
from fastsim.scenario.sort_keys import MOST_TERMS
from fastsim_ext.rounds.snapshot import next_round_s, snapshot, sort_keys

Floats = npt.NDArray[np.float64]
WORDS = ("CPU", "memory", "storage")
"""Resources in words, in the order of ``RESOURCES``."""
SLACK = 1e-9
"""Relative room for rounding: shares of a server are no whole numbers."""


def ordered_rows(driver: OrderedDriver, t_s: float, ids: Ids) -> PlayedRound:
    """The round at ``t_s`` seconds."""
    history = History(driver)
    replay = RoundReplay(driver, t_s, lambda: next_round_s(driver.loop), history.note)
    replay.play()
    played = OrderedRound.of(driver, history, ids)
    rows = {job: [played.row(row)] for row, job in enumerate(played.job__j)}
    rows |= {job: [row] for job, row in played.outside(history.arrived(replay.began_s))}
    return PlayedRound(driver.loop.rounds - 1, replay.began_s, rows)


class Arrival(NamedTuple):
    """A job that is not admitted: arrival number, kind, GPUs."""

    job: int
    kind: int
    num_gpu: int


@dataclass
class History:
    """Notes before each round: the order of the last round, and the jobs that were read."""

    driver: OrderedDriver
    order: list[int] = field(default_factory=list)
    batches: list[JobBatch] = field(default_factory=list)
    drained: int = 0
    """Parts of the list of ended jobs that are of earlier rounds."""

    def __post_init__(self) -> None:
        self.driver.batches = self._kept(self.driver.batches)

    def _kept(self, batches: Iterable[JobBatch]) -> Iterator[JobBatch]:
        for batch in batches:
            self.batches.append(batch)
            yield batch

    def note(self) -> None:
        """Note the order, and take the records of the round before."""
        self.driver.collect_records()
        self.order, self.drained = self.driver.loop.ordered_jobs.ordered(), len(self.driver.ended_jobs)

    def arrived(self, now_s: float) -> list[Arrival]:
        """The jobs that have arrived and are not admitted."""
        submit_s, kind, num_gpu = (
            np.concatenate([np.zeros(0), *(batch[part] for batch in self.batches)]) for part in range(3)
        )
        late = range(self.driver.arrived, int(np.searchsorted(submit_s, now_s, "right")))
        return [Arrival(job, int(kind[job]), int(num_gpu[job])) for job in late]


class Found(NamedTuple):
    """The cluster when the turn of a job came: free GPUs, and the rest of each resource, by server."""

    turn: int
    free__s: npt.NDArray[np.int64]
    left__sr: Floats
    blocker: int | None
    """The row of the job that lets none pass."""


@dataclass
class OrderedRound:
    """The jobs of a round by row, their order, and what each one found."""

    driver: OrderedDriver
    ids: Ids
    job__j: list[int]
    """Arrival numbers."""
    num_gpu__j: list[int]
    kind__j: list[int]
    order: list[int]
    """Rows, the first one first."""
    key__jk: Floats
    tasks: dict[int, Any]
    """Record of each job that runs, by row, in the order in which they were served."""
    parts: dict[int, list[tuple[int, int, tuple[float, ...]]]]
    """By row: servers, GPUs on each, and shares of its resources."""
    found: dict[int, Found] = field(default_factory=dict)
    short: dict[int, int] = field(default_factory=dict)
    """By row: GPUs left for a job that is not served because those before it leave too few."""

    @classmethod
    def of(cls, driver: OrderedDriver, history: History, ids: Ids) -> OrderedRound:
        """The last round that was played."""
        loop = driver.loop
        driver.collect_records()
        left = np.frombuffer(loop.table.rows(), GANG)
        jobs = np.concatenate([left, *driver.ended_jobs[history.drained :]])
        jobs = jobs[np.argsort(jobs["id"])]
        count = len(jobs)
        keys = np.frombuffer(sort_keys(loop, count), np.float64).reshape(-1, MOST_TERMS)[:, : len(driver.plan.order)]
        rows = [*history.order, *range(len(history.order), count)]
        tasks = np.frombuffer(snapshot(loop)[1]["leases"], RECORDS["Task"])
        parts: dict[int, list[tuple[int, int, tuple[float, ...]]]] = {}
        for row, server, gpus, shares in loop.allocation.taken():
            parts.setdefault(row, []).append((server, gpus.bit_count(), shares))
        played = cls(
            driver, ids, jobs["id"].tolist(), jobs["num_gpu"].tolist(), jobs["kind"].tolist(),
            sorted(rows, key=lambda row: tuple(keys[row])), keys, {int(task["row"]): task for task in tasks}, parts,
        )  # fmt: skip
        played.serve()
        return played

    # ------------------------------------------------------------------ turns

    def serve(self) -> None:
        """Find what was free at every job's turn."""
        needs = self.driver.needs
        free__s, left__sr = np.array(needs.num_gpu__s, np.int64), needs.cap__sr.copy()
        absent = np.flatnonzero(self.driver.loop.allocation.absent())
        free__s[absent], left__sr[absent] = 0, 0.0
        blocker: int | None = None
        for turn, row in enumerate(self._served()):
            self.found[row] = Found(turn + 1, free__s.copy(), left__sr.copy(), blocker)
            for server, gpus, shares in self.parts.get(row, ()):
                free__s[server] -= gpus
                left__sr[server] -= shares
            if self.driver.plan.blocking and blocker is None and row not in self.tasks:
                blocker = row

    def _served(self) -> list[int]:
        """Rows in the order in which they are served: those that keep their GPUs, then the others."""
        chosen = self.driver.loop.chosen_rows()
        left = sum(self.driver.loop.leases.present_gpus())
        served = {*chosen}
        for row in self.order:
            if row in served:
                left -= self.num_gpu__j[row]
            else:
                self.short[row] = left
        kept: list[int] = []
        if self.driver.plan.sticky:
            for row, task in self.tasks.items():
                if not task["kept"] or (kept and task["priority"] < self.tasks[kept[-1]]["priority"]):
                    break
                kept.append(row)
        return kept + [row for row in chosen if row not in {*kept}]

    # ------------------------------------------------------------------ rows

    @cached_property
    def place(self) -> dict[int, int]:
        """Place of each row in the order, from 1."""
        return {row: place + 1 for place, row in enumerate(self.order)}

    def row(self, row: int) -> Row:
        """The row of a job."""
        found, task = self.found.get(row), self.tasks.get(row)
        model = self._best_model(row)
        servers = slice(*self.driver.needs.base[model : model + 2])
        blocker = None if found is None or task is not None else found.blocker
        return {
            **self._head(self.kind__j[row], self.num_gpu__j[row]), "state": WAITS if task is None else RUNS,
            "place": self.place[row], "turn": None if found is None else found.turn,
            "gpu_model": None if task is None else self.driver.setting.gpu_models[int(task["model"])],
            "key": (self.key__jk[row] + 0.0).tolist(),  # no minus before 0
            "free": self.short.get(row) if found is None else int(found.free__s[servers].sum()),
            "cpu_milli_free": None if found is None else float(found.left__sr[servers, 0].sum()),
            "memory_mib_free": None if found is None else float(found.left__sr[servers, 1].sum()),
            "gpus": 0 if task is None else int(task["num_gpu"]),
            "blocked_by": None if blocker is None else self.ids(self.job__j[blocker]), "why": self.why(row),
        }  # fmt: skip

    def outside(self, arrivals: list[Arrival]) -> Iterator[tuple[int, Row]]:
        """Arrival numbers and rows of jobs that have arrived and are not admitted."""
        asked = sum(self.num_gpu__j)
        most = self.driver.plan.admit * sum(self.driver.needs.num_gpu__s)
        why = f"waits outside: admitted jobs ask for {counted(asked, 'GPU')}, and more than {most:,.10g} are too many"
        for job, kind, num_gpu in arrivals:
            yield job, {
                **self._head(kind, num_gpu), "state": WAITS, "place": None, "turn": None, "gpu_model": None,
                "key": None, "free": None, "cpu_milli_free": None, "memory_mib_free": None, "gpus": 0,
                "blocked_by": None, "why": why,
            }  # fmt: skip

    def _head(self, kind: int, num_gpu: int) -> Row:
        cpu_milli, memory_mib = self.driver.needs.need__kr[kind, :2].tolist()
        return {"terms": [*self.driver.plan.order], "asks": num_gpu, "cpu_milli": cpu_milli, "memory_mib": memory_mib}

    def _usable(self, row: int) -> list[int]:
        """GPU models on which a job makes progress."""
        return np.flatnonzero(self.driver.needs.step_s__kg[self.kind__j[row]] > 0).tolist()

    def _free(self, row: int, model: int) -> int:
        """GPUs of a model that were free at a job's turn; all that are there if it had none."""
        if row not in self.found:
            return int(self.driver.loop.leases.present_gpus()[model])
        servers = slice(*self.driver.needs.base[model : model + 2])
        return int(np.sum(self.found[row].free__s[servers]))

    def _best_model(self, row: int) -> int:
        """The model that a job runs on, else the one with most free GPUs of those it can use."""
        if row in self.tasks:
            return int(self.tasks[row]["model"])
        return max(self._usable(row), key=lambda model: (self._free(row, model), -model), default=0)

    # ------------------------------------------------------------------ why

    def why(self, row: int) -> str:
        """Why a job runs or not."""
        found, asks, task = self.found.get(row), self.num_gpu__j[row], self.tasks.get(row)
        if task is not None:
            kept = ", those of the last round" if task["kept"] and asks else ""
            return f"runs on {counted(asks, 'GPU')} of {self.driver.setting.gpu_models[int(task['model'])]}{kept}"
        if found is None:
            return f"asks for {counted(asks, 'GPU')}, and jobs before it in the order leave {self.short[row]:,}"
        if found.blocker is not None:
            return (
                f"job {self.ids(self.job__j[found.blocker])} before it has no GPUs, and none behind that one may start"
            )
        free = self._free(row, self._best_model(row))
        if free < asks:
            return f"asks for {counted(asks, 'GPU')}, and {free:,} {'was' if free == 1 else 'were'} free at its turn"
        lacking = self._lacking(row) or WORDS[:2]
        there = f"{counted(free, 'GPU')} {'is' if free == 1 else 'are'} free"
        return f"{there}, but the servers lack {' and '.join(lacking)} beside {'it' if free == 1 else 'them'}"

    def _lacking(self, row: int) -> tuple[str, ...]:
        """The resources that each alone keep a job from the free GPUs, on every model with enough of them."""
        asks, names = self.num_gpu__j[row], []
        models = [model for model in self._usable(row) if self._free(row, model) >= asks]
        for r, word in enumerate(WORDS):
            if all(self._hosted(row, model, r) < max(asks, 1) for model in models):
                names.append(word)
        return tuple(names)

    def _hosted(self, row: int, model: int, resource: int) -> int:
        """GPUs of a model beside which there is enough of a resource; servers, for a job without GPUs."""
        asks, needs, found = self.num_gpu__j[row], self.driver.needs, self.found[row]
        need, hosted = float(needs.need__kr[self.kind__j[row], resource]), 0
        for server in range(*needs.base[model : model + 2]):
            each = need / max(asks, 1)
            if self.driver.plan.mechanism == "tune" and needs.num_gpu__s[server]:
                each = min(each, needs.cap__sr[server, resource] / needs.num_gpu__s[server])
            most = int(found.free__s[server]) if asks else 1
            left = float(found.left__sr[server, resource]) * (1 + SLACK) + SLACK
            hosted += most if each <= 0 else min(most, int(left / each))
        return hosted


assert len(WORDS) == len(RESOURCES)
