"""Carbon intensity of the grid over time, and the overhead of the building.

===================  =====================================================================================
``350``              g of CO2 for each kWh, at all times
``350?pue=1.2``      the same, and the building draws 1.2 times what sockets and GPUs do (power usage effectiveness)
``grid.csv?pue=1.2`` a file with the columns ``since_s`` (seconds of the run, rising) and ``g_per_kwh``
===================  =====================================================================================

A row of the file holds from its time on, the first row also before.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim.errors import InputError, ScenarioError, kind_of
from fastsim.foundation.limits.knobs import SERIES
from fastsim.foundation.option_texts import names_file, parted

Floats = npt.NDArray[np.float64]

KWH_J = 3.6e6
"""Joules of a kWh."""
MOST_G, MOST_PUE = 10_000.0, 10.0
"""Largest intensity (g of CO2 for a kWh) and largest overhead; beyond them a unit is wrong."""
_EXPECTED = "g of CO2 for a kWh, such as 350 or '350?pue=1.2', or a CSV file with since_s and g_per_kwh"


@dataclass(frozen=True, eq=False)
class Carbon:
    """g of CO2 for each kWh, ``g_per_kwh[k]`` from ``since_s[k]`` on; ``pue`` is the building's draw over theirs."""

    since_s: Floats
    g_per_kwh: Floats
    pue: float = 1.0

    def __post_init__(self) -> None:
        for name in ("since_s", "g_per_kwh"):
            values = np.array(getattr(self, name), np.float64)
            values.flags.writeable = False
            object.__setattr__(self, name, values)
        since, grams = self.since_s, self.g_per_kwh
        SERIES.refuse(since.size, name="carbon: since_s")
        if since.ndim != 1 or since.shape != grams.shape or not len(since):
            raise InputError("carbon", f"shapes {since.shape} and {grams.shape}", "one intensity for each time")
        if not np.isfinite(since).all() or (np.diff(since) <= 0).any():
            raise InputError("carbon: since_s", "times that do not rise", "finite seconds, each later than the last")
        if not ((grams >= 0) & (grams <= MOST_G)).all():
            raise InputError("carbon: g_per_kwh", f"{grams.min():g} to {grams.max():g}", f"0 to {MOST_G:,.0f} g/kWh")
        if not 1 <= self.pue <= MOST_PUE:
            raise InputError("carbon: pue", self.pue, f"1 to {MOST_PUE:g}, the building's draw over that of the nodes")

    @classmethod
    def fixed(cls, g_per_kwh: float, pue: float = 1.0) -> Carbon:
        """The same intensity at all times."""
        return cls(np.zeros(1), np.array([g_per_kwh]), pue)

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str], pue: float = 1.0) -> Carbon:
        """Intensities of a file with the columns ``since_s`` and ``g_per_kwh``."""
        import pyarrow as pa

        from fastsim.foundation.csv_table import read_csv

        names = ("since_s", "g_per_kwh")
        table = read_csv(path, dict.fromkeys(names, pa.float64()), names)
        for name in names:
            if table[name].null_count or not len(table):
                raise InputError(f"{path}: {name}", "an empty cell" if len(table) else "no row", "a number in each row")
        try:
            return cls(table["since_s"].to_numpy(), table["g_per_kwh"].to_numpy(), pue)
        except InputError as error:
            raise InputError(str(path), str(error), "a series of intensities") from None

    @property
    def changes(self) -> bool:
        """Whether the intensity differs from one time to another."""
        return bool((self.g_per_kwh != self.g_per_kwh[0]).any())

    def checksum(self) -> str:
        """SHA-256 of times, intensities and overhead."""
        return hashlib.sha256(self.since_s.tobytes() + self.g_per_kwh.tobytes() + repr(self.pue).encode()).hexdigest()

    def co2_kg(self, energy_kwh: float) -> float:
        """Emissions of energy that sockets and GPUs draw at the first intensity."""
        return energy_kwh * self.pue * float(self.g_per_kwh[0]) / 1000

    def co2_kg_over(self, edges_s: Floats, power_w: Floats) -> float:
        """Emissions of power ``power_w[i]`` (watts of sockets and GPUs) from ``edges_s[i]`` to ``edges_s[i + 1]``."""
        gram_s = np.diff(self._integral(np.asarray(edges_s, np.float64)))
        return float(np.dot(gram_s, power_w)) * self.pue / KWH_J / 1000

    def _integral(self, times_s: Floats) -> Floats:
        """The intensity summed up from ``since_s[0]`` to each time, g s/kWh."""
        before = np.concatenate(([0.0], np.cumsum(np.diff(self.since_s) * self.g_per_kwh[:-1])))
        row = np.maximum(np.searchsorted(self.since_s, times_s, "right") - 1, 0)
        sums: Floats = before[row] + (times_s - self.since_s[row]) * self.g_per_kwh[row]
        return sums


def carbon_from(what: Any) -> Carbon | None:
    """The intensity of a number, a text or an object."""
    if what is None or isinstance(what, Carbon):
        return what
    if isinstance(what, bool) or not isinstance(what, int | float | str | os.PathLike):
        raise ScenarioError("carbon", kind_of(what), _EXPECTED, "a Carbon object says more")
    head, words = parted(str(what))
    names = [word.partition("=")[0].strip() for word in words]
    if names not in ([], ["pue"]):
        raise ScenarioError("carbon", repr(str(what)), _EXPECTED)
    pue = _number("carbon: pue", words[0].partition("=")[2]) if words else 1.0
    if names_file(head):
        return Carbon.from_csv(head, pue)
    return Carbon.fixed(_number("carbon", head), pue)


def _number(where: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ScenarioError(where, repr(text), "a number" if where.endswith("pue") else _EXPECTED) from None
