"""Clusters and workloads of a run that were objects in memory, kept as tables in its folder.

Inputs that texts name are read again from where they are, so they are not kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastsim.cluster.cluster import Cluster
from fastsim.foundation.written_folder import KEPT_INPUTS
from fastsim.scenario.scenario import Scenario
from fastsim.workload import Workload

SMALL_ROWS = 100_000
"""Workloads of at most this many pods are always kept; larger ones only if the user asks for it."""


def write_inputs(scenario: Scenario, folder: Path, large: bool = False) -> list[str]:
    """Write the tables of clusters and workloads that are objects to a folder, and return the fields that were kept.

    ``large`` keeps workloads of any size. A workload that draws jobs without end is no table, so it is not kept.
    """
    kept = []
    for name in KEPT_INPUTS:
        value, path = getattr(scenario, name), folder / f"{name}.parquet"
        if isinstance(value, Cluster):
            value.to_parquet(path)
        elif isinstance(value, Workload) and value.endless() is None and (large or _is_small(value)):
            value.write(path)
        else:
            continue
        kept.append(name)
    return kept


def kept_inputs(folder: Path) -> dict[str, Any]:
    """The clusters and workloads that a folder keeps, by the field of the scenario; workloads are read when used."""
    readers = {name: Cluster.from_parquet if name == "cluster" else Workload.scan for name in KEPT_INPUTS}
    paths = {name: folder / f"{name}.parquet" for name in KEPT_INPUTS}
    return {name: read(paths[name]) for name, read in readers.items() if paths[name].exists()}


def _is_small(workload: Workload) -> bool:
    return workload.rows is not None and workload.rows <= SMALL_ROWS
