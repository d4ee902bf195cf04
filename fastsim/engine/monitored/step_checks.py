"""Checks of what a scheduler's factory and its steps return: a scheduler, bindings of waiting pods, and a time."""

from __future__ import annotations

import math
from collections.abc import Container
from numbers import Integral, Real
from typing import Any

from fastsim.engine.monitored.plan import Binding, Scheduler, SchedulerStep
from fastsim.errors import PolicyError, kind_of


def checked_scheduler(made: Any) -> Scheduler:
    """The scheduler that a factory made; PolicyError for anything that cannot collect and bind pods."""
    if isinstance(made, type) or not all(callable(getattr(made, name, None)) for name in ("arrive", "step")):
        raise PolicyError("MonitoredPlan: scheduler()", kind_of(made), "an object with arrive() and step()")
    scheduler: Scheduler = made
    return scheduler


def checked_step(step: Any, arrived: Container[int], gpus: int, now_s: float) -> SchedulerStep:
    """The step; PolicyError for anything but bindings of pods that have ``arrived``, and a later second."""
    where = f"scheduler at {now_s:g} s: step()"
    if not isinstance(step, SchedulerStep):
        raise PolicyError(where, kind_of(step), "a SchedulerStep(bindings, next_s)")
    if not isinstance(step.bindings, list | tuple):
        raise PolicyError(f"{where}: bindings", kind_of(step.bindings), "a list of Bindings")
    for binding in step.bindings:
        if not isinstance(binding, Binding):
            raise PolicyError(f"{where}: bindings", kind_of(binding), "a Binding(pod, gpu, at_s)")
        _check(binding, arrived, gpus, now_s, where)
    if not _is_a(Real, step.next_s) or step.next_s != step.next_s:
        raise PolicyError(f"{where}: next_s", kind_of(step.next_s), "seconds, infinite for the next event")
    return step


def _check(binding: Binding, arrived: Container[int], gpus: int, now_s: float, where: str) -> None:
    """PolicyError for a pod that has not arrived, a GPU that is not there, and a second that has passed."""
    pod, gpu, at_s, stage = binding
    if not _is_a(Integral, pod) or pod not in arrived:
        raise PolicyError(f"{where}: pod", kind_of(pod), "a pod that has arrived")
    if not _is_a(Integral, gpu) or not 0 <= gpu < gpus:
        raise PolicyError(f"{where}: gpu of pod {pod}", kind_of(gpu), f"the number of a GPU, 0 to {gpus - 1}")
    if not _is_a(Real, at_s) or not now_s <= at_s < math.inf:  # false for NaN
        raise PolicyError(f"{where}: at_s of pod {pod}", kind_of(at_s), f"a second from {now_s:g} on")
    if not isinstance(stage, str):
        raise PolicyError(f"{where}: stage of pod {pod}", kind_of(stage), "a text")


def _is_a(kind: type, value: Any) -> bool:
    """Whether a value is a number of this kind, and no truth value."""
    if type(value) is int or (kind is Real and type(value) is float):  # most are; abstract kinds are slow to ask
        return True
    return isinstance(value, kind) and not isinstance(value, bool)
