"""The generators by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastsim.workload.pod_rows import PodRows

HOMES = {
    "openb": ("openb", "synth_openb"),
    "gavel": ("gavel", "synth_gavel"),
    "gavel-trace": ("gavel", "synth_gavel_trace"),
    "detectors": ("detectors", "detectors"),
    "sia": ("sia", "synth_sia"),
    "synergy": ("synergy", "synth_synergy"),
}
"""Module and function of each generator."""


class Generators(Mapping[str, "Callable[..., PodRows]"]):
    """A generator for each name, loaded when it is looked up."""

    def __getitem__(self, name: str) -> Callable[..., PodRows]:
        module, function = HOMES[name]
        generator: Callable[..., PodRows] = getattr(import_module(f"{__package__}.{module}"), function)
        return generator

    def __contains__(self, name: object) -> bool:
        return name in HOMES

    def __iter__(self) -> Iterator[str]:
        return iter(HOMES)

    def __len__(self) -> int:
        return len(HOMES)


GENERATORS = Generators()
