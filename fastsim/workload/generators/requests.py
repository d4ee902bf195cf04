"""Requests drawn from a table: frequent ones as they are, the others from a fit per class; runs of equal pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastsim.cluster.node_types import openb_types
from fastsim.foundation.draws.random_streams import Floats, Ints, Stream, normal_quantile
from fastsim.workload import schema as s

if TYPE_CHECKING:
    from fastsim.workload.pod_rows import PodRows

Columns = dict[str, Ints]
"""Equally long integer columns by name."""
FREQUENT = (s.CPU_MILLI, s.MEMORY_MIB, s.NUM_GPU, s.GPU_MILLI)
SET = "set"
"""Which set of GPU models a pod names; -1 = none."""
CLASSES = ("cpu", "share", "one", "multi")
"""CPU-only pods, parts of one device, one whole device, several devices."""
_KEY = (s.CPU_MILLI, s.MEMORY_MIB, s.NUM_GPU, s.GPU_MILLI)


class RequestTable:
    """The chance of each cell; a cell is one frequent request or one tail class, together with one QoS class."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self.qos: list[str] = table["qos"]
        self.fixed = np.array([row[:4] for row in table["frequent"]], np.int64)
        self.tails: list[Mapping[str, Any]] = list(table["tail"].values())
        share = [row[4] for row in table["frequent"]] + [tail["p"] for tail in self.tails]
        mix = [row[5:] for row in table["frequent"]] + [tail["qos"] for tail in self.tails]
        chance = np.array(share)[:, None] * np.array(mix)
        self.chance: Floats = (chance / chance.sum()).ravel()
        gpus = [row[2] * row[3] / 1000 for row in table["frequent"]] + [_mean_gpus(tail) for tail in self.tails]
        self.gpus: Floats = np.repeat(np.array(gpus), len(self.qos))

    def mean_gpus(self) -> float:
        """Mean number of devices of a pod's request."""
        return float(self.chance @ self.gpus)

    def mean_gpu_seconds(self, mean_s: Sequence[float]) -> float:
        """Devices times seconds of a pod on average, if each QoS class lasts `mean_s` seconds on average."""
        return float(self.chance @ (self.gpus * np.tile(mean_s, len(self.chance) // len(self.qos))))

    def mean_seconds(self, mean_s: Sequence[float]) -> float:
        """Seconds a pod lasts on average."""
        return float(self.chance @ np.tile(mean_s, len(self.chance) // len(self.qos)))

    def resident_chance(self, mean_s: Sequence[float]) -> Floats:
        """Chance of each cell among the pods found running at a random instant."""
        weight = self.chance * np.tile(mean_s, len(self.chance) // len(self.qos))
        chance: Floats = weight / weight.sum()
        return chance


def _mean_gpus(tail: Mapping[str, Any]) -> float:
    devices = np.array(tail["devices"])
    return float((devices[:, 0] * devices[:, 1] * devices[:, 2]).sum() / devices[:, 2].sum() / 1000)


class Requests:
    """An endless sequence of requests; drawing it in pieces of any size gives the same pods."""

    def __init__(self, table: RequestTable, seed: int, *, chance: Floats | None = None, concern: str = "") -> None:
        self._table = table
        self._cells = np.cumsum(table.chance if chance is None else chance)[:-1]
        self._pick = Stream(seed, f"{concern}request.cell")
        self._tails = [Stream(seed, f"{concern}request.tail.{i}") for i in range(len(table.tails))]
        self._models: ModelSets | None = None
        self._before: Columns | None = None

    def naming(self, models: ModelSets) -> Requests:
        """The same requests, some of which name GPU models."""
        self._models = models
        return self

    def take(self, repeats: np.ndarray[Any, np.dtype[np.bool_]]) -> Columns:
        """The next requests, one per flag; a set flag repeats the request before."""
        drawn = self._drawn(len(repeats))
        if not len(repeats):
            return drawn
        if self._before is None:
            self._before = {name: column[:1] for name, column in drawn.items()}
            repeats = np.concatenate(([False], repeats[1:]))
        held = {name: np.concatenate((self._before[name], column)) for name, column in drawn.items()}
        place = np.arange(1, len(repeats) + 1)
        source = np.maximum.accumulate(np.where(repeats, 0, place))
        columns = {name: column[source] for name, column in held.items()}
        self._before = {name: column[-1:] for name, column in columns.items()}
        return columns

    def _drawn(self, count: int) -> Columns:
        cell = np.searchsorted(self._cells, self._pick.uniform(count), side="right")
        kind, qos = np.divmod(cell, len(self._table.qos))
        fixed = len(self._table.fixed)
        values = self._table.fixed[np.minimum(kind, fixed - 1)]
        for i, (tail, stream) in enumerate(zip(self._table.tails, self._tails, strict=True)):
            rows = np.flatnonzero(kind == fixed + i)
            values[rows] = _tail_requests(tail, stream, len(rows))
        columns = {name: values[:, i] for i, name in enumerate(FREQUENT)}
        columns[s.QOS] = qos
        columns[SET] = self._models.take(columns) if self._models else np.full(count, -1)
        return columns


def _tail_requests(tail: Mapping[str, Any], stream: Stream, count: int) -> Ints:
    # Three numbers per request, request by request, so that a piece never depends on where it was cut.
    draws = stream.uniform(3 * count).reshape(count, 3)
    first, second = normal_quantile(draws[:, 0]), normal_quantile(draws[:, 1])
    (mu, sigma), (ratio_mu, ratio_sigma), rho = tail["ln_cpu_milli"], tail["ln_mib_per_milli"], tail["correlation"]
    cpu = np.clip(np.rint(np.exp(mu + sigma * first) / 100) * 100, *tail["cpu_milli"])
    lean = rho * first + np.sqrt(1 - rho * rho) * second
    memory = np.rint(cpu * np.exp(ratio_mu + ratio_sigma * lean))
    devices = np.array(tail["devices"])
    edges = np.cumsum(devices[:, 2] / devices[:, 2].sum())[:-1]
    which = np.searchsorted(edges, draws[:, 2], side="right")
    drawn = np.column_stack((cpu, memory, devices[which, 0], devices[which, 1])).astype(np.int64)
    return _within_a_node(drawn)


def _within_a_node(requests: Ints) -> Ints:
    """The requests cut to what some openb node could hold: the recorded pods all fit, but a fit has a longer tail."""
    kinds = np.array([[kind.cpu_milli, kind.memory_mib, kind.num_gpu] for kind in openb_types().values()])
    devices = requests[:, 2][:, None] <= kinds[:, 2]
    requests[:, 0] = np.minimum(requests[:, 0], np.where(devices, kinds[:, 0], 0).max(axis=1))
    roomy = devices & (requests[:, 0][:, None] <= kinds[:, 0])
    requests[:, 1] = np.minimum(requests[:, 1], np.where(roomy, kinds[:, 1], 0).max(axis=1))
    return requests


class ModelSets:
    """Which pods name GPU models, and which sets: only sets with a node type that could hold the pod are named."""

    def __init__(self, table: Mapping[str, Any], seed: int, share: float, *, concern: str = "") -> None:
        self.lists: list[list[str]] = [models for models, _ in table["sets"]]
        self._weight = np.array([weight for _, weight in table["sets"]])
        by_class = [0.0 if name == "cpu" else table["share_by_class"][name] for name in CLASSES]
        self._chance = np.minimum(np.array(by_class) * share / table["share"], 1.0)
        self._has, self._which = Stream(seed, f"{concern}models.has"), Stream(seed, f"{concern}models.which")
        kinds = [kind for kind in openb_types().values() if kind.num_gpu]
        self._room = np.array([[kind.cpu_milli, kind.memory_mib, kind.num_gpu] for kind in kinds])
        self._offers = np.array([[kind.gpu_model in models for models in self.lists] for kind in kinds])

    def take(self, columns: Columns) -> Ints:
        """For the next requests, which set each names; -1 = none."""
        count = len(columns[s.NUM_GPU])
        chance = self._chance[request_class(columns[s.NUM_GPU], columns[s.GPU_MILLI])]
        chosen = np.full(count, -1)
        has, which = self._has.uniform(count) < chance, self._which.uniform(count)
        rows = np.flatnonzero(has)
        need = np.column_stack([columns[name][rows] for name in FREQUENT[:3]])
        fits = (need[:, None, :] <= self._room[None, :, :]).all(axis=2)
        weight = self._weight * (fits @ self._offers)
        edges = np.cumsum(weight, axis=1)
        pick = (edges <= (which[rows] * edges[:, -1])[:, None]).sum(axis=1)
        chosen[rows] = np.where(edges[:, -1] > 0, np.minimum(pick, len(self.lists) - 1), -1)
        return chosen

    def column(self, chosen: Ints) -> pa.Array:
        """The `gpu_models` column for chosen sets."""
        sets = pa.array(self.lists, pa.list_(pa.string()))
        return sets.take(pa.array(chosen, mask=chosen < 0))


def request_class(num_gpu: Ints, gpu_milli: Ints) -> Ints:
    """Index into `CLASSES` of each request."""
    classes: Ints = np.where(num_gpu == 0, 0, np.where(num_gpu > 1, 3, np.where(gpu_milli < 1000, 1, 2)))
    return classes


def request_model(workload: PodRows, tuples: int = 40) -> dict[str, Any]:
    """The `tuples` commonest requests with their shares and QoS mix, and per class a fit of all the others."""
    table = workload.table()
    rows = list(zip(*(table[name].to_pylist() for name in (*_KEY, s.QOS)), strict=True))
    counts = Counter(row[:4] for row in rows)
    # Ties in number go to the smaller request, so that the table does not depend on the order of the pods.
    common = sorted(counts, key=lambda key: (-counts[key], key))[:tuples]
    qos = [name for name, _ in Counter(row[4] for row in rows).most_common()]
    frequent = [
        [*key, round(counts[key] / len(rows), 4), *_mix((row[4] for row in rows if row[:4] == key), qos)]
        for key in common
    ]
    rest = np.array([[*row[:4], qos.index(row[4])] for row in rows if row[:4] not in set(common)], np.int64)
    rest = rest.reshape(-1, len(_KEY) + 1)
    kinds = request_class(rest[:, 2], rest[:, 3])
    tail = {name: _tail(rest[kinds == i], len(rows), qos) for i, name in enumerate(CLASSES) if (kinds == i).any()}
    return {"qos": qos, "frequent": frequent, "tail": tail}


def _mix(values: Iterable[Any], names: list[Any]) -> list[float]:
    counts = Counter(values)
    whole = sum(counts.values())
    return [round(counts[name] / whole, 4) for name in names]


def _tail(rows: Ints, pods: int, qos: list[str]) -> dict[str, Any]:
    """Normal fit of ln cpu and ln(memory/cpu), bounds of cpu, shares of devices and of QoS."""
    sized = rows[(rows[:, 0] > 0) & (rows[:, 1] > 0)]
    cpu = np.log(sized[:, 0])
    ratio = np.log(sized[:, 1] / sized[:, 0])
    devices = Counter(map(tuple, rows[:, 2:4].tolist()))
    ranked = sorted(devices, key=lambda key: (-devices[key], key))
    return {
        "p": round(len(rows) / pods, 4),
        "ln_cpu_milli": [round(float(cpu.mean()), 4), round(float(cpu.std()), 4)],
        "ln_mib_per_milli": [round(float(ratio.mean()), 4), round(float(ratio.std()), 4)],
        "correlation": _correlation(cpu, ratio),
        "cpu_milli": [int(rows[:, 0].min()), int(rows[:, 0].max())],
        "devices": [[*key, round(devices[key] / len(rows), 4)] for key in ranked],
        "qos": _mix((qos[i] for i in rows[:, 4]), qos),
    }


def _correlation(first: Floats, second: Floats) -> float:
    """Pearson's correlation; 0 where one of the two never changes."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return round(float(np.corrcoef(first, second)[0, 1]), 3)


def constraint_model(workload: PodRows) -> dict[str, Any]:
    """How often GPU pods of each class name models, and which sets of models they name (repeats removed)."""
    table = workload.table()
    count, milli = (table[name].to_numpy().astype(np.int64) for name in (s.NUM_GPU, s.GPU_MILLI))
    kinds = request_class(count, milli)
    named = [models is not None for models in table[s.GPU_MODELS].to_pylist()]
    sets = Counter("|".join(sorted(set(models))) for models in table[s.GPU_MODELS].to_pylist() if models)
    ranked = sorted(sets, key=lambda key: (-sets[key], key))
    return {
        "share": _share(np.array(named)[kinds > 0]),
        "share_by_class": {name: _share(np.array(named)[kinds == i]) for i, name in enumerate(CLASSES) if i},
        "sets": [[key.split("|"), round(sets[key] / sets.total(), 4)] for key in ranked],
    }


def _share(flags: Any) -> float:
    """How many of the flags are set; 0 of none."""
    return round(float(np.mean(flags)), 4) if len(flags) else 0.0
