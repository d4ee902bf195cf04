"""Jobs that share time: small settings, random views, and what an allocation means, told the slow way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from hypothesis.strategies import DrawFn

from fastsim.cluster.cluster import Cluster
from fastsim.engine.rounds.node_metrics import node_of_gpu
from fastsim.engine.rounds.node_outages import NodeOutages
from fastsim.engine.rounds.options import Setting
from fastsim.engine.shares.plan import Allocation, Floats, RoundView
from fastsim.performance.oracle import Oracle
from fastsim.scenario.outages import Maintenance, Outages, away_at_start, planned
from tests.reference.packed_programs import SharedTime
from tests.reference.rounds.nodes import Nodes


@dataclass
class Swing:
    """Prices that change every 700 s."""

    width: int

    def at(self, now_s: float) -> npt.NDArray[np.float64]:
        """Price of one GPU of each model, $/h."""
        return np.arange(1.0, self.width + 1) * (1 + now_s // 700 % 3)

    def next_change_s(self, now_s: float) -> float:
        """The next multiple of 700 s."""
        return (now_s // 700 + 1) * 700


def outages(random: np.random.Generator, sizes: Sequence[Sequence[int]], models: Sequence[str]) -> NodeOutages:
    """Nodes with so many GPUs of each model, some of which come, go or are maintained at odd times."""
    nodes = [(model, int(size)) for model, row in zip(models, sizes, strict=False) for size in row]
    count = len(nodes)
    times: list[float | None] = [None, 0.0, 100.0, 360.0, 361.5, 777.7, 2500.0]

    def drawn(part: float) -> list[float | None]:
        return [times[k] if random.random() < part else None for k in random.integers(0, len(times), count)]

    table = pa.table({
        "name": [f"n{k}" for k in range(count)], "gpu_model": [model for model, _ in nodes],
        "num_gpu": [size for _, size in nodes], "cpu_milli": [64_000] * count, "memory_mib": [256_000] * count,
        "gpu_idle_w": [10.0] * count, "gpu_peak_w": [70.0] * count,
        "add_s": pa.array(drawn(0.2), pa.float64()),
    })  # fmt: skip
    windows = []
    for node in random.integers(0, count, random.integers(0, 8)).tolist():
        down_s = float(random.integers(0, 60)) * float(random.choice([100.0, 60.25]))
        windows.append(Maintenance(f"n{node}", down_s, down_s + float(random.choice([50.0, 300.0, 900.5, np.inf]))))
    return NodeOutages(Cluster.from_arrow(table), Outages(maintenance=tuple(windows)), 0)


def twin_nodes(nodes: NodeOutages, models: tuple[str, ...]) -> Nodes:
    """The same nodes for the twins."""
    away = [int(absent) for absent in away_at_start(nodes.cluster)]
    return Nodes(node_of_gpu(nodes.cluster, models).tolist(), away, planned(nodes.cluster, nodes.outages))


def oracle(alone: Sequence[Sequence[float]], shared: object = None, num_gpu: Sequence[int] | None = None) -> Oracle:
    """Kinds w0, w1, … with these rates alone on each model; ``shared`` is the table of rates while sharing."""
    rates = np.array(alone, np.float64)
    kinds = tuple((f"w{k}", n) for k, n in enumerate(num_gpu or [1] * len(rates)))
    together = np.zeros((len(rates), *rates.shape)) if shared is None else np.array(shared, np.float64)
    return Oracle(kinds, tuple(f"m{g}" for g in range(rates.shape[1])), rates, together)


def setting(rates: Oracle, gpus: Sequence[int], seed: int = 0) -> Setting:
    """A cluster with so many GPUs of each of the oracle's models."""
    best = rates.gpu_models.index(rates.fastest_first[0])
    return Setting(rates.gpu_models, np.array(gpus, np.int64), rates, rates.alone__kg[:, best], seed)


def view(where: Setting, kind: Sequence[int], now_s: float = 0.0, **columns: object) -> RoundView:
    """Jobs of these kinds with ids 0, 1, …; columns that are not given are ones, deadlines infinite, prices zero."""
    count = len(kind)
    num_gpu = [where.oracle.kinds[k][1] for k in kind]
    tenant = columns.pop("tenant", ())
    assert isinstance(tenant, tuple)
    known = {"weight": 1.0, "submit_s": 0.0, "steps_left": 1.0, "deadline_s": np.inf}
    given: dict[str, Any] = {name: np.full(count, value) for name, value in known.items()} | {
        "price__g": np.zeros(len(where.gpus__g))
    }
    given |= {name: np.array(values, np.float64) for name, values in columns.items()}
    ids = np.arange(count, dtype=np.int64)
    return RoundView(where, now_s, ids, np.array(kind, np.int64), np.array(num_gpu, np.int64), tenant=tenant, **given)


