"""Random runs in ordered rounds: small crowded clusters, any order, any mechanism that makes sense of the jobs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import numpy as np

from fastsim.cluster.server import GB_MIB, Server
from fastsim.engine.orders.plan import OrderPlan
from fastsim.engine.orders.run import OrderedOutcome, run_ordered
from fastsim.engine.orders.server_demands import ServerDemands
from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.node_outages import NodeOutages
from fastsim.engine.rounds.options import ORDERED_QUIRKS, Job, RoundOptions, Setting
from fastsim.performance.oracle import Oracle
from fastsim.performance.sensitivity import Demands
from fastsim.performance.sensitivity_table import Grid
from fastsim.scenario.sort_keys import MOST_TERMS, TERMS, column_of
from tests.reference.rounds.ordered_rounds import Active, Turns
from tests.rounds import Swing, outages, twin_nodes

MODELS = ("a", "b", "c")
COLUMNS = ("value", "deadline_s")
"""Columns that orders may read."""


@dataclass(frozen=True)
class Lavish:
    """A chooser that gives the first jobs of a kind twice their fair share and the others what is left of it."""

    solver_s: float = 0.0

    def parts(self, demands: Demands, count__k: Any, servers: int) -> list[Any]:
        """By kind: one job with much, the others with little."""
        fair = demands.server.fair
        found = []
        for kind, count in enumerate(count__k):
            n = demands.kinds[kind][1]
            many = [(min(count, 1), 2.0), (count - 1, 0.5)]
            found += [Piece(kind, jobs, n * f * fair.cpus, n * f * fair.memory_gb, f) for jobs, f in many if jobs > 0]
        return found


@dataclass(frozen=True)
class Piece:
    """What some jobs of a kind get."""

    kind: int
    jobs: int
    cpu: float
    memory_gb: float
    speedup: float


@dataclass(frozen=True)
class Case:
    """Everything that decides a run."""

    setting: Setting
    needs: ServerDemands
    plan: OrderPlan
    options: RoundOptions
    jobs: list[Job]
    columns: dict[str, list[float | None]]
    """By name the values of jobs, for the order."""
    nodes: NodeOutages | None = None

    def twin(self) -> Turns:
        """The run in plain Python."""
        nodes = None if self.nodes is None else twin_nodes(self.nodes, self.setting.gpu_models)
        turns = Turns(self.plan, self.needs, self.options, self.jobs, self.shares_of, self.columns, nodes)
        turns.play()
        return turns

    def run(self, **more: Any) -> OrderedOutcome:
        """The compiled run; jobs come in two batches."""
        batches = [JobBatch.of(self.jobs[:3]), JobBatch.of(self.jobs[3:])]
        return run_ordered(
            self.setting, self.plan, self.needs, batches, self.options, values=self.values(), record_tasks=True,
            nodes=self.nodes, **more,
        )  # fmt: skip

    def values(self) -> list[Any]:
        """The values of all jobs, with the signs of their terms."""
        rows = np.full((len(self.jobs), MOST_TERMS), np.inf)
        for k, term in enumerate(self.plan.order):
            for job, value in enumerate(self.columns.get(column_of(term), ())[: len(self.jobs)]):
                rows[job, k] = np.inf if value is None else -value if term.startswith("-") else value
        return [rows[:3].ravel(), rows[3:].ravel()]

    def shares_of(self, chosen: list[Active]) -> list[tuple[tuple[float, ...], float]]:
        """What the chooser gives these jobs."""
        assert self.needs.demands is not None and self.plan.chooser is not None
        count = np.bincount([a.job.kind for a in chosen], minlength=len(self.needs.speedup__k))
        parts = self.plan.chooser.parts(self.needs.demands, count.tolist(), len(self.needs.num_gpu__s))
        queue = [part for part in parts for _ in range(part.jobs)]
        told: list[tuple[tuple[float, ...], float]] = []
        for a in chosen:
            part = next(part for part in queue if part.kind == a.job.kind)
            queue.remove(part)
            told.append(((part.cpu * 1000, part.memory_gb * GB_MIB, 0.0), part.speedup))
        return told


@st.composite
def cases(draw: st.DrawFn, mechanism: str | None = None, changing: bool = False) -> Case:
    """Few servers, many jobs; needs from far below to far above the fair share."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    mechanism = mechanism or draw(st.sampled_from(("fair", "greedy", "tune", "opt")))
    alike = mechanism in ("tune", "opt")
    width = 1 if alike else draw(st.integers(1, 3))
    base = np.concatenate([[0], np.cumsum(rng.integers(1, 4, width))])
    size = np.full(base[-1], rng.integers(1, 9)) if alike else rng.integers(1, 9, base[-1])
    server = Server(int(size[0]), float(rng.integers(1, 40)), float(rng.integers(4, 200)), float(rng.integers(0, 500)))
    cap = np.tile([server.cpus * 1000, server.memory_gb * GB_MIB, server.storage_mb_s], (len(size), 1))
    if not alike:
        cap = np.round(cap * rng.uniform(0.5, 2, cap.shape))
    most = max(int(size[a:b].sum()) for a, b in pairwise(base))
    sizes = [int(n) for n in rng.choice([1, 1, 1, 2, 3, 4, 8], 5) if n <= most] or [1]
    kinds = tuple((f"w{k}", n) for k, n in enumerate(sizes))
    fair = cap[0] / size[0]
    need = np.array([n * np.round(fair * rng.choice([0.25, 0.5, 1, 1, 1.5, 3], 3)) for n in sizes])
    need = np.minimum(need, cap.min(axis=0)) * (cap[0] > 0)
    speedup = np.where((need > fair * np.array(sizes)[:, None]).any(axis=1), rng.uniform(1, 3, len(sizes)), 1.0)
    step_s = rng.uniform(0.01, 3, (len(sizes), width))
    step_s *= rng.random(step_s.shape) < 0.8
    step_s[:, np.argmax([size[a:b].sum() for a, b in pairwise(base)])] += 0.5
    rate = np.divide(1.0, step_s, out=np.zeros(step_s.shape), where=step_s > 0)
    oracle = Oracle(kinds, MODELS[:width], rate, np.zeros((len(kinds), len(kinds), width)))
    gpus = np.array([size[a:b].sum() for a, b in pairwise(base)])
    columns = (need[:, 0] / 1000, need[:, 1] / GB_MIB, need[:, 2], speedup, step_s[:, 0])
    grids = tuple(Grid(np.ones(1), np.ones(1), np.ones((1, 1))) for _ in kinds)
    demands = Demands(kinds, server, *columns, grids)
    servers = (tuple(size.tolist()), cap, tuple(base.tolist()))
    needs = ServerDemands(
        *servers, need, np.array(sizes, np.int32), speedup, step_s, demands, (), "speedups",
        tuple(name for name, _ in kinds),
    )  # fmt: skip
    submits = np.sort(rng.integers(0, 40, draw(st.integers(1, 20))) * draw(st.sampled_from([0.0, 40.0, 361.5, 3000.0])))
    jobs = [
        Job(float(at), int(kind), sizes[kind], float(np.round(rng.exponential(900) + 1)), float(rng.integers(1, 4)))
        for at, kind in zip(submits, rng.integers(0, len(kinds), len(submits)), strict=True)
    ]
    setting = Setting(MODELS[:width], gpus, oracle, rate.max(axis=1))
    plan = draw(plans(mechanism))
    values: list[float | None] = [None, 0.0, 1.0, 1.0, -2.5, 7e5]
    read = {name: [values[k] for k in rng.integers(0, len(values), len(jobs))] for name in COLUMNS}
    nodes = outages(rng, [size[a:b].tolist() for a, b in pairwise(base)], MODELS) if changing else None
    kept = _placeable(jobs, needs, mechanism)
    return Case(setting, needs, plan, draw(options(len(jobs), width)), kept, read, nodes)


