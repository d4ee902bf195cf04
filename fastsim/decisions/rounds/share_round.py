"""A round of shares explained: the line of each GPU model, and what each job lacked when its turn came.

The lines are made again from the accounts that the round began with. What ran is read off the round itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastsim.decisions.rounds.columns import RUNS, WAITS, counted
from fastsim.decisions.rounds.replayed_round import Ids, PlayedRound, RoundReplay, Row
from fastsim.engine.rounds.options import LARGE
from fastsim.engine.rounds.outcome import GANG, RECORDS
from fastsim.engine.shares.run import ShareDriver
from fastsim_ext.rounds.snapshot import next_round_s, snapshot, visited

Records = npt.NDArray[Any]
NEVER = 0
"""State in the account of a pair that has not run on a model."""


def share_rows(driver: ShareDriver, t_s: float, ids: Ids) -> PlayedRound:
    """The round at ``t_s`` seconds."""
    replay = RoundReplay(driver, t_s, lambda: next_round_s(driver.loop), driver.collect_records)
    replay.play()
    driver.collect_records()
    played = ShareRound.of(driver, ids)
    rows = {int(job): [*played.rows(row)] for row, job in enumerate(played.jobs["id"].tolist())}
    return PlayedRound(driver.loop.rounds - 1, replay.began_s, rows)


class Claim(NamedTuple):
    """A job, or a pair of jobs, on a GPU model: its row, that of its mate or -1, and the model."""

    row: int
    mate: int
    model: int

    @property
    def rows(self) -> tuple[int, ...]:
        """The rows of its jobs."""
        return (self.row,) if self.mate < 0 else (self.row, self.mate)


class Candidate(NamedTuple):
    """A job or a pair in the line of a GPU model, with the figures of its account."""

    at: Claim
    priority: float
    share: float
    received_s: float
    deficit_s: float
    order: int
    """Of equal candidates the smallest comes first."""

    @property
    def model(self) -> int:
        """The GPU model."""
        return self.at.model

    @property
    def rank(self) -> tuple[float, ...]:
        """The sort key of a line."""
        return (-self.priority, -self.deficit_s, -self.share, self.order)


class Turn(NamedTuple):
    """The turn of a candidate: its place, the free GPUs, and whether it came after the last that ran."""

    place: int
    free: int
    behind: Candidate | None
    """The last candidate of the model that ran, if this one comes after it."""


@dataclass
class ShareRound:
    """The accounts of a round, its tasks, and the rules of its lines."""

    driver: ShareDriver
    ids: Ids
    jobs: Records
    accounts__jg: Records
    pairs: Records
    shared__pg: Records
    type_time__g: npt.NDArray[np.float64]
    visit: list[int]
    tasks: dict[Claim, int]
    """GPUs of each candidate that runs."""
    turns: dict[Claim, Turn] = field(default_factory=dict)
    reserved: dict[int, int] = field(default_factory=dict)
    """The model on which a job without a share yet keeps GPUs free, by row."""

    @classmethod
    def of(cls, driver: ShareDriver, ids: Ids) -> ShareRound:
        """The last round that was played."""
        parts, width = snapshot(driver.loop)[1], len(driver.setting.gpu_models)
        tasks = np.frombuffer(parts["leases"], RECORDS["Task"])
        keys = map(Claim, tasks["row"].tolist(), tasks["mate"].tolist(), tasks["model"].tolist())
        played = cls(
            driver, ids, np.frombuffer(parts["gangs"], GANG),
            np.frombuffer(parts["claims"], RECORDS["ShareAccount"]).reshape(-1, width),
            np.frombuffer(parts["couples"], RECORDS["Pair"]),
            np.frombuffer(parts["shared"], RECORDS["ShareAccount"]).reshape(-1, width),
            np.frombuffer(parts["type_time"], np.float64), visited(driver.loop),
            dict(zip(keys, tasks["num_gpu"].tolist(), strict=True)),
        )  # fmt: skip
        played.serve()
        return played

    @cached_property
    def held(self) -> dict[int, Claim]:
        """The task of each job that runs, by row."""
        return {row: task for task in self.tasks for row in task.rows}

    @cached_property
    def of_model(self) -> dict[int, list[Candidate]]:
        """The candidates of each model."""
        return {model: list(self._candidates(model)) for model in self.visit}

    @cached_property
    def of_row(self) -> dict[int, list[Candidate]]:
        """The candidates that a job is part of, model by model as they are filled."""
        found: dict[int, list[Candidate]] = {}
        for model in self.visit:
            for candidate in self.of_model[model]:
                for row in candidate.at.rows:
                    found.setdefault(row, []).append(candidate)
        return found

    # ------------------------------------------------------------------ the lines

    def serve(self) -> None:
        """Find the turn of every candidate."""
        served: set[int] = set()
        lines = [self.visit] if self.driver.options.global_queue else [[model] for model in self.visit]
        for line in lines:
            self._serve_line(line, served)

    def _serve_line(self, models: list[int], served: set[int]) -> None:
        """Serve these models in one line; ``served`` are the rows of jobs that have been."""
        span = (len(self.jobs) + 1) ** 2
        waiting = [
            candidate._replace(order=candidate.order + number * span)
            for number, model in enumerate(models) for candidate in self.of_model[model]
            if self.enters(candidate) and served.isdisjoint(candidate.at.rows)
        ]  # fmt: skip
        waiting.sort(key=lambda candidate: candidate.rank)
        free = {model: self.room(model) for model in models}
        last: dict[int, int] = {}
        left__c: list[int] = []
        for number, candidate in enumerate(waiting):
            left__c.append(free[candidate.model])
            if self._takes(candidate, free[candidate.model], served):
                free[candidate.model] -= self.asks(candidate)
                served.update(candidate.at.rows)
                last[candidate.model] = number
        for number, (candidate, left) in enumerate(zip(waiting, left__c, strict=True)):
            at = last.get(candidate.model, number)
            self.turns[candidate.at] = Turn(number + 1, left, waiting[at] if at < number else None)

    def _takes(self, candidate: Candidate, left: int, served: set[int]) -> bool:
        """Whether a candidate gets its GPUs, to run or to keep them free."""
        if candidate.at in self.tasks:
            return True
        rows = candidate.at.rows
        if all(self.jobs["known"][row] for row in rows) or not self.driver.options.quirk("new_job_reserves_gpus"):
            return False
        fits = self.asks(candidate) <= left and served.isdisjoint(rows)
        if fits:
            self.reserved |= dict.fromkeys(rows, candidate.model)
        return fits

    def enters(self, candidate: Candidate) -> bool:
        """Whether a candidate is in the line of its model."""
        if self.driver.plan.strict and not candidate.priority > 0:
            return False
        return self.asks(candidate) <= self.room(candidate.model) and self.progresses(candidate)

    def room(self, model: int) -> int:
        """GPUs of a model that are there."""
        return int(self.driver.loop.leases.present_gpus()[model])

    def progresses(self, candidate: Candidate) -> bool:
        """Whether the job, or each of both, makes progress on the model."""
        oracle, kind = self.driver.setting.oracle, self.jobs["kind"]
        one, model = kind[candidate.at.row], candidate.model
        if candidate.at.mate < 0:
            return bool(oracle.alone__kg[one, model] > 0)
        two = kind[candidate.at.mate]
        return bool(oracle.shared__kkg[one, two, model] > 0 and oracle.shared__kkg[two, one, model] > 0)

    def asks(self, candidate: Candidate) -> int:
        """GPUs of the job, or of the pair."""
        return int(self.jobs["num_gpu"][candidate.at.row])

    def _candidates(self, model: int) -> Iterator[Candidate]:
        """All jobs, and all pairs that have a share, have run, or run."""
        count = len(self.jobs)
        for row in range(count):
            yield self._candidate(Claim(row, -1, model), self.accounts__jg[row, model], row * (count + 1))
        for pair, (row, mate) in enumerate(zip(self.pairs["row"].tolist(), self.pairs["mate"].tolist(), strict=True)):
            account, at = self.shared__pg[pair, model], Claim(row, mate, model)
            if account["share"] > 0 or account["ran"] > NEVER or at in self.tasks:
                yield self._candidate(at, account, mate * (count + 1) + row + 1)

    def _candidate(self, at: Claim, account: Any, order: int) -> Candidate:
        """A candidate with the figures of its account."""
        share, received_s = float(account["share"]), float(account["received"])
        part = self.part(at.model, received_s)
        priority = (share / part if part > 0 else share * LARGE) if share else 0.0
        return Candidate(
            at=at,
            priority=priority,
            share=share,
            received_s=received_s,
            deficit_s=float(account["deficit"]),
            order=order,
        )

    def part(self, model: int, received_s: float) -> float:
        """Time on a model over that of all jobs together."""
        total_s = float(self.type_time__g[model])
        return received_s / total_s if total_s else 0.0

    # ------------------------------------------------------------------ rows

    def rows(self, row: int) -> Iterator[Row]:
        """The rows of a job: itself on each model, and its pairs that have a share or run."""
        for candidate in self.of_row[row]:
            if candidate.at.mate >= 0 and not (candidate.share > 0 or candidate.at in self.tasks):
                continue
            turn = self.turns.get(candidate.at)
            mate = next((other for other in candidate.at.rows if other != row), None)
            yield {
                "state": RUNS if row in self.held else WAITS, "gpu_model": self.name(candidate.model),
                "place": None if turn is None else turn.place, "mate_id": None if mate is None else self.id_of(mate),
                "share": candidate.share, "received_s": candidate.received_s,
                "received": self.part(candidate.model, candidate.received_s), "priority": candidate.priority,
                "deficit_s": candidate.deficit_s, "asks": self.asks(candidate),
                "free": None if turn is None else turn.free, "gpus": self.tasks.get(candidate.at, 0),
                "why": self.why(candidate, row, turn),
            }  # fmt: skip

    def id_of(self, row: int) -> int:
        """The id of the job in a row."""
        return self.ids(int(self.jobs["id"][row]))

    def name(self, model: int) -> str:
        """Name of a GPU model."""
        return self.driver.setting.gpu_models[model]

    def who(self, at: Claim) -> str:
        """The jobs of a candidate in words."""
        return " with ".join(f"job {self.id_of(row)}" for row in at.rows)

    def why(self, candidate: Candidate, row: int, turn: Turn | None) -> str:
        """Why a candidate runs or not, for the job in this row."""
        model, asks = self.name(candidate.model), self.asks(candidate)
        mate = next((f"job {self.id_of(other)}" for other in candidate.at.rows if other != row), None)
        if candidate.at in self.tasks:
            return f"runs on {counted(asks, 'GPU')} of {model}" + (f", which it shares with {mate}" if mate else "")
        if not self.progresses(candidate):
            return f"its rate on {model} is 0" if mate is None else f"beside {mate} the rate on {model} is 0"
        if (room := self.room(candidate.model)) < asks:
            return f"asks for {counted(asks, 'GPU')}, and there {'is' if room == 1 else 'are'} {room:,} of {model}"
        if self.reserved.get(row) == candidate.model and row not in self.held:
            return (
                f"waits for a share, and {counted(asks, 'GPU')} of {model} {'is' if asks == 1 else 'are'} kept for it"
            )
        if turn is None:
            return self._outside(candidate, row)
        return self._passed(candidate, row, turn)

    def _outside(self, candidate: Candidate, row: int) -> str:
        """Why a candidate is not in the line of a model on which it could run."""
        if self.driver.plan.strict and not candidate.priority > 0:
            return f"{self._unshared(candidate)}, and only jobs with a share run"
        return self._elsewhere(candidate, row) or self._unshared(candidate)

    def _unshared(self, candidate: Candidate) -> str:
        """That a candidate has no share."""
        fresh = candidate.at.mate < 0 and not self.jobs["known"][candidate.at.row]
        if fresh:
            return "has no share yet, as it came after the last allocation"
        return f"has no share of {self.name(candidate.model)}"

    def _passed(self, candidate: Candidate, row: int, turn: Turn) -> str:
        """Why a candidate in the line of a model does not run there."""
        model, asks = self.name(candidate.model), self.asks(candidate)
        if turn.free >= asks or self._overtaken(candidate, turn):
            return self._elsewhere(candidate, row) or f"{counted(asks, 'GPU')} of {model} are kept for another job"
        left = (
            f"{turn.free:,} of the {counted(asks, 'GPU')} that it asks for {'was' if turn.free == 1 else 'were'} left"
        )
        left = "no GPU was left" if not turn.free else left
        if not candidate.share:
            return f"{self._unshared(candidate)}, and {left}"
        if turn.behind is None:
            return f"its turn was before that of the last that ran on {model}, but {left}"
        return f"{self._behind(candidate, turn.behind)}, the last that ran on {model}, and {left}"

    def _overtaken(self, candidate: Candidate, turn: Turn) -> bool:
        """Whether one of the jobs ran by an earlier turn of the same line."""
        tasks = [self.held[job] for job in candidate.at.rows if job in self.held]
        alike = [task for task in tasks if self.driver.options.global_queue or task.model == candidate.model]
        return any(self.turns[task].place < turn.place for task in alike if task in self.turns)

    def _behind(self, candidate: Candidate, last: Candidate) -> str:
        """Why a candidate comes after another one."""
        who = self.who(last.at)
        if candidate.priority < last.priority:
            return f"its priority is below that of {who}"
        if candidate.deficit_s < last.deficit_s:
            return f"its priority is equal and its deficit below that of {who}"
        if candidate.share < last.share:
            return f"its priority and deficit are equal and its share below that of {who}"
        return f"its figures are equal and its place behind that of {who}"

    def _elsewhere(self, candidate: Candidate, row: int) -> str:
        """That the job or its mate has GPUs by an earlier turn; empty if neither has."""
        for job in dict.fromkeys((row, *candidate.at.rows)):
            who = "it" if job == row else f"job {self.id_of(job)}"
            if task := self.held.get(job):
                mate = next((f" with job {self.id_of(other)}" for other in task.rows if other not in (job, row)), "")
                mate = " with it" if not mate and len(task.rows) == 2 and job != row else mate
                return f"{who} runs{mate} on {self.name(task.model)}, where its turn came before"
            if job in self.reserved:
                return f"GPUs of {self.name(self.reserved[job])} are kept for {who}, where its turn came before"
        return ""
