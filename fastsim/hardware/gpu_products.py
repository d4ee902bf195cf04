"""GPU models by the names that labels of nodes and annotations of pods give them."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from fastsim.errors import InputError
from fastsim.hardware import mig
from fastsim.hardware.model_catalog import TABLES, Catalog, GpuModel

UNLABELLED = "unlabelled"
"""Model of devices that no label names."""
_SUFFIX = re.compile(r"(-SHARED|-MIG-\d+g\.\d+gb(\.me)?)+$")
_PART = re.compile(r"(.+)/([1-9]\d{0,5})")


class Product(NamedTuple):
    """A catalogue name, MiB of a device if they are known, and the model whose watts it draws ("" = unknown)."""

    gpu_model: str
    memory_mib: int | None = None
    watts_of: str = ""


def product(name: str) -> Product:
    """The product of a name on a label or in accounting; an unknown name is taken as the name of the model.

    Capital letters do not matter, and spaces and underscores are hyphens: Slurm writes ``nvidia_a100-sxm4-80gb``.
    """
    plain = _SUFFIX.sub("", name)
    return _products().get(_key(plain), Product(plain))


def _key(name: str) -> str:
    return name.lower().replace("_", "-").replace(" ", "-")


def models_called(name: str) -> list[str]:
    """Models that a request for this name may have: that of the product, or the catalogue's kinds of a name like V100.

    Names that the catalogue does not know stay what they are.
    """
    model, known = product(name).gpu_model, Catalog.default().gpu
    kinds = re.compile(rf"{re.escape(model)}(-.+|M\d+)")
    return [model] if model in known else [model, *filter(kinds.fullmatch, known)]


def part_of(model: str, parts: int) -> str:
    """The model of one of `parts` equal parts of a GPU, such as ``T4/4``; it draws its part of the watts."""
    return f"{model}/{parts}"


def with_parts(names: Iterable[str], present: Iterable[str]) -> list[str]:
    """These models, and the models in `present` that are parts of them."""
    wanted = list(names)
    return wanted + [model for model in present if model not in wanted and whole_of(model)[0] in wanted]


def whole_of(model: str) -> tuple[str, int]:
    """The model of the whole GPU, and its number of parts; 1 if `model` is a whole one."""
    part = _PART.fullmatch(model)
    return (part[1], int(part[2])) if part else (model, 1)


@cache
def _products() -> Mapping[str, Product]:
    with open(TABLES / "gpu_products.csv", encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    return {
        _key(row["product"]): Product(
            row["gpu_model"], int(row["memory_mib"]) if row["memory_mib"] else None, row["watts_of"]
        )
        for row in rows
    }


def with_products(catalog: Catalog, names: Iterable[str]) -> tuple[Catalog, list[str]]:
    """The catalogue with all these models, and the names of those with unknown watts, which count 0 W."""
    more, unknown = {}, []
    for name in dict.fromkeys(names):
        if name in catalog.gpu:
            continue
        whole, parts = whole_of(name)
        known = product(whole)
        like = catalog.gpu.get(whole) or catalog.gpu.get(known.watts_of)
        if like is None:
            unknown.append(name)
        idle_w, peak_w = (like.idle_w, like.peak_w) if like else (0.0, 0.0)
        memory = known.memory_mib if known.memory_mib is None else known.memory_mib // parts
        more[name] = GpuModel(idle_w / parts, peak_w / parts, memory)
    return (catalog.extended(gpu=more) if more else catalog), unknown


def layouts(where: str, model: str, counts: Mapping[str, int]) -> list[str]:
    """Layouts of GPUs that together offer these instances, by name of the resource; a simple packing takes few GPUs.

    Nodes only publish how many instances of a profile they have, not on which GPUs those are.
    """
    known = mig.profiles().get(model)
    if known is None:
        raise InputError(
            where, f"instances on {model}", f"a model that can be partitioned: {', '.join(mig.profiles())}"
        )
    by_resource = {profile.resource: profile for profile in known.values()}
    wanted = []
    for name, count in counts.items():
        if name not in by_resource or not 0 <= count <= mig.MOST:
            raise InputError(f"{where}: {name}", f"{count} on {model}", f"instances of: {', '.join(by_resource)}")
        wanted += [by_resource[name].name] * count
    gpus: list[Counter[str]] = []
    for name in sorted(wanted, key=lambda name: (-known[name].memory_slices, name)):
        gpu_with_room = next((gpu for gpu in gpus if mig.fit(gpu + Counter([name]), known)), None)
        if gpu_with_room is None:
            gpus.append(gpu_with_room := Counter())
        gpu_with_room[name] += 1
    return ["+".join(f"{count}*{name}" if count > 1 else name for name, count in gpu.items()) for gpu in gpus]
