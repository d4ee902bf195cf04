"""Tables that scenarios name, with changed words and cells: pods, rates, watts, prices and others."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fastsim.experiments.node_prices import node_prices_from
from fastsim.hardware.model_catalog import Catalog
from fastsim.performance.oracle import Oracle
from fastsim.performance.sensitivity import Sensitivity
from fastsim.scenario.carbon import Carbon
from fastsim.scenario.outages import maintenance_from
from fastsim.telemetry.usage_profile import profiles_from_csv
from fastsim.workload import Workload
from tests.fuzz import importers, trial
from tests.fuzz.trial import Trial

PODS: dict[str, list[Any]] = {
    "pod_id": [0, 1, 2], "submit_s": [0.0, 5.0, 5.0], "cpu_milli": [1000, 0, 2], "memory_mib": [1, 0, 3],
    "num_gpu": [1, 0, 2], "gpu_milli": [500, 0, 1000], "duration_s": [1.5, None, 0.0],
    "gpu_models": [["T4", "P100"], None, None], "native_id": ["a", "ß", None], "job_id": [None, 3, 3],
    "gang_size": [None, 1, 2], "priority": [None, 5, -1], "tenant": ["x", None, "y"],
}  # fmt: skip
RATES = """workload,gpu_model,num_gpu,colocated_workload,steps_per_s,colocated_steps_per_s
a,v,1,,2.5,
a,v,1,b,1,2
b,v,1,,4,
"""
ORACLE = {
    "v100": {"('LM', 1)": {"null": 40.0, "('A3C', 1)": [30.5, 2]}, "('A3C', 1)": {"null": 3.5}},
    "k80_unconsolidated": {"('LM', 2)": {"null": 1}},
}
WATTS = "kind,model,idle_w,peak_w,memory_mib,cores_per_socket,source\ngpu,T4,10,70,15360,,x\ncpu,X,20,120,,16,y\n"
CARBON = "since_s,g_per_kwh\n0,300\n3600,250.5\n7200,0\n"
PRICES = "node_type,gcp,aws\ng2,12.5,11\nt4,1,\n"
PROFILES = "name,duration_s,memory_mib,util_pct,power_w,less_mib\na,5,100,50.5,70,\na,,2889,90,80,2889:839.5\n"
SENSITIVITIES = """workload,task,point,cpus_per_gpu,batch_size,iteration_s,cpu,memory_gb,storage_mb_s,speedup
net,image,demand,4,32,0.5,4,50,10,2
net,image,demand,3,32,0.6,4,50,10,3
b,,demand,,,1,1,2,,1
"""
OUTAGES = "node,down_s,up_s\nn1,5,60\nn2,1.5,\n"


def _pods(path: Path) -> None:
    importers.used(Workload.scan(path / "tasks.parquet"))


def _rates(path: Path) -> None:
    oracle = Oracle.from_json(path) if ".json" in path.name else Oracle.from_csv(path)
    trial.require_sound(oracle.table())


def _watts(path: Path) -> None:
    catalog = Catalog.from_csv(path)
    for models in (catalog.gpu, catalog.cpu):
        assert all(0 <= model.idle_w <= model.peak_w < 1e10 for model in models.values()), models
    assert all(0 <= (model.memory_mib or 0) < 1e10 for model in catalog.gpu.values())
    assert all(0 < model.cores_per_socket < 1e10 for model in catalog.cpu.values())


def _carbon(path: Path) -> None:
    carbon = Carbon.from_csv(path)
    trial.require_sound(pl.DataFrame({"g": [*carbon.g_per_kwh]}))


def _sensitivities(path: Path) -> None:
    read = Sensitivity.from_file(path)
    assert all(0 < profile.speedup < math.inf for profile in read.profiles), read.profiles
    assert np.isfinite(read.oracle(("T4",), [1]).alone__kg).all()


def _outages(path: Path) -> None:
    for window in maintenance_from(str(path)):
        assert window.up_s is None or window.down_s < window.up_s, window


def _prices(path: Path) -> None:
    for tariff in node_prices_from(str(path)).values():
        assert all(math.isnan(price) or 0 <= price < math.inf for price in tariff.values()), tariff


def _profiles(path: Path) -> None:
    for profile in profiles_from_csv(path).values():
        assert profile.phases, profile


_TEXTS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "rates": (RATES, _rates), "sensitivities": (SENSITIVITIES, _sensitivities), "watts": (WATTS, _watts),
    "carbon": (CARBON, _carbon), "outages": (OUTAGES, _outages), "prices of nodes": (PRICES, _prices),
    "usage profiles": (PROFILES, _profiles),
}  # fmt: skip
_CASES: dict[str, tuple[Callable[[random.Random], Any], Callable[[Path], object]]] = {
    "pods": (partial(importers.columns_file, (pl.DataFrame(PODS),)), _pods),
    "rates in JSON": (partial(importers.json_file, ORACLE), _rates),
    **{name: (partial(importers.text_file, ".csv", seed=seed), use) for name, (seed, use) in _TEXTS.items()},
}
TARGETS: dict[str, Callable[[], Trial]] = {
    f"table of {name}": partial(importers.prepare, case, use) for name, (case, use) in _CASES.items()
}
"""Trials by name."""
