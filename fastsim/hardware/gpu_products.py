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
_FORM = re.compile(r"(sxm\d?|hbm\d?e?|pcie|nvl|oam)$")
_VENDORS = {"nvidia", "tesla", "geforce", "amd", "instinct"}
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

    Names that the catalogue does not know stay what they are, beside the models that they may be a spelling of.
    """
    model, known = product(name).gpu_model, Catalog.default().gpu
    found = [model] if model in known else [model, *_kinds(model, known)]
    return list(dict.fromkeys([*found, *models_spelled(name, known)])) if len(found) == 1 else found


def models_spelled(name: str, known: Mapping[str, GpuModel]) -> list[str]:
    """Models of a catalogue that a usual spelling of a name means: one, several kinds of it, or none.

    Vendors, capital letters and separators count for nothing, and forms of boards (SXM, HBM) only where nothing has a
    name with them. A product whose watts and memory are those of a model is this model.

    >>> known = Catalog.default().gpu
    >>> [models_spelled(name, known) for name in ("a-100", "h100-sxm", "V100", "T5")]
    [['A100'], ['H100-80GB'], ['V100M16', 'V100M32'], []]
    """
    if name in known:
        return [name]
    for spelling in dict.fromkeys((_spelling(name), _spelling(name, forms=False))):
        meant = _spelled_products().get(spelling)
        if meant is not None and meant.gpu_model in known:
            return [meant.gpu_model]
        if meant is not None and meant.watts_of in known and known[meant.watts_of].memory_mib == meant.memory_mib:
            return [meant.watts_of]
        kinds = [] if meant is None else _kinds(meant.gpu_model, known)
        models = kinds or [model for model in known if _spelling(model) == spelling]
        if models:
            return models
    return []


def _kinds(model: str, known: Iterable[str]) -> list[str]:
    return [*filter(re.compile(rf"{re.escape(model)}(-.+|M\d+)").fullmatch, known)]


def _spelling(name: str, forms: bool = True) -> str:
    """Letters and digits of a name without its vendor, and without the form of the board unless ``forms``."""
    words = [word for word in re.findall(r"[a-z0-9]+", name.lower()) if word not in _VENDORS]
    return "".join(words if forms else [_FORM.sub("", word) for word in words])


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


@cache
def _spelled_products() -> Mapping[str, Product]:
    return {_spelling(name): known for name, known in reversed(list(_products().items()))}


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
