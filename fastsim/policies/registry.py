"""Policies by name: registration, discovery, description and the text form ``"0.9*fgd + 0.1*pwr"``.

A policy class registers itself with ``@policy("dotted.name")``. Built-in families are the modules of
``fastsim.policies.online``, which place pods, of ``fastsim.policies.shares``, which share out the time of jobs, of
``fastsim.policies.adaptive`` and ``fastsim.policies.monitored``, and the module ``fastsim.policies.orders``;
other packages add theirs through the entry-point group ``fastsim.policies``. Nothing here imports numpy, so the
command line can list policies quickly.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from fastsim.errors import PolicyError, suggestion

if TYPE_CHECKING:
    from fastsim.engine.online.plan import OnlinePolicy
    from fastsim.engine.shares.plan import RoundPolicy

ENTRY_POINT_GROUP = "fastsim.policies"
FAMILIES = ("fastsim.policies.online", "fastsim.policies.shares", "fastsim.policies.adaptive",
            "fastsim.policies.monitored")  # fmt: skip
ORDERS = "fastsim.policies.orders"
T = TypeVar("T")
_classes: dict[str, type[Any]] = {}
ORIGINAL_NAMES = {
    "allox": "allox(allox_compat=True)",
    "fifo": "fifo(mode=base, fifo_compat=True)",
    "fifo_perf": "fifo(mode=perf)",
    "fifo_packed": "fifo(mode=packed)",
    "finish_time_fairness": "finish_time_fairness(mode=base)",
    "finish_time_fairness_perf": "finish_time_fairness(mode=perf)",
    "finish_time_fairness_packed": "finish_time_fairness(mode=packed)",
    "gandiva": "gandiva",
    "isolated": "isolated",
    "isolated_plus": "isolated(per_gpu=False)",
    "max_min_fairness": "max_min_fairness(mode=base)",
    "max_min_fairness_perf": "max_min_fairness(mode=perf)",
    "max_min_fairness_packed": "max_min_fairness(mode=packed)",
    "max_min_fairness_water_filling": "max_min_fairness_water_filling(mode=base)",
    "max_min_fairness_water_filling_perf": "max_min_fairness_water_filling(mode=perf)",
    "max_min_fairness_water_filling_packed": "max_min_fairness_water_filling(mode=packed)",
    "max_sum_throughput_perf": "max_sum_throughput",
    "max_sum_throughput_normalized_by_cost_perf": "max_sum_throughput(per_cost=True)",
    "max_sum_throughput_normalized_by_cost_perf_SLOs": "max_sum_throughput(per_cost=True, deadlines=True)",
    "max_sum_throughput_normalized_by_cost_packed_SLOs":
        "max_sum_throughput(mode=packed, per_cost=True, deadlines=True)",
    "min_total_duration": "min_total_duration(mode=base, search=bisection)",
    "min_total_duration_perf": "min_total_duration(mode=perf, search=bisection)",
    "min_total_duration_packed": "min_total_duration(mode=packed, search=bisection)",
    "proportional": "proportional",
}  # fmt: skip
"""Gavel's name -> ours as a text, with the parameters that make it the same policy."""


def policy(name: str) -> Callable[[type[T]], type[T]]:
    """Register the decorated class under a stable dotted name."""

    def register(cls: type[T]) -> type[T]:
        known = _classes.get(name)
        if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise PolicyError(f"policy {name!r}", f"a second class {cls.__qualname__}", "one class for each name")
        cls.policy_name = name  # type: ignore[attr-defined]
        _classes[name] = cls
        return cls

    return register


