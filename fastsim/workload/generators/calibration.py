"""Request statistics of a workload, in the form the generator draws from: frequent requests, and a fitted tail.

The tables that ship with the package are what these functions return for the openb lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from fastsim.foundation.random_streams import Floats, Ints
from fastsim.workload import schema as s

if TYPE_CHECKING:
    from fastsim.workload.workload import Workload

CLASSES = ("cpu", "share", "one", "multi")
"""CPU-only pods, parts of one device, one whole device, several devices."""

_KEY = (s.CPU_MILLI, s.MEMORY_MIB, s.NUM_GPU, s.GPU_MILLI)


def request_class(num_gpu: Ints, gpu_milli: Ints) -> Ints:
    """Index into `CLASSES` of each request."""
    classes: Ints = np.where(num_gpu == 0, 0, np.where(num_gpu > 1, 3, np.where(gpu_milli < 1000, 1, 2)))
    return classes


def request_model(workload: Workload, tuples: int = 40) -> dict[str, Any]:
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


def constraint_model(workload: Workload) -> dict[str, Any]:
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
