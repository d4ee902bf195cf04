"""Catalogue of GPU and CPU models: watts idle and busy, memory, cores per socket."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from fastsim.errors import InputError
from fastsim.foundation.columns.content_equality import ComparedByContent
from fastsim.foundation.limits.forked_process import whole_process

TABLES = Path(__file__).parent / "tables"
"""Folder of the tables that ship with the package."""
MOST_CORES, MOST_MEMORY_MIB = 100_000, 2**30
"""Most cores of a socket, and most memory of a device, MiB; beyond them a unit is wrong."""
MOST_WATTS = 1_000_000
"""Largest draw of a device or a socket, watts; keeps the draw of any cluster in milliwatts inside 64 bits."""


@dataclass(frozen=True, slots=True)
class GpuModel:
    """Draw of one device in watts, unused (`idle_w`) and used at all (`peak_w`), and its memory in MiB.

    ``source`` names the kind of origin of the numbers: watts published with a cluster, a vendor's data sheet or product
    brief, what a vendor's tool shows on idle boards, or an estimate.
    """

    idle_w: float
    peak_w: float
    memory_mib: int | None = None
    source: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CpuModel:
    """Draw of one socket in watts, wholly free (`idle_w`) and used at all (`peak_w`), and its physical cores."""

    idle_w: float
    peak_w: float
    cores_per_socket: int


@whole_process
@dataclass(frozen=True, eq=False)
class Catalog(ComparedByContent):
    """GPU and CPU models by name; the CPU model "" stands for a node that names none."""

    gpu: Mapping[str, GpuModel]
    cpu: Mapping[str, CpuModel]

    def content(self) -> Hashable:
        """All models by name, in any order."""
        return frozenset(self.gpu.items()), frozenset(self.cpu.items())

    @classmethod
    def default(cls) -> Catalog:
        """The models of the openb cluster and their published watts, and later ones of NVIDIA and AMD."""
        return _default()

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str]) -> Catalog:
        """The default catalogue with the models of a watts table added or replaced.

        Columns: kind (gpu or cpu), model, idle_w, peak_w (watts), memory_mib (GPUs), cores_per_socket (CPUs), source.
        """
        return cls.default()._with_rows(path)

    def extended(self, gpu: Mapping[str, GpuModel] | None = None, cpu: Mapping[str, CpuModel] | None = None) -> Catalog:
        """This catalogue with further models; a known name is replaced."""
        for kind, models in (("gpu", gpu or {}), ("cpu", cpu or {})):
            for name, model in models.items():
                _plausible(f"catalog.{kind}[{name!r}]", model)
        return replace(self, gpu={**self.gpu, **(gpu or {})}, cpu={**self.cpu, **(cpu or {})})

    def _with_rows(self, path: str | os.PathLike[str]) -> Catalog:
        import pyarrow as pa

        from fastsim.foundation.csv_table import csv_line, read_csv

        types = {"kind": pa.string(), "model": pa.string(), "idle_w": pa.float64(), "peak_w": pa.float64()}
        types |= {"memory_mib": pa.int64(), "cores_per_socket": pa.int64(), "source": pa.string()}
        models: dict[str, dict[str, Any]] = {"gpu": {}, "cpu": {}}
        for row, cells in enumerate(read_csv(path, types, ("kind", "model", "idle_w", "peak_w")).to_pylist()):
            where = f"{path}:{csv_line(path, row)}"
            kind, name = cells["kind"], cells["model"] or ""
            if kind not in models:
                raise InputError(f"{where}: kind", repr(kind), "gpu or cpu")
            if name in models[kind] or (kind == "gpu" and not name):
                raise InputError(f"{where}: model", repr(name), "a new model name")
            models[kind][name] = _model(where, kind, cells)
        return self.extended(**models)


def _model(where: str, kind: str, cells: Mapping[str, Any]) -> GpuModel | CpuModel:
    for column in ("idle_w", "peak_w"):
        if cells[column] is None:
            raise InputError(f"{where}: {column}", "nothing", "watts")
    model: GpuModel | CpuModel
    if kind == "gpu":
        model = GpuModel(cells["idle_w"], cells["peak_w"], cells.get("memory_mib"), cells.get("source") or "")
    else:
        model = CpuModel(cells["idle_w"], cells["peak_w"], cells.get("cores_per_socket") or 0)
    _plausible(where, model)
    return model


def _plausible(where: str, model: GpuModel | CpuModel) -> None:
    if not 0 <= model.idle_w <= MOST_WATTS:
        raise InputError(f"{where}: idle_w", model.idle_w, f"0 to {MOST_WATTS:,} watts")
    if not model.idle_w <= model.peak_w <= MOST_WATTS:
        raise InputError(f"{where}: peak_w", model.peak_w, f"idle_w ({model.idle_w:g}) to {MOST_WATTS:,} watts")
    if isinstance(model, CpuModel) and not 1 <= model.cores_per_socket <= MOST_CORES:
        raise InputError(f"{where}: cores_per_socket", model.cores_per_socket, f"1 to {MOST_CORES:,}")
    if isinstance(model, GpuModel) and model.memory_mib is not None and not 0 <= model.memory_mib <= MOST_MEMORY_MIB:
        raise InputError(f"{where}: memory_mib", model.memory_mib, f"0 to {MOST_MEMORY_MIB:,} MiB")


@cache
def _default() -> Catalog:
    return Catalog({}, {})._with_rows(TABLES / "models.csv")