@st.composite
def views(draw: DrawFn, sizes: tuple[int, ...] = (1,), most: int = 12) -> RoundView:
    """Random jobs of a few kinds, some of them equal, on up to three models."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds, models = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    num_gpu = [draw(st.sampled_from(sizes)) for _ in range(kinds)]
    alone = random.uniform(0.2, 5.0, (kinds, models))
    shared = random.uniform(0.2, 1.0, (kinds, kinds, models)) * alone[:, None, :]
    shared[random.random(shared.shape) < 0.1] = 0.0
    where = setting(oracle(alone.tolist(), shared, num_gpu), random.integers(1, 6, models).tolist())
    count = draw(st.integers(1, most))
    return view(
        where, random.integers(0, kinds, count).tolist(), 1000.0,
        weight=random.choice([1.0, 5.0], count), steps_left=random.uniform(1, 5000, count),
        submit_s=random.uniform(0, 1000, count), price__g=random.uniform(0.1, 3, models),
        deadline_s=1000 + random.choice([np.inf, 500.0, 5000.0, 1e5], count),
        tenant=tuple(random.choice(["red", "blue", "grey"], count).tolist()),
    )  # fmt: skip


def rates_under(
    view: RoundView, allocation: Allocation, rate__jg: Floats | None = None, by_model: Floats | None = None
) -> Floats:
    """Rate of every job under an allocation, row by row: slow, and independent of how the allocation was found.

    ``rate__jg`` replaces the rates alone; ``by_model`` is a factor for each GPU model.
    """
    factor = np.ones(len(view.setting.gpu_models)) if by_model is None else by_model
    alone = np.nan_to_num(view.rate__jg) if rate__jg is None else rate__jg
    row = {int(job): index for index, job in enumerate(view.job_id)}
    total = np.zeros(len(view))
    for first, second, share in zip(allocation.first, allocation.second, allocation.share__rg, strict=True):
        a, share = row[int(first)], share * factor
        if second < 0:
            total[a] += alone[a] @ share
            continue
        b = row[int(second)]
        one, two = view.pair_rates(np.array([a]), np.array([b]))
        total[a] += np.nan_to_num(one[0]) @ share
        total[b] += np.nan_to_num(two[0]) @ share
    return total


def excess(view: RoundView, allocation: Allocation) -> float:
    """By how much an allocation breaks a rule: a share below 0, a job's time above 1, GPUs above what there is."""
    row = {int(job): index for index, job in enumerate(view.job_id)}
    first = np.array([row[int(job)] for job in allocation.first])
    time = np.bincount(first, allocation.share__rg.sum(axis=1), len(view))
    pair = allocation.second >= 0
    second = np.array([row[int(job)] for job in allocation.second[pair]], np.int64)
    time += np.bincount(second, allocation.share__rg[pair].sum(axis=1), len(view))
    gpus = view.num_gpu[first] @ allocation.share__rg - view.setting.gpus__g
    return float(max(-allocation.share__rg.min(), (time - 1).max(), gpus.max()))


def shared_time(view: RoundView) -> SharedTime:
    """The jobs of a view one by one, and two by two where they have as many GPUs."""
    alone = np.nan_to_num(view.rate__jg)
    rates: dict[tuple[int, ...], list[Any]] = {(job,): [alone[job]] for job in range(len(view))}
    for one in range(len(view)):
        for two in range(one + 1, len(view)):
            if view.num_gpu[one] == view.num_gpu[two]:
                first, second = view.pair_rates(np.array([one]), np.array([two]))
                rates[one, two] = [np.nan_to_num(first[0]), np.nan_to_num(second[0])]
    return SharedTime(view.setting.gpus__g, view.num_gpu, rates)


def shares_in(case: SharedTime, view: RoundView, allocation: Allocation) -> Floats:
    """An allocation in the order of the case's groups."""
    row = {int(job): place for place, job in enumerate(view.job_id)} | {-1: -1}
    place = {group: column for column, group in enumerate(case.rates)}
    shares = np.zeros((len(place), len(case.gpus)))
    for first, second, share in zip(allocation.first, allocation.second, allocation.share__rg, strict=True):
        shares[place[tuple(job for job in (row[int(first)], row[int(second)]) if job >= 0)]] = share
    return shares.ravel()
