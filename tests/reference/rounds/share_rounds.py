"""The rounds engine in plain Python, the twin of the compiled one: shares become priorities, priorities become rounds.

Every active job, and every pair of jobs that may share their GPUs, is a *candidate* with a row for each GPU model:
time received, deficit and priority. Candidates stand in the order in which they came; ties go to the first.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fastsim.engine.rounds.options import LARGE, MOST_FAILURES, MOST_FROZEN, PATIENCE, Job, RoundOptions, Setting
from fastsim.engine.shares.models_in_use import PresentSettings
from fastsim.engine.shares.plan import ALONE, Allocation, RoundView, SharePlan
from fastsim.errors import PolicyError
from tests.reference.rounds.leases import Outcome, Pair, Task, gpus_given
from tests.reference.rounds.nodes import Nodes
from tests.reference.rounds.rates import pair_is_hopeful, round_of, true_rates


def in_order(candidate: Pair) -> tuple[int, Pair]:
    """Sort key of candidates: singles first, then pairs."""
    return (len(candidate), candidate)


@dataclass
class Rounds:
    """State of a run. ``allocation`` maps candidates to shares; ``calls`` holds every answer of the policy."""

    setting: Setting
    plan: SharePlan
    options: RoundOptions
    jobs: Sequence[Job]
    gpus_per_server: Sequence[int] = ()
    nodes: Nodes | None = None
    now_s: float = 0.0
    added: int = 0
    outcomes: list[Outcome] = field(default_factory=list)
    active: list[int] = field(default_factory=list)
    received: dict[Pair, list[float]] = field(default_factory=dict)
    deficit: dict[Pair, list[float]] = field(default_factory=dict)
    priority: dict[Pair, list[float]] = field(default_factory=dict)
    allocation: dict[Pair, Sequence[float]] = field(default_factory=dict)
    workers: dict[Pair, tuple[int, ...]] = field(default_factory=dict)
    history: list[tuple[int, float, Task]] = field(default_factory=list)
    estimated_kind: list[int] = field(default_factory=list)
    ran: set[tuple[Pair, int]] = field(default_factory=set)
    calls: int = 0
    rounds: int = 0
    max_active: int = 0
    extensions: int = 0
    opportunities: int = 0
    wasted_gpu_s: float = 0.0
    """In restarts, and on nodes that went away."""
    vain: set[Pair] = field(default_factory=set)
    """Candidates that lost their GPUs in the last round."""

    def __post_init__(self) -> None:
        self.width, self.gap_s = len(self.setting.gpu_models), self.options.gap_s(self.plan)
        self.type_time = [0.0] * self.width
        self.start_s, self.end_s, self.reset_s, self.wanted, self.ever_reset = 0.0, math.nan, 0.0, True, False
        self.moved = False
        self.quiet, self.frozen, self.price = 0, 0, np.zeros(self.width)
        self.running: list[tuple[float, tuple[int, Pair], Task]] = []
        sizes = self.gpus_per_server or [1] * self.width
        self.gpus = [int(n) // size * size for n, size in zip(self.setting.gpus__g, sizes, strict=True)]
        self.base = [sum(self.gpus[:g]) for g in range(self.width)]
        self.busy_s = [0.0] * sum(self.gpus)
        self.shuffler = random.Random(self.setting.seed + 5)
        fastest = [m for m in self.setting.oracle.fastest_first if m in self.setting.gpu_models]
        self.speed_order = [self.setting.gpu_models.index(model) for model in fastest]

    # ------------------------------------------------------------------ time

    def run(self) -> None:
        """Play rounds until every job that counts has finished."""
        while not self._finished():
            if self.quiet == PATIENCE or self.frozen == MOST_FROZEN:
                raise PolicyError("rounds", f"nothing runs at {self.now_s:g} s", "a policy that lets some job run")
            idle, before = not self.running, self.now_s
            self._advance()
            if self.options.prices is not None:
                self._refresh_prices(self.options.prices)
            self.vain, ended = set(), []
            while self.running:
                ended.append(heapq.heappop(self.running)[2])
                self._complete(ended[-1])
            self.wasted_gpu_s += sum(map(self._wasted, ended))
            seen = (self.added, self.calls)
            self._arrive()
            tasks = self._schedule()
            still = idle and not tasks and seen == (self.added, self.calls) and not self.moved
            self.quiet = self.quiet + 1 if still else 0
            self.frozen = self.frozen + 1 if self.now_s <= before else 0

    def _wasted(self, task: Task) -> float:
        ends = [self.outcomes[job].completion_s for job in task.candidate]
        over_s = max(self.now_s if end_s is None else end_s for end_s in ends)
        held = (over_s - task.began_s) * len(task.gpus)
        return held if task.vain else min(task.lost_gpu_s, held)

    def _finished(self) -> bool:
        if self.now_s >= self.options.until_s:
            return True
        window = self.options.window
        first, last = window or (0, len(self.jobs))
        last = min(last, len(self.jobs))
        ended = sum(o.completion_s is not None or o.dropped for o in self.outcomes[first:last])
        return ended == last - first

    def _advance(self) -> None:
        if self.running:
            if not math.isnan(self.end_s):
                self.start_s = self.end_s
            self.end_s = self.now_s = -self.running[0][0]
            return
        self.now_s = self._next_event_s()
        if not self.options.quirk("idle_gap_accounting"):
            self.start_s = self.end_s = self.now_s
        if not self.options.endless and self.added == len(self.jobs) and self.options.quirk("reset_at_zero"):
            self.ever_reset = False

    def _next_event_s(self) -> float:
        """The next arrival, or the next allocation if somebody waits for it; without either, time stands still."""
        coming = [job.submit_s for job in self.jobs[self.added : self.added + 1]]
        if self.options.quirk("stale_arrival") and self.nodes is None:
            last_s = self.jobs[-1].submit_s if self.options.endless else self.now_s
            return max(self.now_s, *coming) if coming else last_s
        if self.nodes is not None and self.active and self.nodes.next_s() < math.inf:
            coming.append(self.nodes.next_s())
        if self.wanted and self.active and self.ever_reset and not self.options.quirk("stale_arrival"):
            coming.append(self.reset_s + self.gap_s)
        return max(self.now_s, min(coming, default=self.now_s))

    def _refresh_prices(self, prices: Any) -> None:
        now = prices.at(self.now_s)
        self.wanted |= bool((now != self.price).any())
        self.price = now

    def _arrive(self) -> None:
        while self.added < len(self.jobs) and self.jobs[self.added].submit_s <= self.now_s:
            job, self.added = self.added, self.added + 1
            late_s = self.now_s - self.jobs[job].submit_s if self.options.quirk("late_deadlines") else 0.0
            self.outcomes.append(Outcome(self.jobs[job]._replace(deadline_s=self.jobs[job].deadline_s + late_s)))
            kind, estimates = self.jobs[job].kind, self.plan.estimates
            self.estimated_kind.append(kind if estimates is None else estimates.arrive(job, kind))
            half = self.options.round_s / 2
            self._candidate((job,), half)
            if self.plan.pairs:
                for other in self.active:
                    if self.jobs[other].num_gpu == self.jobs[job].num_gpu:
                        self._candidate((other, job), half if self.options.quirk("unowed_pairs") else 0.0)
            self.active.append(job)
            self.wanted = True
        self.max_active = max(self.max_active, len(self.active))

    def _candidate(self, candidate: Pair, received: float) -> None:
        self.received[candidate] = [received] * self.width
        self.deficit[candidate] = [0.0] * self.width
        self.priority[candidate] = [0.0] * self.width

    # ------------------------------------------------------------------ progress

    def _complete(self, task: Task) -> None:
        """Credit one candidate for its round, or count a failure; nothing if a node of it went away."""
        spent = task.finish_s - self.start_s
        if self.nodes is not None and self.nodes.goes(task.gpus, task.finish_s):
            task.vain = self.wanted = True
            self.vain.add(task.candidate)
            return
        if len(task.candidate) == 2 and self.plan.estimates is not None:
            self.ran.add((task.candidate, task.model))
            self.plan.estimates.observe(*task.candidate, task.model)
            if min(self._rates(task.candidate, task.model)) <= 0:  # a wrong guess, for which neither job is to blame
                self.wanted = True
                return
        told = list(zip(task.candidate, task.steps, strict=True))
        done = any(steps >= self.outcomes[job].steps_left for job, steps in told)  # it may be less than time can tell
        if (spent <= 0 and not done) or any(self._starved(job, steps) for job, steps in told):
            self._fail(task.candidate)
            return
        self.received[task.candidate][task.model] += spent
        self.type_time[task.model] += spent
        for worker in self.workers[task.candidate]:
            self.busy_s[worker] += max(spent - task.lost_gpu_s / len(task.gpus), 0.0)
        for job, steps in told:
            outcome = self.outcomes[job]
            outcome.failures = 0
            outcome.steps_run += steps
            outcome.lease_cost += self.price[task.model] * spent / 3600 * outcome.job.num_gpu
            if outcome.steps_left <= 0:
                outcome.completion_s = task.finish_s
                self._remove(job)

    def _starved(self, job: int, steps: float) -> bool:
        """Whether a GPU of the gang has nothing to do: each takes a whole share, the last one what is left."""
        workers, total = self.jobs[job].num_gpu, self.jobs[job].total_steps
        last = self.options.quirk("gang_last_chunk_failure") and workers > 1 and steps // workers <= 0
        return total > 0 and (steps <= 0 or last)

    def _fail(self, candidate: Pair) -> None:
        self.wanted = True
        if len(candidate) == 2 and self.options.quirk("gang_last_chunk_failure"):
            return
        for job in candidate:
            outcome = self.outcomes[job]
            outcome.failures += 1
            if outcome.failures == MOST_FAILURES:
                outcome.dropped = True
                self._remove(job)

    def _remove(self, job: int) -> None:
        self.active.remove(job)
        if self.plan.estimates is not None:
            self.plan.estimates.leave(job)
        for column in (self.received, self.deficit, self.priority):
            for candidate in [c for c in column if job in c]:
                del column[candidate]
        self.wanted = True

    # ------------------------------------------------------------------ a round

    def _schedule(self) -> list[Task]:
        self.rounds += 1
        if self.nodes is not None:
            self.moved = self.nodes.see(self.now_s)
            self.wanted |= self.moved
            self.quiet = 0 if self.nodes.next_s() < math.inf else self.quiet
        if self.wanted and self._reset_allowed():
            self._reset()
        self._prioritise()
        chosen = self._chosen()
        if self.options.quirk("new_job_reserves_gpus"):  # what is not in the allocation blocks others but stays idle
            chosen = [entry for entry in chosen if entry[0] in self.allocation]
        before = self._placed(chosen)
        self._count_leases(before)
        return [self._dispatched(candidate, model, before) for candidate, model in chosen]

    def _reset_allowed(self) -> bool:
        if not self.ever_reset or (self.options.quirk("reset_at_zero") and self.reset_s == 0):
            return True
        due = not self.options.quirk("stale_arrival") and self.now_s >= self.reset_s + self.gap_s
        return due or self.now_s - self.reset_s >= self.gap_s  # the difference may be rounded to less

    def _reset(self) -> None:
        """Settle what the old shares promised, then ask the policy for new ones."""
        half = self.options.round_s / 2
        elapsed = self.now_s - (self.reset_s if self.ever_reset else 0.0)
        for candidate, received in self.received.items():
            shares = self.allocation.get(candidate, [0.0] * self.width)
            for g in range(self.width):
                self.deficit[candidate][g] += shares[g] * elapsed - (received[g] - half)
                received[g] = half
        self.type_time = [half * len(self.received)] * self.width
        self.reset_s, self.ever_reset, self.wanted = self.now_s, True, False
        answer = self.plan.allocator.allocate(self.view()) if any(self._present()) else None
        self.calls += 1
        self.allocation = {} if answer is None else self._shares(answer)

    def _shares(self, answer: Allocation) -> dict[Pair, Sequence[float]]:
        rows = zip(answer.first.tolist(), answer.second.tolist(), answer.share__rg.tolist(), strict=True)
        shares: dict[Pair, Sequence[float]] = {(a,) if b == ALONE else (a, b): row for a, b, row in rows}
        known = {candidate[0] for candidate in shares if len(candidate) == 1}
        for candidate in self.received:  # pairs without a row have shares of 0
            if len(candidate) == 2 and known.issuperset(candidate):
                shares.setdefault(candidate, [0.0] * self.width)
        return shares

    def view(self) -> RoundView:
        """What the policy sees now."""
        ids = sorted(self.active)
        rows = [self.outcomes[job] for job in ids]
        columns: dict[str, Any] = {
            name: np.array([getattr(row.job, name) for row in rows], kind)
            for name, kind in (("kind", np.int64), ("num_gpu", np.int64), ("weight", float), ("submit_s", float),
                               ("deadline_s", float))
        }  # fmt: skip
        tenants = tuple(row.job.tenant for row in rows)
        setting = self.setting
        if self.nodes is not None:
            setting = PresentSettings(self.setting).of(self._present())
        return RoundView(
            setting, self.now_s, np.array(ids, np.int64), price__g=self.price,
            steps_left=np.array([row.steps_left for row in rows], float),
            tenant=tenants if any(tenants) else (), partner_rates=self.plan.estimates, **columns,
        )  # fmt: skip

    def _prioritise(self) -> None:
        for candidate, priority in self.priority.items():
            shares = self.allocation.get(candidate)
            for g in range(self.width):
                priority[g] = 0.0
                if shares is None or shares[g] == 0 or self._hopeless(candidate, g):
                    continue
                total = self.type_time[g]
                part = 0.0 if total == 0 else self.received[candidate][g] / total
                priority[g] = shares[g] / part if part > 0 else shares[g] * LARGE

    def _hopeless(self, candidate: Pair, model: int) -> bool:
        """Whether the estimated rate of a member on a GPU model is 0."""
        if len(candidate) == 1 or (candidate, model) in self.ran:
            return min(self._rates(candidate, model)) <= 0
        return not pair_is_hopeful(
            self.setting.oracle, self._kinds(candidate), [self.estimated_kind[j] for j in candidate], model
        )

    def _rates(self, candidate: Pair, model: int) -> list[float]:
        return true_rates(self.setting.oracle, self._kinds(candidate), model)

    def _kinds(self, candidate: Pair) -> list[int]:
        return [self.jobs[job].kind for job in candidate]

    def _lines(self) -> Iterator[list[tuple[Pair, int]]]:
        """Candidates with a GPU model each, best first; ties stay in the order of the candidates."""
        order = list(self.speed_order)
        if self.plan.visit == "shuffled":
            self.shuffler.shuffle(order)
        lines = [[(candidate, g) for candidate in self.priority] for g in order]
        if self.options.global_queue:
            lines = [[entry for line in lines for entry in line]]
        for line in lines:
            yield sorted(line, key=self._rank, reverse=True)

    def _rank(self, entry: tuple[Pair, int]) -> tuple[float, float, float]:
        candidate, g = entry
        share = self.allocation[candidate][g] if candidate in self.allocation else 0.0
        return (self.priority[candidate][g], self.deficit[candidate][g], share)

    def _chosen(self) -> list[tuple[Pair, int]]:
        """The candidates of this round, each with its GPU model, in the order in which they were taken."""
        free, taken = self._present(), set[int]()
        chosen: list[tuple[Pair, int]] = []
        for line in self._lines():
            for candidate, g in line:
                size = self.jobs[candidate[0]].num_gpu
                if size > free[g] or not taken.isdisjoint(candidate) or self._hopeless(candidate, g):
                    continue
                if self.plan.strict and self.priority[candidate][g] <= 0:
                    continue
                free[g] -= size
                taken.update(candidate)
                chosen.append((candidate, g))
        return chosen

    def _absent(self) -> set[int]:
        return set() if self.nodes is None else self.nodes.absent()

    def _present(self) -> list[int]:
        """GPUs of each model that are there."""
        pools = zip(self.base, self.gpus, strict=True)
        return [len(set(range(first, first + count)) - self._absent()) for first, count in pools]

    def _placed(self, chosen: list[tuple[Pair, int]]) -> dict[Pair, tuple[int, ...]]:
        """Give each candidate GPUs: those of the last round if they are free, else the next free ones."""
        before, self.workers = self.workers, {}
        for g in range(self.width):
            members = [c for c, model in chosen if model == g]
            pool = range(self.base[g], self.base[g] + self.gpus[g])
            kept = {candidate: held for candidate, held in before.items() if candidate not in self.vain}
            self.workers |= gpus_given(members, self._size, kept, pool, self._absent())
        return before

    def _count_leases(self, before: dict[Pair, tuple[int, ...]]) -> None:
        for candidate, held in before.items():
            self.opportunities += any(job in self.active for job in candidate)
            self.extensions += set(self.workers.get(candidate, ())) == set(held) and candidate not in self.vain

    def _size(self, candidate: Pair) -> int:
        return self.jobs[candidate[0]].num_gpu

    def _dispatched(self, candidate: Pair, model: int, before: dict[Pair, tuple[int, ...]]) -> Task:
        again = before.get(candidate) == self.workers[candidate] and candidate not in self.vain
        work, lost_gpu_s = [], 0.0
        for job, rate in zip(candidate, self._rates(candidate, model), strict=True):
            outcome = self.outcomes[job]
            delay = 0.0 if again or outcome.first_s is None else self.options.restart_s
            lost_gpu_s += delay * self._size(candidate) / len(candidate)
            work.append(round_of(rate, outcome.steps_left, self.now_s, delay, self.options))
            outcome.rounds += 1
            outcome.first_s = self.now_s if outcome.first_s is None else outcome.first_s
        told = self.priority[candidate][model], self.deficit[candidate][model], self.workers[candidate]
        steps, ends = zip(*work, strict=True)
        finish_s = max(ends)
        if self.nodes is not None and self.nodes.goes(self.workers[candidate], finish_s):
            finish_s = self.now_s + self.options.round_s
        task = Task(candidate, model, list(steps), finish_s, *told, float(self.price[model]), lost_gpu_s, self.now_s)
        heapq.heappush(self.running, (-task.finish_s, in_order(candidate), task))
        self.history.append((self.rounds - 1, self.now_s, task))
        return task