def about(text: str, *, unit: str = "", choices: tuple[str, ...] = ()) -> dict[str, object]:
    """Metadata of a parameter field: what it means, its unit and the values it may take."""
    return {"text": text, "unit": unit, "choices": choices}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a policy, as :func:`describe` reports it."""

    name: str
    default: object
    text: str
    unit: str
    choices: tuple[str, ...]


@dataclass(frozen=True)
class Description:
    """What a policy does, its parameters and the publication it comes from (BibTeX).

    ``socket`` is the engine it plugs into: ``pods`` are placed one by one, ``rounds`` share out the time of jobs,
    ``monitored`` schedulers look at what GPUs report while pods run.
    """

    name: str
    title: str
    text: str
    parameters: tuple[Parameter, ...]
    citation: str
    socket: str


def names() -> list[str]:
    """Every policy name, sorted, entry points of other packages included."""
    _discover()
    return sorted({*_classes, *_entry_points()})


def policy_class(name: str) -> type[Any]:
    """The class registered under ``name``; unknown names are a :class:`PolicyError` with a suggestion."""
    _load_namesake(name)
    if name not in _classes:
        _discover()
    if name not in _classes:
        _load_entry_point(name)
    if name in _classes:
        return _classes[name]
    raise PolicyError(f"policy {name!r}", "an unknown name", f"one of {', '.join(names())}", suggestion(name, names()))


def classes() -> Iterator[type[Any]]:
    """The built-in policy classes and those other packages have registered so far."""
    _discover()
    yield from (_classes[name] for name in sorted(_classes))


def create(name: str, parameters: Mapping[str, object]) -> OnlinePolicy | RoundPolicy:
    """The policy ``name`` with these parameters."""
    cls = policy_class(name)
    known = [field.name for field in dataclasses.fields(cls) if field.init]
    for key in parameters:
        if key not in known:
            expected = f"one of {', '.join(known)}" if known else "no parameters"
            raise PolicyError(f"policy {name}, parameter {key}", "an unknown name", expected, suggestion(key, known))
    try:
        made: OnlinePolicy | RoundPolicy = cls(**parameters)
    except TypeError as error:
        raise PolicyError(f"policy {name}", str(error), "its required parameters") from None
    return made


def describe(name: str) -> Description:
    """Idea, formula, parameters with units and defaults, and citation of the policy ``name``."""
    cls = policy_class(name)
    text = inspect.cleandoc(cls.__doc__ or "")
    fields = tuple(
        Parameter(
            field.name,
            None if field.default is dataclasses.MISSING else field.default,
            field.metadata.get("text", ""),
            field.metadata.get("unit", ""),
            field.metadata.get("choices", ()),
        )
        for field in dataclasses.fields(cls)
        if field.init
    )
    socket = "rounds" if hasattr(cls, "begin") else "monitored" if hasattr(cls, "watch") else "pods"
    return Description(name, text.partition("\n")[0], text, fields, getattr(cls, "citation", ""), socket)


def parse(text: str) -> OnlinePolicy | RoundPolicy:
    """The policy written as ``"fgd"``, ``"0.9*fgd + 0.1*pwr"`` or ``"max_min_fairness(mode=packed)"``."""
    from fastsim.policies.expression import policy_from_text

    return policy_from_text(text, create)


def placing(text: str) -> OnlinePolicy:
    """The policy written as ``text``, which must be one that places pods; others are a :class:`PolicyError`."""
    made: Any = parse(text)
    if hasattr(made, "begin") or hasattr(made, "watch"):
        raise PolicyError(f"policy {text!r}", "a policy of another engine", "one that places pods")
    placed: OnlinePolicy = made
    return placed


@cache
def _load_namesake(name: str) -> None:
    """Load the module called like the policy, where most stand: who needs one need not load them all."""
    if name.isidentifier() and not name.startswith("_"):
        for family in FAMILIES:
            if importlib.util.find_spec(f"{family}.{name}") is not None:
                importlib.import_module(f"{family}.{name}")


@lru_cache(maxsize=1)  # the modules of a package do not change while it runs
def _discover() -> None:
    importlib.import_module(ORDERS)
    for family in FAMILIES:
        package = importlib.import_module(family)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{family}.{module.name}")


def _entry_points() -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def _load_entry_point(name: str) -> None:
    point = _entry_points().get(name)
    if point is None:
        return
    try:
        cls = point.load()
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
        raise PolicyError(f"policy {name!r} of entry point {point.value}", found, "a class that imports") from error
    _classes.setdefault(name, cls)
