"""Usage of a GPU by a pod: memory, utilisation and power as a curve over the pod's run time.

Numbers of the built-in profiles are rounded from what is published of one V100 with 32 GB and one image detector.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from fastsim.errors import InputError

CUT = "@"
"""Separator before the MiB in the name of a profile that was cut to them."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A piece of the curve: seconds it lasts, MiB held, whether it computes, its utilisation alone, watts on top.

    ``duration_s`` is infinite in the last phase, which lasts until the pod ends. Where less memory is left than that,
    a pod takes the largest of ``less_mib`` that is there and keeps to it; if none is, it dies.
    """

    duration_s: float
    memory_mib: float = 0.0
    util_pct: float = 0.0
    power_w: float = 0.0
    less_mib: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """Phases one after another from the start of the container; only the last is endless."""

    name: str
    phases: tuple[Phase, ...]

    def __post_init__(self) -> None:
        where = f"profile {self.name}"
        if not self.phases or not math.isinf(self.phases[-1].duration_s):
            raise InputError(f"{where}: phases", "an end", "a last phase of infinite duration")
        for number, phase in enumerate(self.phases, start=1):
            last = number == len(self.phases)
            if not (phase.duration_s > 0 and (last or math.isfinite(phase.duration_s))):
                raise InputError(f"{where}: phase {number}: duration_s", phase.duration_s, "more than 0, finite")
            if not (0 <= phase.util_pct <= 100 and 0 <= phase.memory_mib < math.inf and math.isfinite(phase.power_w)):
                raise InputError(f"{where}: phase {number}", phase, "0 to 100 %, 0 MiB or more, finite watts")

    @property
    def starts_s(self) -> list[float]:
        """When each phase begins, seconds after the container."""
        return [0.0, *accumulate(phase.duration_s for phase in self.phases[:-1])]

    def cut(self, memory_mib: float) -> Profile:
        """The same curve, with at most `memory_mib`; the name shows the limit."""
        phases = (replace(p, memory_mib=min(p.memory_mib, memory_mib)) for p in self.phases)
        return Profile(f"{self.name}{CUT}{memory_mib!r}", tuple(phases))

    def scaled(self, memory_mib: float) -> Profile:
        """The same curve for a pod that ends up with another amount of memory."""
        full = self.phases[-1].memory_mib
        if not full > 0:
            raise InputError(f"profile {self.name}: scaled", f"{full:g} MiB", "a last phase that holds memory")
        part = memory_mib / full
        phases = (
            replace(p, memory_mib=p.memory_mib * part, less_mib=tuple(part * less for less in p.less_mib))
            for p in self.phases
        )
        return Profile(f"{self.name} {memory_mib:g} MiB", tuple(phases))


def ramp(
    name: str, loading: Sequence[Phase], *, memory_mib: float, util_pct: float, rush_w: float, rush_s: float,
    less_mib: tuple[float, ...] = (),
) -> Profile:  # fmt: skip
    """A program that loads in phases and then computes with all its memory, for the first `rush_s` with more power."""
    working = [Phase(rush_s, memory_mib, util_pct, rush_w, less_mib),
               Phase(math.inf, memory_mib, util_pct, 0.0, less_mib)]  # fmt: skip
    return Profile(name, (*loading, *working))


DETECTOR = ramp(
    "detector", [Phase(15), Phase(7, 307), Phase(3, 700, 4)], memory_mib=6983, util_pct=4, rush_w=4, rush_s=27,
    less_mib=(2889, 839.5),
)  # fmt: skip
"""One image detector on a V100: nothing for 15 s, a context, a little more, and all its memory after 25 s.

Exporters that refresh every 6 or 8 s show it 3.6 s later in the mean. Readings of 120 recorded ones, which loaded
faster in some runs than in others, show all memory after 27 s (median) and 30 s (mean).
Its memory grows by doubling: 839 MiB, 2 GiB more, 4 GiB more. Where the next piece is not left it works with those it
has, so a fifth beside four takes 2,889 MiB, a sixth 839, and a seventh dies; all three were recorded."""
PROFILES = {profile.name: profile for profile in (DETECTOR,)}
"""Built-in profiles by name."""


def profiles_from_csv(path: str | os.PathLike[str]) -> dict[str, Profile]:
    """Profiles by name from a table with a row for each phase, in order: name, duration_s (nothing = until the pod
    ends), memory_mib, util_pct, power_w and less_mib, amounts such as ``2889:839.5``."""
    import pyarrow as pa

    from fastsim.foundation.csv_table import csv_line, read_csv

    numbers = ("duration_s", "memory_mib", "util_pct", "power_w")
    types = {"name": pa.string(), **dict.fromkeys(numbers, pa.float64()), "less_mib": pa.string()}
    phases: dict[str, list[Phase]] = {}
    for row, cells in enumerate(read_csv(path, types, ("name", "duration_s")).to_pylist()):
        where = f"{path}:{csv_line(path, row)}"
        if not cells["name"]:
            raise InputError(f"{where}: name", "nothing", "an application")
        lasts = math.inf if cells["duration_s"] is None else cells["duration_s"]
        memory, util, power = (cells.get(name) or 0.0 for name in numbers[1:])
        less = _amounts(where, cells.get("less_mib") or "")
        phases.setdefault(cells["name"], []).append(Phase(lasts, memory, util, power, less))
    return {name: Profile(name, tuple(rows)) for name, rows in phases.items()}


def _amounts(where: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(":") if part)
    except ValueError:
        raise InputError(f"{where}: less_mib", repr(text), "MiB, such as 2889:839.5") from None
