"""Partitioned GPUs: the profiles of each model, the sets of instances that fit on one GPU, and their names.

A layout is the list of instances on one GPU, as a text: ``3g.40gb+2g.20gb+2g.20gb`` or ``7*1g.10gb``. A node's
layouts stand side by side with ``;`` between them, one for each GPU, or there is one for all of them. As a resource
an instance is called ``mig-1g.10gb``, as NVIDIA's device plugin for Kubernetes calls it in its strategy "mixed".
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from fastsim.errors import InputError
from fastsim.hardware.model_catalog import TABLES

PREFIX = "mig-"
"""Beginning of the names of resources that are instances."""
DOMAIN = "nvidia.com/"
"""Kubernetes' domain in front of that beginning; it may be absent."""
WHOLE = 1000
"""Milli-GPU of a whole device."""
MOST = 2**20
"""Most instances of one profile in a layout or a request, so that sums stay in range."""
TURNS = ".shared"
"""End of Kubernetes' names of instances that several pods share in turns; they count as resources of their own."""
MEDIA = "+me"
"""End of the name of a profile that takes the media engines, which one GPU has once."""


@dataclass(frozen=True, slots=True)
class MigProfile:
    """One kind of instance: compute slices of ``gpu_slices``, memory slices and MiB, where it may begin.

    ``instances`` is the most of them on one GPU; ``starts`` are the memory slices at which one may begin.
    """

    name: str
    compute_slices: int
    gpu_slices: int
    memory_slices: int
    memory_mib: int
    instances: int
    starts: tuple[int, ...]

    @property
    def gpu_milli(self) -> int:
        """Its compute slices as thousandths of a GPU, cut to a whole number."""
        return WHOLE * self.compute_slices // self.gpu_slices

    @property
    def resource(self) -> str:
        """Name of the resource by which a pod requests one."""
        return PREFIX + self.name.replace("+", ".")

    @property
    def text(self) -> str:
        """The profile in words."""
        share = f"{self.compute_slices}/{self.gpu_slices} of the GPU ({self.gpu_milli:,} milli)"
        return f"{share}, {self.memory_mib:,} MiB, at most {self.instances}"


@cache
def profiles() -> Mapping[str, Mapping[str, MigProfile]]:
    """The profiles of every model that can be partitioned, by model and name."""
    profiles_of: dict[str, dict[str, MigProfile]] = {}
    with open(TABLES / "mig_profiles.csv", encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text):
            numbers = ("compute_slices", "gpu_slices", "memory_slices", "memory_mib", "instances")
            compute, slices, memory, mib, most = (int(row[name]) for name in numbers)
            starts = tuple(int(start) for start in row["starts"].split())
            profile = MigProfile(
                name=row["profile"],
                compute_slices=compute,
                gpu_slices=slices,
                memory_slices=memory,
                memory_mib=mib,
                instances=most,
                starts=starts,
            )
            for model in row["gpu_models"].split():
                profiles_of.setdefault(model, {})[profile.name] = profile
    return profiles_of


@cache
def resources() -> Mapping[str, MigProfile]:
    """A profile for every name of a resource; those of several models have the same share of a GPU."""
    return {profile.resource: profile for known in profiles().values() for profile in known.values()}


def resource_name(name: str) -> str:
    """The name of a resource without Kubernetes' domain, if it is an instance; any other name as it is."""
    alone = name.startswith(DOMAIN + PREFIX) and not name.endswith(TURNS)
    return name.removeprefix(DOMAIN) if alone else name


def gpu_milli(amounts: Iterable[tuple[str, int]]) -> int:
    """Milli-GPU of the instances among some amounts of resources."""
    return sum(amount * resources()[name].gpu_milli for name, amount in amounts if name in resources())


def request_fault(amounts: Iterable[tuple[str, int]]) -> str | None:
    """The expected request, if this one names an instance of no model or too many of one; None if it is valid.

    Names as :func:`resource_name` gives them.
    """
    for name, amount in amounts:
        if name.startswith(PREFIX) and name not in resources():
            return f"one of: {', '.join(resources())}"
        if name.startswith(PREFIX) and amount > MOST:
            return f"at most {MOST} of {name}"
    return None


