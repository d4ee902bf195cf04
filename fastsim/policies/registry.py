"""Policies by name: registration, discovery, description and the text form ``"0.9*fgd + 0.1*pwr"``.

A policy class registers itself with ``@policy("dotted.name")``. ``MODULES`` lists the built-in policies with their
modules, so that naming one loads its module alone. Other packages add policies through the entry-point group
``fastsim.policies``. Nothing here imports numpy, so the command line can list policies quickly.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar

from fastsim.errors import GUESS, PolicyError, plain_name, short, suggestion
from fastsim.scenario import user_code

if TYPE_CHECKING:
    from fastsim.engine.online.plan import OnlinePolicy
    from fastsim.engine.shares.plan import RoundPolicy

ENTRY_POINT_GROUP = "fastsim.policies"
MODULES = {
    # Online policies place pods one by one.
    "best_fit": "online.best_fit", "coolest": "online.by_readings", "dot_product": "online.dot_product",
    "fgd": "online.fgd", "gpu_clustering": "online.gpu_clustering", "gpu_packing": "online.gpu_packing",
    "least_power": "online.by_readings", "least_utilised": "online.by_readings",
    "most_free_memory": "online.by_readings", "preferred": "online.preferred", "pwr": "online.pwr",
    "python": "online.python_scorer", "random": "online.random", "simon": "online.simon",
    # Share policies divide the time of GPUs among jobs.
    "allox": "shares.allox", "fifo": "shares.fifo", "finish_time_fairness": "shares.finish_time_fairness",
    "gandiva": "shares.gandiva", "isolated": "shares.isolated", "max_min_fairness": "shares.max_min_fairness",
    "max_min_fairness_water_filling": "shares.water_filling", "max_sum_throughput": "shares.max_sum_throughput",
    "min_total_duration": "shares.min_total_duration", "proportional": "shares.proportional",
    "strategy_proof": "shares.strategy_proof",
    # Orders sort the jobs of a round.
    "drf": "orders", "edf": "orders", "fcfs": "orders", "ftf": "orders", "las": "orders", "order": "orders",
    "round_robin": "orders", "srsf": "orders", "srtf": "orders", "tetris": "orders", "tiresias": "orders",
    # Adaptive policies choose GPUs for jobs that train epoch by epoch.
    "optimus": "adaptive.optimus", "planned": "adaptive.planned", "pollux": "adaptive.pollux",
    "rotation": "adaptive.rotation", "served": "adaptive.served", "sia": "adaptive.sia",
    # Monitored schedulers read GPU metrics while pods run.
    "exclusive": "monitored.exclusive_and_gpushare", "gpushare": "monitored.exclusive_and_gpushare",
    "monitored": "monitored.knots",
}  # fmt: skip
"""Module of each built-in policy, below ``fastsim.policies``."""
ORIGINAL_NAMES = {
    "allox": "allox(allox_compat=True)",
    "fifo": "fifo(mode=base, fifo_compat=True)",
    "fifo_perf": "fifo(mode=perf)",
    "fifo_packed": "fifo(mode=packed, fifo_compat=True)",
    "finish_time_fairness": "finish_time_fairness(mode=base, program_compat=True)",
    "finish_time_fairness_perf": "finish_time_fairness(mode=perf, program_compat=True)",
    "finish_time_fairness_packed": "finish_time_fairness(mode=packed)",
    "gandiva": "gandiva",
    "isolated": "isolated",
    "isolated_plus": "isolated(per_gpu=False)",
    "max_min_fairness": "max_min_fairness(mode=base)",
    "max_min_fairness_perf": "max_min_fairness(mode=perf)",
    "max_min_fairness_packed": "max_min_fairness(mode=packed)",
    "max_min_fairness_water_filling": "max_min_fairness_water_filling(mode=base, program_compat=True)",
    "max_min_fairness_water_filling_perf": "max_min_fairness_water_filling(mode=perf, program_compat=True)",
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
"""Names in Gavel's command line -> the same policy as a text, with its parameters."""

