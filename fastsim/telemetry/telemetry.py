"""Options of telemetry: the readings of GPUs that a run records, and their interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fastsim.errors import InputError, ScenarioError, kind_of
from fastsim.foundation.limits.quantities import seconds_of
from fastsim.foundation.option_texts import named, parted
from fastsim.telemetry.reading_model import V100, Device
from fastsim.telemetry.sample_and_hold import refresh_gaps
from fastsim.telemetry.usage_profile import PROFILES, Profile, profiles_from_csv

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster

QUANTITIES = ("copy_pct", "energy_j", "memory_free_mib", "memory_used_mib", "power_w", "temperature_c", "util_pct")
"""Readings of every GPU, in the order of the table."""
RECORDED = {"V100M32": V100}
"""Devices whose tables were published, by GPU model; all others follow the catalogue."""
EXPECTED = "seconds such as 15 (1min, 1h), with options such as 15?refresh_s=6:8&epoch=2024-01-01T00:00:00Z"


@dataclass(frozen=True)
class Telemetry:
    """A sample of every GPU each ``every_s`` seconds, from the last refresh of its exporter.

    ``profiles`` are usage profiles by the workload's column ``workload``; any other pod uses its share of the device
    all the time, and ``gpu_memory_mib`` or that share of memory. ``devices`` replace devices of the catalogue by GPU
    model. The exporter refreshes at each sample, or after gaps drawn from ``refresh_s``, seconds. Second 0 of the run
    is ``epoch`` (UTC) in the table. Telemetry of equal fields is equal, and has no hash.
    """

    every_s: float = 15.0
    profiles: Mapping[str, Profile] = field(default_factory=lambda: dict(PROFILES))
    devices: Mapping[str, Device] = field(default_factory=dict)
    refresh_s: tuple[float, ...] = ()
    epoch: str = "1970-01-01T00:00:00Z"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.every_s) and self.every_s > 0 and (1000 * self.every_s).is_integer()):
            raise ScenarioError("telemetry: every_s", repr(self.every_s), "seconds above 0, in whole milliseconds")
        object.__setattr__(self, "refresh_s", tuple(self.refresh_s))
        if self.refresh_s and not (min(self.refresh_s) > 0 and math.isfinite(max(self.refresh_s))):
            raise ScenarioError("telemetry: refresh_s", repr(self.refresh_s), "gaps above 0 s")
        _ = self.epoch_ms

    @property
    def epoch_ms(self) -> int:
        """Second 0 of the run, milliseconds since 1970."""
        try:
            moment = datetime.fromisoformat(self.epoch)
        except (TypeError, ValueError):
            raise ScenarioError("telemetry: epoch", repr(self.epoch), "a time such as 2024-01-01T00:00:00Z") from None
        return round(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1000)

    def device(self, model: str, cluster: Cluster) -> Device:
        """The device of a GPU model."""
        if model in self.devices:
            return self.devices[model]
        known = cluster.catalog.gpu.get(model)
        if known is None:
            return _own_device(model, cluster)
        if not known.memory_mib:
            expected = "its memory, for telemetry; a table of models (watts=FILE) can have it"
            raise InputError(f"GPU model {model}: memory_mib", "nothing", expected)
        return Device(known.memory_mib, known.idle_w, known.peak_w)

    def refreshes(self, begin_s: float, seed: int) -> Iterator[float]:
        """Endless times of the exporter's refreshes, seconds; none if it refreshes at each sample.

        ScenarioError at a time to which no gap adds anything.
        """
        at, most = begin_s, max(self.refresh_s, default=0.0)
        for gap in refresh_gaps(self.refresh_s, seed):
            yield at
            if at + most == at:
                expected = f"a gap that adds something to second {at:.17g}"
                raise ScenarioError("telemetry: refresh_s", repr(self.refresh_s), expected)
            at += gap


def _own_device(model: str, cluster: Cluster) -> Device:
    """The device of a model that no catalogue has, from the columns of its nodes."""
    names = ["gpu_memory_mib", "gpu_idle_w", "gpu_peak_w"]
    table = cluster.offered.select(["gpu_model", *names]).to_pylist()
    kinds = {tuple(row[name] for name in names) for row in table if row["gpu_model"] == model}
    expected = "the same gpu_memory_mib, gpu_idle_w and gpu_peak_w of all its nodes, for telemetry"
    if len(kinds) != 1:
        raise InputError(f"GPU model {model}", f"{len(kinds)} kinds of devices", expected)
    for name, value in zip(names, *kinds, strict=True):
        if value is None:
            raise InputError(f"GPU model {model}: {name}", "nothing", expected)
    return Device(*next(iter(kinds)))


OPTIONS = "refresh_s, epoch, profiles, devices; once"


def telemetry_from(source: Any) -> Telemetry | None:
    """Telemetry from a number of seconds, a text or an object; None stays None."""
    if source is None or isinstance(source, Telemetry):
        return source
    if isinstance(source, int | float) and not isinstance(source, bool):
        return Telemetry(float(source))
    if not isinstance(source, str):
        raise ScenarioError("telemetry", kind_of(source), f"{EXPECTED}; or a Telemetry object")
    head, words = parted(source)
    options = named(words, f"telemetry {source!r}", OPTIONS)
    for name, value in options.items():
        if name not in ("refresh_s", "epoch", "profiles", "devices"):
            raise ScenarioError(f"telemetry {source!r}", f"option {f'{name}={value}'!r}", OPTIONS)
    return Telemetry(_number(source, head), **{name: _option(source, name, text) for name, text in options.items()})


def _option(source: str, name: str, text: str) -> Any:
    if name == "refresh_s":
        return tuple(_number(source, part) for part in text.split(":"))
    if name == "profiles":
        return {**PROFILES, **profiles_from_csv(text)}
    if name == "devices" and text != "recorded":
        raise ScenarioError(f"telemetry {source!r}: devices", repr(text), "'recorded'")
    return RECORDED if name == "devices" else text


def _number(source: str, text: str) -> float:
    seconds = seconds_of(text)
    if seconds is None:
        raise ScenarioError(f"telemetry {source!r}", repr(text), EXPECTED)
    return seconds