def counted(layout: str) -> Counter[str]:
    """The number of instances by profile in the text of a layout; ValueError if it is no such text."""
    names: Counter[str] = Counter()
    for part in re.split(r"\+(?!me(?:\+|$))", layout.strip()):
        item = re.fullmatch(r"(?:(\d{1,7})\*)?(\d+g\.\d+gb(?:\+me)?)", part.strip())
        if item is None or not 1 <= int(item[1] or 1) <= MOST:
            raise ValueError(layout)
        names[item[2]] += int(item[1] or 1)
    return names


def request(text: str) -> list[tuple[str, int]]:
    """The resources in a pod's request such as ``1g.10gb``; ValueError if it is no such text."""
    return [(PREFIX + name.replace("+", "."), count) for name, count in counted(text).items()]


def layouts(text: str | None, num_gpu: int) -> list[str]:
    """The layout of each GPU of a node, "" where a GPU is whole."""
    texts = (text or "").split(";")
    return [layout.strip() for layout in (texts * num_gpu if len(texts) == 1 else texts)]


def layout_text(layouts: str | Sequence[str | None] | None) -> str | None:
    """One layout, or a list of one for each GPU, as one text; None if there is none."""
    if layouts is None or isinstance(layouts, str):
        return layouts or None
    if not all(isinstance(layout, str | None) for layout in layouts):
        raise TypeError("a layout is a text")
    texts = [layout or "" for layout in layouts]
    return ";".join(texts) if any(texts) else None


@cache
def instances(text: str | None, num_gpu: int) -> tuple[int, tuple[tuple[str, int], ...]]:
    """The number of partitioned GPUs of a node, and its instances by name of the resource."""
    sums: Counter[str] = Counter()
    partitioned = [layout for layout in layouts(text, num_gpu) if layout]
    for layout in partitioned:
        sums.update(dict(request(layout)))
    return len(partitioned), tuple(sorted(sums.items()))


def refuse(where: str, text: str, num_gpu: int, model: str | None) -> None:
    """InputError unless these layouts are possible on a node with so many GPUs of a model."""
    if not num_gpu or model is None:
        raise InputError(where, repr(text), "null, because num_gpu is 0")
    if model not in profiles():
        raise InputError(where, f"{text!r} on {model}", f"a model that can be partitioned: {', '.join(profiles())}")
    by_gpu = layouts(text, num_gpu)
    if len(by_gpu) != num_gpu:
        raise InputError(where, f"{len(by_gpu)} layouts", f"one for all GPUs or one for each of {num_gpu}")
    for layout in dict.fromkeys(filter(None, by_gpu)):
        _refuse_layout(where, layout, model)


def _refuse_layout(where: str, layout: str, model: str) -> None:
    known = profiles()[model]
    try:
        names = counted(layout)
    except ValueError:
        examples = "+".join(list(known)[-3:-1]), f"2*{next(iter(known))}"
        raise InputError(where, repr(layout), "profiles such as {!r} or {!r}".format(*examples)) from None
    for name in names:
        if name not in known:
            raise InputError(where, f"profile {name!r} on {model}", f"one of: {', '.join(known)}")
    if not fit(names, known):
        most = ", ".join(f"{known[name].instances} of {name}" for name in names)
        raise InputError(where, repr(layout), f"instances that fit on one {model}", f"alone, {most} would")


def fit(names: Mapping[str, int], known: Mapping[str, MigProfile]) -> bool:
    """Whether these numbers of instances fit on one GPU: no two of them share a memory slice."""
    if any(count > known[name].instances for name, count in names.items()):
        return False
    if sum(count for name, count in names.items() if name.endswith(MEDIA)) > 1:
        return False
    instances = [known[name] for name, count in names.items() for _ in range(count)]
    return _placed(sorted(instances, key=lambda profile: -profile.memory_slices), 0)


def _placed(wanted: Sequence[MigProfile], taken: int) -> bool:
    """Whether the instances fit beside the memory slices in `taken`, a bit each."""
    if not wanted:
        return True
    spans = (((1 << wanted[0].memory_slices) - 1) << start for start in wanted[0].starts)
    return any(_placed(wanted[1:], taken | span) for span in spans if not taken & span)