def _placeable(jobs: list[Job], needs: ServerDemands, mechanism: str) -> list[Job]:
    """Without jobs for which there would never be room."""
    from fastsim.engine.orders.run import room_for

    rooms = room_for(needs, mechanism)
    kept = [job for job in jobs if rooms[job.kind] >= max(job.num_gpu, 1)]
    smallest = int(np.argmin(needs.need__kr.sum(axis=1)))
    return kept or ([jobs[0]._replace(kind=smallest)] if rooms[smallest] >= jobs[0].num_gpu else [])


@st.composite
def plans(draw: st.DrawFn, mechanism: str) -> OrderPlan:
    """Any order, of one to four terms."""
    known = [*TERMS, *(f"column({name})" for name in COLUMNS)]
    terms = draw(st.lists(st.sampled_from(known), min_size=1, max_size=4))
    order = tuple(draw(st.sampled_from(("", "-"))) + term for term in terms)
    levels = draw(st.sampled_from([(), (1000.0,), (500.0, 4000.0)]))
    starving = draw(st.sampled_from([3.6e6, 1500.0]))
    chooser = Lavish() if mechanism == "opt" else None
    admit = draw(st.sampled_from([float("inf"), 1.0, 2.5]))
    place, narrow, blocking, sticky = (draw(st.booleans()) for _ in range(4))
    skewed = draw(st.sampled_from([(), ("w0",)])) if place else ()
    return OrderPlan(order, mechanism, place, levels, starving, narrow, sticky, blocking, admit, chooser, skewed)


@st.composite
def options(draw: st.DrawFn, jobs: int, width: int) -> RoundOptions:
    """Any options; the quirks one by one."""
    first = draw(st.integers(0, jobs - 1))
    return RoundOptions(
        round_s=draw(st.sampled_from([300.0, 100.0])),
        restart_s=draw(st.sampled_from([0.0, 0.0, 20.0])),
        until_s=draw(st.sampled_from([float("inf"), 5000.0])),
        begin_s=draw(st.sampled_from([0.0, 1.0, 250.0])),
        window=draw(st.none() | st.just((first, jobs))),
        prices=draw(st.sampled_from([None, Swing(width)])),
        compat=frozenset(name for name in ORDERED_QUIRKS if draw(st.booleans())),
    )
