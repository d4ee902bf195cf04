"""Model of a GPU's readings: memory, utilisation, memory copies, power, energy and temperature, from its pods.

Between two changes everything is constant except temperature and energy, and those are integrated exactly. Memory adds
up. Utilisation does not: by default it is `100 * (1 - product of (1 - u))`, or it comes from a table by the number of
pods. Power comes from a table, too, or grows from idle to peak with utilisation.
Temperature follows power like one heated mass: `tau * dT/dt = ambient + R * power - T`. Its `R` and `tau`, and the
share of copies in utilisation, are assumptions: no recordings of them exist.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastsim.errors import InputError
from fastsim.telemetry.usage_profile import Profile

Floats = npt.NDArray[np.float64]


class Resident(NamedTuple):
    """A pod on the device: second it starts and ends, and its profile."""

    start_s: float
    end_s: float
    profile: Profile


@dataclass(frozen=True)
class Device:
    """A GPU: its memory and the part reserved while used, MiB; watts; and its joint use by several pods.

    ``util_pct`` and ``power_w`` are tables by the number of pods that compute and of pods that hold memory, from 0;
    more pods than the table knows count as its last entry. ``copy_share`` is memory copies per utilisation,
    ``resistance_k_per_w`` and ``tau_s`` are the rise above ``ambient_c`` per watt and its time constant. ``slowdown``
    is the factor on run times of pods that share the device, by their number from 0, in runs of monitored schedulers.
    """

    memory_mib: float
    idle_w: float
    peak_w: float
    kept_mib: float = 0.0
    util_pct: tuple[float, ...] = ()
    power_w: tuple[float, ...] = ()
    copy_share: float = 0.5
    ambient_c: float = 30.0
    resistance_k_per_w: float = 0.16
    tau_s: float = 45.0
    slowdown: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.idle_w <= self.peak_w < math.inf:
            raise InputError("device: idle_w, peak_w", f"{self.idle_w:g}, {self.peak_w:g}", "0 <= idle <= peak")
        if not (self.tau_s > 0 and self.memory_mib > 0):
            raise InputError("device: tau_s, memory_mib", f"{self.tau_s:g}, {self.memory_mib:g}", "more than 0")


V100 = Device(
    32_510, 27.0, 300.0, kept_mib=11.0, util_pct=(0.0, 4.0, 35.0, 64.0, 81.0, 93.0, 97.0),
    power_w=(27.0, 38.9, 47.2, 50.5, 52.5, 53.3, 54.6), slowdown=(1.0, 1.0, 1.0, 1.0, 1.12, 1.21, 1.29),
)  # fmt: skip
"""A V100 with 32 GB that detectors share: the published medians of readings and of run times, by the number of them."""


class Readings(NamedTuple):
    """Piecewise constant readings: piece i begins at `begin_s[i]`; the first begins with the readings.

    ``temperature_c`` and ``energy_j`` are those at the beginning of the piece.
    """

    begin_s: Floats
    pods: npt.NDArray[np.int64]
    memory_mib: Floats
    util_pct: Floats
    copy_pct: Floats
    power_w: Floats
    temperature_c: Floats
    energy_j: Floats

    def at(self, name: str, time_s: Any, device: Device) -> Floats:
        """A reading at some seconds; before the first piece it is that piece's."""
        times = np.asarray(time_s, np.float64)
        piece = np.maximum(np.searchsorted(self.begin_s, times, side="right") - 1, 0)
        value: Floats = getattr(self, name)[piece]
        after = np.maximum(times - self.begin_s[piece], 0.0)
        if name == "temperature_c":
            level = device.ambient_c + device.resistance_k_per_w * self.power_w[piece]
            value = level + (value - level) * np.exp(-after / device.tau_s)
        elif name == "energy_j":
            value = value + self.power_w[piece] * after
        return value

    def free_mib(self, device: Device) -> Floats:
        """Free memory, MiB; never negative."""
        return np.maximum(device.memory_mib - self.memory_mib, 0.0)


def readings(residents: Sequence[Resident], device: Device, begin_s: float = 0.0) -> Readings:
    """The device's readings from `begin_s` on; it was idle before."""
    edges = sorted(_edges(residents), key=lambda edge: edge[0])
    times = np.array([begin_s, *(max(edge[0], begin_s) for edge in edges)])
    changes = np.array([(0.0,) * 5, *(edge[1:] for edge in edges)])
    last = np.append(np.flatnonzero(np.diff(times)), len(times) - 1)
    memory, computing, holding, extra, spare = changes.cumsum(axis=0)[last].T
    computing, holding = np.rint(computing).astype(np.int64), np.rint(holding).astype(np.int64)
    memory = np.where(holding > 0, memory + device.kept_mib, 0.0)
    memory = np.minimum(memory, device.memory_mib)
    util = _by_count(device.util_pct, computing)
    if util is None:
        util = np.where(computing > 0, np.clip(100 * (1 - np.exp(spare)), 0.0, 100.0), 0.0)
    power = _by_count(device.power_w, holding)
    if power is None:
        power = device.idle_w + (device.peak_w - device.idle_w) * util / 100
    power = np.clip(power + np.where(holding > 0, extra, 0.0), 0.0, device.peak_w)
    begin = times[last]
    temperature, energy = _integrated(begin, power, device)
    return Readings(
        begin_s=begin,
        pods=holding,
        memory_mib=memory,
        util_pct=util,
        copy_pct=util * device.copy_share,
        power_w=power,
        temperature_c=temperature,
        energy_j=energy,
    )


LEAST_SPARE = 2.0**-60
"""Share of a device that a pod at 100 % leaves over, so that logarithms stay finite."""


def _edges(residents: Sequence[Resident]) -> list[tuple[float, ...]]:
    """Changes: second, MiB, pods that compute, pods that hold memory, watts, logarithm of what is left over."""
    edges: list[tuple[float, ...]] = []
    for resident in residents:
        if not resident.start_s <= resident.end_s < math.inf:
            raise InputError("resident", f"{resident.start_s:g} to {resident.end_s:g} s", "an end after the start")
        before = np.zeros(5)
        for after_s, phase in zip(resident.profile.starts_s, resident.profile.phases, strict=True):
            time = resident.start_s + after_s
            if time >= resident.end_s:
                break
            spare = math.log(max(1 - phase.util_pct / 100, LEAST_SPARE))
            held_mib = round(phase.memory_mib * 1024) / 1024  # whole units for each pod, so that their sums are exact
            level = np.array([held_mib, float(phase.util_pct > 0), float(phase.memory_mib > 0), phase.power_w, spare])
            edges.append((time, *(level - before)))
            before = level
        edges.append((resident.end_s, *-before))
    return edges


def _by_count(table: tuple[float, ...], count: npt.NDArray[np.int64]) -> Floats | None:
    return np.array(table)[np.minimum(count, len(table) - 1)] if table else None


def _integrated(begin: Floats, power: Floats, device: Device) -> tuple[Floats, Floats]:
    """Temperature and energy at the beginning of every piece, exactly: power is constant in each."""
    lengths = np.diff(begin)
    energy = np.concatenate(([0.0], np.cumsum(power[:-1] * lengths)))
    level = device.ambient_c + device.resistance_k_per_w * power
    temperature = np.empty(len(begin))
    temperature[0] = device.ambient_c + device.resistance_k_per_w * device.idle_w
    for piece, decay in enumerate(np.exp(-lengths / device.tau_s)):
        temperature[piece + 1] = level[piece] + (temperature[piece] - level[piece]) * decay
    return temperature, energy
