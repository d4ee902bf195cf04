"""Ordered rounds once more, in plain Python: no tables, no bits, one GPU at a time. The compiled loop must agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fastsim.engine.orders.plan import OrderPlan
from fastsim.engine.orders.server_demands import RESOURCES, ServerDemands
from fastsim.engine.rounds.options import PATIENCE, Job, RoundOptions
from fastsim.errors import PolicyError
from tests.reference.rounds.nodes import Nodes
from tests.reference.rounds.servers import Place, Seated, Seats, consolidated, enough, first_fit, fullest
from tests.reference.rounds.sort_keys import KeyInputs, OrderContext, key

Tell = Callable[[list["Active"]], list[tuple[tuple[float, ...], float]]]
"""For ``opt``: what these jobs get, and their speedups."""


@dataclass
class Active(Seated):
    """A job that is there."""

    id: int = 0
    job: Job = field(default_factory=lambda: Job(0.0, 0, 1, 1.0))
    need: tuple[float, ...] = ()
    step_s: float = 0.0
    """On the best GPU model."""
    own_speedup: float = 1.0
    speedup: float = 1.0
    done: float = 0.0
    attained_s: float = 0.0
    last_s: float = 0.0
    priority: int = 0
    rounds: int = 0
    first_s: float = math.nan
    finish_s: float = math.nan
    plain: bool = False
    before: tuple[int, ...] | None = None
    """GPUs of the last round, if it ran."""


class Sums(NamedTuple):
    """Running jobs of a round, and their CPUs (milli-CPU) and memory (MiB)."""

    running: int
    gpus: int
    at_fair: int
    cpu_alloc: float
    memory_alloc: float
    cpu_used: float
    memory_used: float
    cpu_demand: float
    memory_demand: float


@dataclass
class Turns:
    """A run; ``play`` goes through all rounds."""

    plan: OrderPlan
    needs: ServerDemands
    options: RoundOptions
    jobs: Sequence[Job]
    shares_of: Tell | None = None
    columns: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    """By name the values of all jobs."""
    nodes: Nodes | None = None
    now_s: float = 0.0
    active: list[Active] = field(default_factory=list)
    """In the order of the last round."""
    known: list[Active] = field(default_factory=list)
    rounds: list[tuple[float, int, list[tuple[int, tuple[int, ...]]]]] = field(default_factory=list)
    """Time, jobs there, and (job, GPUs) in the order in which they were given out."""
    sums: list[Sums] = field(default_factory=list)
    """Over the running jobs of each round."""
    busy_s: list[float] = field(init=False)
    """By GPU, restarts left out."""
    wasted_gpu_s: float = 0.0
    """In restarts, and on nodes that went away."""
    vain: set[tuple[float, int]] = field(default_factory=set)
    """Beginnings of rounds, and jobs that a node of theirs left then."""
    cpu_milli_s: float = 0.0
    """Whole milli-CPUs times seconds."""
    place: Place = field(init=False)
    quiet: int = 0
    """Rounds in which nothing happened."""

    def __post_init__(self) -> None:
        self.place = Place(self.needs)
        self.busy_s = [0.0] * sum(self.needs.num_gpu__s)

    def quirk(self, name: str) -> bool:
        """Whether a compat switch is on."""
        return self.options.quirk(name)

    # ------------------------------------------------------------------ time

    def play(self) -> None:
        """All rounds."""
        self.now_s = self.options.begin_s
        while not self.over():
            if self.quiet == PATIENCE:
                raise PolicyError("rounds", f"nothing runs at {self.now_s:g} s", "jobs that some round lets run")
            self.wait()
            self.arrive()
            if self.nodes is not None:
                self.nodes.see(self.now_s)
                self.quiet = 0 if self.nodes.next_s() < math.inf else self.quiet
            self.line_up()
            self.round()
            self.now_s += self.options.round_s

    def over(self) -> bool:
        """Whether those that count are complete."""
        first, last = self.options.window or (0, len(self.jobs))
        ended = sum(not math.isnan(a.finish_s) for a in self.known if first <= a.id < last)
        if self.now_s >= self.options.until_s or ended >= min(last, len(self.jobs)) - first:
            return True
        coming = self.jobs[len(self.known) :]
        gap = not self.active and (not coming or coming[0].submit_s > self.now_s)
        return self.quirk("idle_gap_ends") and self.options.window is None and bool(self.rounds) and gap

    def wait(self) -> None:
        """Rounds without jobs are left out."""
        if not self.active and len(self.known) < len(self.jobs):
            submit_s, begin_s, round_s = self.jobs[len(self.known)].submit_s, self.options.begin_s, self.options.round_s
            if submit_s > self.now_s:
                self.now_s = begin_s + math.ceil((submit_s - begin_s) / round_s) * round_s

    def arrive(self) -> None:
        """Those that have come by now."""
        while len(self.known) < len(self.jobs) and self.jobs[len(self.known)].submit_s <= self.now_s:
            job = self.jobs[len(self.known)]
            asked = sum(a.job.num_gpu for a in self.active) + job.num_gpu
            if self.active and asked > self.plan.admit * sum(self.needs.num_gpu__s):
                return
            need = tuple(float(self.needs.need__kr[job.kind, r]) for r in range(len(RESOURCES)))
            steps = [float(s) for s in self.needs.step_s__kg[job.kind] if s > 0]
            new = Active(id=len(self.known), job=job, need=need, step_s=min(steps), last_s=job.submit_s)
            new.own_speedup = new.speedup = float(self.needs.speedup__k[job.kind])
            self.known.append(new)
            self.active.append(new)

    # ------------------------------------------------------------------ order

    def line_up(self) -> None:
        """Sort, and forget what was lowered in the last round."""
        for a in self.active:
            if self.now_s - a.last_s > self.plan.starving_s:
                a.priority = 1
            if not self.quirk("stale_speedup"):
                a.speedup = a.own_speedup
        yard = OrderContext(
            self.now_s, sum(self.needs.num_gpu__s), *(float(sum(self.needs.cap__sr[:, r])) for r in range(2))
        )
        self.active.sort(key=lambda a: key(self.plan.order, self.claim(a), yard, self.plan.level_s))
        for a in self.active:
            a.speedup = a.own_speedup

    def claim(self, a: Active) -> KeyInputs:
        """What a job is in an order."""
        job, left_s = a.job, (a.job.total_steps - a.done) * a.step_s
        return KeyInputs(
            job.submit_s, left_s if self.plan.mechanism == "fair" else left_s / a.speedup, job.total_steps * a.step_s,
            job.num_gpu, a.need[0], a.need[1], a.attained_s, a.last_s, job.weight, a.priority,
            {name: values[a.id : a.id + 1] for name, values in self.columns.items()},
        )  # fmt: skip

    def chosen(self) -> list[Active]:
        """Those that are served."""
        if not self.plan.narrow and self.plan.mechanism != "opt":
            return self.active
        left, found = self.present_gpus(), []
        for a in self.active:
            if a.job.num_gpu <= left:
                left -= a.job.num_gpu
                found.append(a)
        if self.plan.narrow and self.plan.mechanism == "tune":
            found.sort(key=lambda a: -a.job.num_gpu)
        return found

    # ------------------------------------------------------------------ a round

    def absent(self) -> set[int]:
        """The GPUs that are not there."""
        return set() if self.nodes is None else self.nodes.absent()

    def present_gpus(self) -> int:
        """GPUs that are there."""
        return sum(self.needs.num_gpu__s) - len(self.absent())

    def round(self) -> None:
        """Seats for all that fit, then work."""
        self.place.clear(self.absent())
        chosen = self.chosen()
        if self.plan.mechanism == "opt":
            assert self.shares_of is not None
            for a, (given, speedup) in zip(chosen, self.shares_of(chosen), strict=True):
                a.given, a.speedup, a.plain = given, speedup, False
        running = self.seated(chosen)
        self.rounds.append((self.now_s, len(self.active), [(a.id, a.gpus) for a in running]))
        self.sums.append(summed(running))
        moved = [self.work(a) > 0 or (self.now_s, a.id) in self.vain for a in running]
        coming = len(self.known) < len(self.jobs) and self.jobs[len(self.known)].submit_s > self.now_s
        self.quiet = 0 if coming or any(moved) else self.quiet + 1
        for a in self.active:
            a.before = a.gpus if a in running and (self.now_s, a.id) not in self.vain else None
        self.active = [a for a in self.active if math.isnan(a.finish_s)]

    def seated(self, chosen: list[Active]) -> list[Active]:
        """Those that keep their GPUs, then the others that get some."""
        stay = [a for a in self.staying(chosen) if self.keep(a)] if self.plan.sticky else []
        others = []
        for a in chosen:
            if a not in stay and self.seat(a):
                others.append(a)
            elif a not in stay and self.plan.blocking:
                break
        return stay + others

    def staying(self, chosen: list[Active]) -> list[Active]:
        """Jobs at work whose GPUs those before them leave."""
        left, shut, found = self.present_gpus(), False, []
        for a in chosen:
            if a.job.num_gpu <= left and (not shut or a.before is not None):
                left -= a.job.num_gpu
                found += [a] if a.before is not None else []
            else:
                shut = shut or self.plan.blocking
        return found

    def keep(self, a: Active) -> bool:
        """The GPUs of the last round, and beside them what the mechanism says."""
        assert a.before is not None
        if self.absent().intersection(a.before):
            return False
        found = self.place.by_server(a.before)
        if self.plan.mechanism == "tune":
            return self.tune(a, found)
        a.plain, told = self.plan.mechanism == "fair", a.given
        need = {"fair": None, "greedy": a.need, "opt": (0.0,) * len(RESOURCES)}[self.plan.mechanism]
        self.place.commit(a, found, need)
        a.given = told if self.plan.mechanism == "opt" else a.given
        return True

    def seat(self, a: Active) -> bool:
        """GPUs on the model on which the job is fastest of those where it fits."""
        rate = self.needs.step_s__kg[a.job.kind]
        for model in sorted((m for m in range(len(rate)) if rate[m] > 0), key=lambda m: (rate[m], m)):
            if self.place.free_gpus(model) >= a.job.num_gpu and self.allot(a, model):
                return True
        return False

    def allot(self, a: Active, model: int) -> bool:
        """What the mechanism says."""
        a.model, mechanism = model, self.plan.mechanism
        if mechanism == "tune":
            return self.tune(a)
        a.plain = mechanism == "fair"
        if mechanism == "greedy":
            return self.try_place(a, a.need)
        found = self.propose(a, (0.0,) * len(RESOURCES))
        if found is None and not a.job.num_gpu:
            return False
        assert found is not None
        told = a.given
        self.place.commit(a, found, None if mechanism == "fair" else (0.0,) * len(RESOURCES))
        if mechanism == "opt":
            a.given = told
        return True

    def propose(self, a: Active, need: tuple[float, ...]) -> dict[int, list[int]] | None:
        """GPUs by server, or None."""
        servers, num_gpu = self.place.of_model(a.model), a.job.num_gpu
        each = tuple(n / num_gpu if num_gpu else n for n in need)
        packs = self.plan.packs(self.needs.workload__k[a.job.kind])
        if packs and num_gpu > 1:
            found = consolidated(self.place, servers, num_gpu, need)
            if found is not None:
                return found
        if packs and num_gpu:
            return fullest(self.place, servers, num_gpu, each)
        return first_fit(self.place, servers, num_gpu, each)

    def try_place(self, a: Active, need: tuple[float, ...], on: Seats | None = None) -> bool:
        """Seats for this need, if they are there; with ``on`` these very ones."""
        found = self.propose(a, need) if on is None else on
        if on is not None and not self.place.holds(on, a.job.num_gpu, need):
            return False
        if found is not None:
            self.place.commit(a, found, need)
        return found is not None

    # ------------------------------------------------------------------ tune

    def tune(self, a: Active, on: Seats | None = None) -> bool:
        """The need; the fair share; the fair share after others gave back what is above theirs."""
        a.plain = False
        if self.try_place(a, a.need, on):
            return True
        need = self.lowered(a, self.quirk("demotion_raises"))
        if need != a.need:
            a.speedup = 1.0
            if self.try_place(a, need, on):
                return True
        if on is None:
            self.reclaim(a, need)
        for server, gpus in (on or {}).items():
            self.reclaim_from(server, need, len(gpus), a.job.num_gpu)
        if self.try_place(a, need, on):
            return True
        a.speedup = a.speedup if on is None else a.own_speedup
        return False

    def lowered(self, a: Active, raises: bool) -> tuple[float, ...]:
        """The fair share, if the job needs more of anything; ``raises``: also of what it needs less of."""
        fair = self.fair_share(a)
        if all(enough(f, n) for n, f in zip(a.need, fair, strict=True)):
            return a.need
        return tuple(fair) if raises else tuple(min(n, f) for n, f in zip(a.need, fair, strict=True))

    def fair_share(self, a: Active) -> list[float]:
        """What belongs to the job's GPUs."""
        return [f * a.job.num_gpu for f in self.place.fair[self.place.of_model(a.model)[0]]]

    def reclaim(self, a: Active, need: tuple[float, ...]) -> None:
        """Servers that have the GPUs take back what jobs there have above their fair shares."""
        servers, num_gpu = self.place.of_model(a.model), a.job.num_gpu
        whole = [s for s in servers if len(self.place.free[s]) >= num_gpu]
        if num_gpu > 1 and whole:
            self.reclaim_from(whole[0], need, num_gpu, num_gpu)
            return
        left = num_gpu
        for s in sorted((s for s in servers if self.place.free[s]), key=lambda s: (len(self.place.free[s]), s)):
            part = min(left, len(self.place.free[s]))
            if part:
                self.reclaim_from(s, need, part, num_gpu)
            left -= part

    def reclaim_from(self, server: int, need: tuple[float, ...], part: int, num_gpu: int) -> None:
        """Lower jobs there until the need of ``part`` of the GPUs is free."""
        lack = [_rest(n * part / num_gpu, has) for n, has in zip(need, self.place.left[server], strict=True)]
        if not any(lack):
            return
        listed: list[Active] = self.place.listed[server]
        listed.sort(key=lambda a: (len(a.seats), -a.given[0] / a.job.num_gpu, -a.given[1] / a.job.num_gpu))
        for a in listed:
            gpus, share = a.seats[server]
            excess = [_rest(has, f * len(gpus)) for has, f in zip(share, self.place.fair[server], strict=True)]
            gives = any(e > 0 and wanted > 0 for e, wanted in zip(excess, lack, strict=True))
            lack = [_rest(wanted, e) for wanted, e in zip(lack, excess, strict=True)]
            if gives or self.quirk("reclaim_sweeps"):
                self.to_fair_share(a)
            if not any(lack):
                return

    def to_fair_share(self, a: Active) -> None:
        """Back to the fair share, on the same GPUs."""
        raises = self.quirk("demotion_raises")
        need = self.lowered(a, raises)
        a.speedup = a.speedup if need == a.need else 1.0
        if raises and not self.place.has_room(a, need):
            need = self.lowered(a, False)
        a.plain = True
        self.place.reshare(a, need)

    # ------------------------------------------------------------------ work

    def work(self, a: Active) -> float:
        """A round of it, steps."""
        round_s = self.options.round_s
        delay_s = 0.0 if a.gpus == a.before or math.isnan(a.first_s) else self.options.restart_s
        step_s = float(self.needs.step_s__kg[a.job.kind, a.model])
        step_s = step_s if a.plain else step_s / a.speedup
        steps, left = (round_s - delay_s) / step_s, a.job.total_steps - a.done
        steps = math.floor(steps) if self.quirk("whole_steps") else steps
        a.first_s = self.now_s if math.isnan(a.first_s) else a.first_s
        a.rounds += 1
        a.last_s = self.now_s + round_s
        late = self.quirk("lease_end_finish")
        end_s = round_s if late or steps < left else min(round_s, delay_s + left * step_s)
        if self.nodes is not None and self.nodes.goes(self.servers(a), self.now_s + end_s):
            self.vain.add((self.now_s, a.id))
            self.wasted_gpu_s += round_s * len(a.gpus)
            self.cpu_milli_s += round(a.given[0]) * round_s
            return 0.0
        if steps >= left:
            a.done = a.job.total_steps
            used_s = round_s if late else min(round_s, delay_s + left * step_s)
            a.finish_s = self.now_s + used_s
            self.spend(a, delay_s, used_s)
        else:
            a.done += steps
            self.spend(a, delay_s, round_s)
        a.attained_s += round_s
        return min(steps, left)

    def servers(self, a: Active) -> list[int]:
        """The first GPU of each of its servers."""
        return [self.place.first[s] for s in a.seats]

    def spend(self, a: Active, delay_s: float, spent_s: float) -> None:
        """Its GPUs and CPUs are held so long, at first by a restart."""
        self.wasted_gpu_s += min(delay_s, spent_s) * len(a.gpus)
        self.cpu_milli_s += round(a.given[0]) * spent_s
        for gpu in a.gpus:
            self.busy_s[gpu] += max(spent_s - delay_s, 0.0)


def summed(running: Sequence[Active]) -> Sums:
    """What they have, use and need in all."""
    rows = [(*a.given[:2], *map(min, a.given[:2], a.need[:2]), *a.need[:2]) for a in running]
    at_fair = sum(a.speedup == 1.0 for a in running)
    gpus = sum(len(a.gpus) for a in running)
    return Sums(len(running), gpus, at_fair, *(in_order([row[k] for row in rows]) for k in range(6)))


def in_order(values: Sequence[float]) -> float:
    """The sum, one after the other: newer Pythons round sums better."""
    total = 0.0
    for value in values:
        total += value
    return total


def _rest(wanted: float, there: float) -> float:
    """What is lacking."""
    return 0.0 if enough(there, wanted) else wanted - there