METHODS = {"pods": "plan", "shares": "begin", "orders": "begin", "adaptive": "begin", "monitored": "watch"}
"""Engines, and the method of a policy that each of them asks."""
FLAGS = {"adaptive": "adaptive", "orders": "ordered"}
"""Attributes by which policies with a method ``begin`` may also say their engine."""
T = TypeVar("T")
MOST = 2**64
"""Size that numbers of parameters stay below; seeds are the largest of them."""
_classes: dict[str, type[Any]] = {}


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
    """Metadata of a parameter field: its meaning, unit and allowed values."""
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
    """Idea of a policy, its parameters, its publication (BibTeX) and the engine that plays it."""

    name: str
    title: str
    text: str
    parameters: tuple[Parameter, ...]
    citation: str
    engine: str


def names() -> list[str]:
    """Every policy name, sorted, entry points of other packages included."""
    return sorted({*MODULES, *_classes, *_entry_points()})


def policy_class(name: str) -> type[Any]:
    """The class registered under ``name``; unknown names are a :class:`PolicyError` with a suggestion."""
    _load_module(name)
    if name not in _classes:
        _load_entry_point(name)
    if name in _classes:
        return _classes[name]
    raise PolicyError(f"policy {name!r}", "an unknown name", f"one of {', '.join(names())}", _meant(name))


def _meant(name: str) -> str:
    """A guess at an unknown policy: a rule of the queue, or the policy of the closest name."""
    from fastsim.engine.online.plan import QUEUES

    known = {plain_name(rule): f"{GUESS} the rule of the queue, queue={rule!r}?" for rule in QUEUES}
    known |= {plain_name(policy): f"{GUESS} {policy!r}?" for policy in names()}
    return known.get(plain_name(name)) or suggestion(name, names())


def classes() -> Iterator[type[Any]]:
    """The built-in policy classes and those other packages have registered so far."""
    for name in MODULES:
        _load_module(name)
    yield from (_classes[name] for name in sorted(_classes))


def create(name: str, parameters: Mapping[str, object]) -> OnlinePolicy | RoundPolicy:
    """The policy ``name`` with these parameters."""
    cls = policy_class(name)
    kinds = {field.name: str(field.type) for field in dataclasses.fields(cls) if field.init}
    for key, value in parameters.items():
        if key not in kinds:
            expected = f"one of {', '.join(kinds)}" if kinds else "no parameters"
            raise PolicyError(f"policy {name}, parameter {key}", "an unknown name", expected, suggestion(key, kinds))
        _check_value(name, key, value, kinds[key])
    try:
        instance: OnlinePolicy | RoundPolicy = cls(**parameters)
    except TypeError as error:
        raise PolicyError(f"policy {name}", str(error), "its required parameters") from None
    return instance


def engine_of(policy: Any) -> str:
    """The engine that plays a policy, which is an object or a class: its attribute ``engine``, else by its methods.

    "" for what is no policy.
    """
    named = getattr(policy, "engine", None)
    if named is not None:
        return _checked_engine(policy, named)
    has = {method: callable(getattr(policy, method, None)) for method in METHODS.values()}
    if has["watch"]:
        return "monitored"
    if has["begin"]:
        return next((engine for engine, flag in FLAGS.items() if getattr(policy, flag, False)), "shares")
    return "pods" if has["plan"] else ""


def _checked_engine(policy: Any, named: Any) -> str:
    """The name of an engine whose method the policy has."""
    if not isinstance(named, str) or named not in METHODS:
        raise PolicyError(f"policy {label(policy)}: engine", short(named), f"one of {', '.join(METHODS)}")
    if not callable(getattr(policy, METHODS[named], None)):
        raise PolicyError(f"policy {label(policy)}", f"engine {named!r} without a method", f"{METHODS[named]}(...)")
    return named


def check_parameters(made: object) -> None:
    """PolicyError if a policy object has a value of another kind than its parameter, or one beyond all bounds."""
    cls = type(made)
    name = getattr(cls, "policy_name", "")
    if dataclasses.is_dataclass(cls) and _classes.get(name) is cls:
        for field in dataclasses.fields(cls):
            value = getattr(made, field.name)
            if field.init and value is not field.default:
                _check_value(name, field.name, value, str(field.type))


