"""Partitioned GPUs: which profiles a model has, which of them fit on one GPU together, and what they are called.

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
"""What the name of a resource that is an instance begins with."""
DOMAIN = "nvidia.com/"
"""What Kubernetes puts in front of that; it may be there or not."""
WHOLE = 1000
"""Milli-GPU of a whole device."""
MOST = 2**20
"""Most instances of one profile in a layout or a request, so that sums stay in range."""
MEDIA = "+me"
"""End of the name of a profile that takes the media engines, which one GPU has once."""


@dataclass(frozen=True, slots=True)
class Profile:
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
        """What a pod asks for to get one."""
        return PREFIX + self.name.replace("+", ".")

    @property
    def text(self) -> str:
        """What it is, in words."""
        share = f"{self.compute_slices}/{self.gpu_slices} of the GPU ({self.gpu_milli:,} milli)"
        return f"{share}, {self.memory_mib:,} MiB, at most {self.instances}"


@cache
def profiles() -> Mapping[str, Mapping[str, Profile]]:
    """The profiles of every model that can be partitioned, by model and name."""
    found: dict[str, dict[str, Profile]] = {}
    with open(TABLES / "mig_profiles.csv", encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text):
            numbers = ("compute_slices", "gpu_slices", "memory_slices", "memory_mib", "instances")
            compute, slices, memory, mib, most = (int(row[name]) for name in numbers)
            starts = tuple(int(start) for start in row["starts"].split())
            profile = Profile(row["profile"], compute, slices, memory, mib, most, starts)
            for model in row["gpu_models"].split():
                found.setdefault(model, {})[profile.name] = profile
    return found


@cache
def resources() -> Mapping[str, Profile]:
    """A profile for every name of a resource; those of several models have the same share of a GPU."""
    return {profile.resource: profile for known in profiles().values() for profile in known.values()}


def resource_name(name: str) -> str:
    """The name of a resource without Kubernetes' domain, if it is an instance; any other name as it is."""
    return name.removeprefix(DOMAIN) if name.startswith(DOMAIN + PREFIX) else name


def gpu_milli(amounts: Iterable[tuple[str, int]]) -> int:
    """Milli-GPU of the instances among some amounts of resources."""
    return sum(amount * resources()[name].gpu_milli for name, amount in amounts if name in resources())


def request_fault(amounts: Iterable[tuple[str, int]]) -> str | None:
    """What a pod should have asked for instead of an instance that no model has, or of too many; None if all is well.

    Names as :func:`resource_name` gives them.
    """
    for name, amount in amounts:
        if name.startswith(PREFIX) and name not in resources():
            return f"one of: {', '.join(resources())}"
        if name.startswith(PREFIX) and amount > MOST:
            return f"at most {MOST} of {name}"
    return None


def counted(layout: str) -> Counter[str]:
    """The profile names in the text of a layout and how often each is there; ValueError if it is no such text."""
    names: Counter[str] = Counter()
    for part in re.split(r"\+(?!me(?:\+|$))", layout.strip()):
        found = re.fullmatch(r"(?:(\d{1,7})\*)?(\d+g\.\d+gb(?:\+me)?)", part.strip())
        if found is None or not 1 <= int(found[1] or 1) <= MOST:
            raise ValueError(layout)
        names[found[2]] += int(found[1] or 1)
    return names


def request(text: str) -> list[tuple[str, int]]:
    """The resources that a pod asks for with a text such as ``1g.10gb``; ValueError if it is no such text."""
    return [(PREFIX + name.replace("+", "."), count) for name, count in counted(text).items()]


def layouts(text: str | None, num_gpu: int) -> list[str]:
    """The layout of each GPU of a node, "" where a GPU is whole."""
    given = (text or "").split(";")
    return [layout.strip() for layout in (given * num_gpu if len(given) == 1 else given)]


def layout_text(given: str | Sequence[str | None] | None) -> str | None:
    """One layout, or a list of one for each GPU, as one text; None if there is none."""
    if given is None or isinstance(given, str):
        return given or None
    if not all(isinstance(layout, str | None) for layout in given):
        raise TypeError("a layout is a text")
    texts = [layout or "" for layout in given]
    return ";".join(texts) if any(texts) else None


@cache
def instances(text: str | None, num_gpu: int) -> tuple[int, tuple[tuple[str, int], ...]]:
    """How many GPUs of a node are partitioned, and its instances by name of the resource."""
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
    given = layouts(text, num_gpu)
    if len(given) != num_gpu:
        raise InputError(where, f"{len(given)} layouts", f"one for all GPUs or one for each of {num_gpu}")
    for layout in dict.fromkeys(filter(None, given)):
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


def fit(names: Mapping[str, int], known: Mapping[str, Profile]) -> bool:
    """Whether so many instances of some profiles find places on one GPU: no two of them in one memory slice."""
    if any(count > known[name].instances for name, count in names.items()):
        return False
    if sum(count for name, count in names.items() if name.endswith(MEDIA)) > 1:
        return False
    wanted = [known[name] for name, count in names.items() for _ in range(count)]
    return _placed(sorted(wanted, key=lambda profile: -profile.memory_slices), 0)


def _placed(wanted: Sequence[Profile], taken: int) -> bool:
    """Whether the instances find places besides the memory slices that are taken, as bits."""
    if not wanted:
        return True
    spans = (((1 << wanted[0].memory_slices) - 1) << start for start in wanted[0].starts)
    return any(_placed(wanted[1:], taken | span) for span in spans if not taken & span)
