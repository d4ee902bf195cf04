"""The options of a run as keywords in Python, with their types, for editors and type checkers."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, TypedDict

from fastsim.errors import suggestion
from fastsim.scenario.scenario import Scenario

if TYPE_CHECKING:
    from fastsim.engine.online.closing_stages import Deschedule
    from fastsim.performance.oracle import Oracle
    from fastsim.performance.sensitivity import Sensitivity
    from fastsim.scenario.carbon import Carbon
    from fastsim.scenario.prices import Prices
    from fastsim.telemetry.telemetry import Telemetry
    from fastsim.workload import Workload
    from fastsim.workload.typical_pods import TypicalPods

Text = str | os.PathLike[str]
"""A text that names something, or the path of a file or folder."""
Span = float | str
"""A length of time: seconds, or a text such as ``1h``."""
INPUTS = ("cluster", "workload", "policy")
"""Fields of a scenario that are arguments of their own."""
CHECKPOINTS = ("checkpoint_pods", "checkpoint_s", "keep_checkpoint")
"""Options that are no fields of a scenario, as they change no result."""


class Options(TypedDict, total=False):
    """Fields of a scenario other than its inputs, and when checkpoints are written."""

    seed: int
    typical: TypicalPods | Workload | Text | None
    queue: str
    gpu_pick: str | None
    sample_s: Span | None
    until_s: Span | None
    record: str
    deschedule: Iterable[Deschedule | str] | Deschedule
    inflation: float | None
    retarget: TypicalPods | Workload | Text | None
    preempt: str
    on_node_loss: str
    checkpoint_every_s: Span | None
    restart_s: Span
    quotas: Mapping[str, Mapping[str, int]] | str
    weights: Mapping[str, float] | str
    failures: Mapping[str, Span] | str
    maintenance: Any
    compat: str
    round_s: Span | None
    realloc_s: Span | None
    begin_s: Span | None
    window: str | Sequence[int] | None
    rates: Oracle | Sensitivity | Text | None
    prices: Prices | Mapping[str, float] | Text | None
    carbon: Carbon | float | Text | None
    global_queue: bool
    profiling: float
    references: int | None
    ideal: bool
    interference: float
    telemetry: Telemetry | float | str | None
    name: str
    out: Text | None
    log: Text | None
    checkpoint_pods: int | None
    checkpoint_s: float | None
    keep_checkpoint: bool


def refuse_unknown(function: str, options: Iterable[str]) -> None:
    """TypeError for a keyword that is no option, as Python has it for parameters."""
    known = [*Options.__annotations__]
    for name in options:
        if name not in known:
            near = suggestion(name, known)
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{f'; {near}' if near else ''}")


def spelled_out(written: Signature) -> Signature:
    """A signature with every option and its default in place of ``**options``, as notebooks complete them."""
    own = [item for item in written.parameters.values() if item.kind is not Parameter.VAR_KEYWORD]
    defaults = {item.name: item.default for item in dataclasses.fields(Scenario)}
    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=defaults.get(name, False if name.startswith("keep") else None),
                  annotation=getattr(kind, "__forward_arg__", kind))
        for name, kind in Options.__annotations__.items()
    ]  # fmt: skip
    places = [item for item in own if item.kind is not Parameter.KEYWORD_ONLY]
    keywords = [item for item in own if item.kind is Parameter.KEYWORD_ONLY]
    return written.replace(parameters=[*places, *options, *keywords])