def _check_value(name: str, key: str, value: object, kind: str) -> None:
    """PolicyError for words in place of numbers or truth, numbers in place of words, and numbers beyond all bounds."""
    where, word = f"policy {name}, parameter {key}", isinstance(value, str)
    if isinstance(value, int | float) and not -MOST < value < MOST:
        raise PolicyError(where, short(value), "a finite number, between -2**64 and 2**64")
    if kind == "bool" and word:
        said = str(value).capitalize()
        do = f"write {key}={said}" if said in ("True", "False") else ""
        raise PolicyError(where, short(value), "True or False", do)
    if kind in ("int", "float") and (isinstance(value, bool) or not isinstance(value, Real)):
        raise PolicyError(where, short(value), "a number")
    if kind == "int" and not isinstance(value, Integral):
        raise PolicyError(where, short(value), "a whole number")
    if kind == "str" and not word:
        raise PolicyError(where, short(value), "a word or a quoted text")


def label(made: object) -> str:
    """A policy as errors name it: its text; the name of its class if it has none."""
    own = type(made).__str__ is not object.__str__ and type(made).__repr__ is object.__repr__
    text = str(made) if own or hasattr(type(made), "policy_name") else ""
    return text or type(made).__qualname__


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
    return Description(
        name=name,
        title=text.partition("\n")[0],
        text=text,
        parameters=fields,
        citation=getattr(cls, "citation", ""),
        engine=engine_of(cls),
    )


def parse(text: str) -> OnlinePolicy | RoundPolicy:
    """The policy written as ``"fgd"``, ``"0.9*fgd + 0.1*pwr"`` or ``"max_min_fairness(mode=packed)"``."""
    from fastsim.policies.expression import policy_from_text

    try:
        return policy_from_text(text, create)
    except PolicyError:
        # A name with hyphens reads as a difference of policies.
        if "-" in text and re.fullmatch(r"[A-Za-z][\w-]*", text.strip()) and (guess := _meant(text)):
            raise PolicyError(f"policy {text!r}", "an unknown name", f"one of {', '.join(names())}", guess) from None
        raise


def policy_of(given: Any) -> Any:
    """The policy of a text; an object is one."""
    return parse(given) if isinstance(given, str) else given


def imports_code(text: str) -> bool:
    """Whether one of the policies that a text names imports code of the user's, as its ``imports_code`` says.

    Every policy that is made counts, also one whose weight is 0. A text that means nothing imports nothing, but the
    answer is yes for one that is nested too deep to be read.
    """
    from fastsim.policies.expression import NestedTooDeep, policy_from_text

    made = []

    def noted(name: str, parameters: Mapping[str, object]) -> OnlinePolicy | RoundPolicy:
        made.append(create(name, parameters))
        return made[-1]

    try:
        policy_from_text(text, noted)
    except NestedTooDeep:
        return True
    except PolicyError:  # the same text fails here again when it is to be run
        pass
    return any(getattr(one, "imports_code", False) for one in made)


user_code.ANSWERS.append(imports_code)


def placing(text: str) -> OnlinePolicy:
    """The policy written as ``text``, which must be one that places pods; others are a :class:`PolicyError`."""
    parsed: Any = parse(text)
    if engine_of(parsed) != "pods":
        raise PolicyError(f"policy {text!r}", "a policy of another engine", "one that places pods")
    online: OnlinePolicy = parsed
    return online


@cache
def _load_module(name: str) -> None:
    """Load the module of a built-in policy; other names are left to entry points."""
    if name in MODULES:
        importlib.import_module(f"fastsim.policies.{MODULES[name]}")


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
        cause = f"{type(error).__name__}: {error}"
        raise PolicyError(f"policy {name!r} of entry point {point.value}", cause, "a class that imports") from error
    _classes.setdefault(name, cls)
