"""Checks of the plans that policies return: a table of the values that each field may have."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

from fastsim.engine.online.plan import (
    DIMS,
    GPU_PICKS,
    KERNELS,
    NORMALISERS,
    NORMS,
    PREFERENCE_KERNELS,
    QUEUES,
    OnlinePlan,
    ScoreTerm,
)
from fastsim.errors import PolicyError, kind_of
from fastsim.policies.registry import label
from fastsim.scenario.sort_keys import OF_JOBS, key_fault, queue_key

Rule = tuple[Callable[[Any], bool], str]
"""Whether a value is allowed, and what is expected."""


def _one_of(names: tuple[str, ...]) -> Rule:
    return (lambda value: isinstance(value, str) and value in names), f"one of {', '.join(names)}"


def _with(*methods: str) -> Rule:
    def has(value: Any) -> bool:
        return not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in methods)

    return has, f"an object with {' and '.join(f'{name}()' for name in methods)}"


def _with_solver_s(method: str) -> Rule:
    has, expected = _with(method)
    return (lambda value: has(value) and hasattr(value, "solver_s")), f"{expected} and solver_s"


def _visit() -> Rule:
    from fastsim.engine.shares.plan import VISITS

    return _one_of(VISITS)


def _lifecycle() -> Rule:
    from fastsim.engine.monitored.plan import ContainerLifecycle

    return (lambda value: isinstance(value, ContainerLifecycle)), "a ContainerLifecycle"


def _or_none(rule: Rule) -> Rule:
    return (lambda value: value is None or rule[0](value)), f"{rule[1]}, or None"


def _tuple_of(kind: type | tuple[type, ...], what: str) -> Rule:
    return (lambda value: isinstance(value, tuple) and all(isinstance(item, kind) for item in value)), what


NORMALISED = "'none' for scores of preferences, which are 0 to 100"
NUMBER: Rule = (lambda value: isinstance(value, Real) and not isinstance(value, bool)), "a number"
WHOLE: Rule = (
    (lambda value: isinstance(value, Integral) and not isinstance(value, bool) and abs(int(value)) < 2**63),
    "a whole number below 2**63",
)
COUNT: Rule = (lambda value: WHOLE[0](value) and value >= 0), "a whole number, 0 or more"
TRUTH: Rule = (lambda value: isinstance(value, bool)), "True or False"
TEXT: Rule = (lambda value: isinstance(value, str)), "a text"
MAPPING: Rule = (lambda value: isinstance(value, Mapping)), "a dict"
NAMES: Rule = (lambda value: isinstance(value, frozenset | set)), "a frozenset of names"
FUNCTION: Rule = callable, "a function"
QUEUE: Rule = (
    (lambda value: isinstance(value, str) and (value in QUEUES or key_fault(queue_key(value), OF_JOBS) is None)),
    f"one of {', '.join(QUEUES)}, or a sort key",
)

RULES: dict[str, dict[str, Rule | Callable[[], Rule]]] = {
    "fastsim.engine.online.plan:OnlinePlan": {
        "terms": _tuple_of(ScoreTerm, "a tuple of ScoreTerms, (ScoreTerm(...),)"),
        "gpu_pick": _one_of(GPU_PICKS), "gpu_dim": _one_of(DIMS), "gpu_norm": _one_of(NORMS), "queue": QUEUE,
    },
    "fastsim.engine.online.plan:ScoreTerm": {
        "kernel": _one_of((*KERNELS, *PREFERENCE_KERNELS)), "weight": WHOLE, "normalise": _one_of(NORMALISERS),
        "dim": _one_of(DIMS), "norm": _one_of(NORMS), "scorer": _or_none(FUNCTION),
    },
    "fastsim.engine.shares.plan:SharePlan": {
        "allocator": _with("allocate"), "pairs": TRUTH, "visit": _visit, "strict": TRUTH,
        "max_num_gpu": _or_none(WHOLE), "prompt": TRUTH, "entities": NAMES,
        "estimates": _or_none(_with("__call__", "arrive", "observe", "leave")),
        "overcommitted": TRUTH, "policy": TEXT,
    },
    "fastsim.engine.orders.plan:OrderPlan": {
        "order": _tuple_of(str, "a tuple of terms, ('arrival',)"), "mechanism": TEXT, "place": TRUTH,
        "level_s": _tuple_of(Real, "a tuple of GPU seconds"), "starving_s": NUMBER, "narrow": TRUTH, "sticky": TRUTH,
        "blocking": TRUTH, "admit": NUMBER, "chooser": _or_none(_with_solver_s("parts")),
        "skewed": _tuple_of(str, "a tuple of names of workloads"),
    },
    "fastsim.engine.adaptive.plan:AdaptivePlan": {
        "decider": _with_solver_s("decide"), "tuned": TRUTH, "merged": TRUTH,
        "measured": _tuple_of(Integral, "a tuple of nodes and GPUs"), "fit_stop": NUMBER, "held": TRUTH,
        "ignores_requests": TRUTH, "generations": COUNT, "policy": TEXT,
    },
    "fastsim.engine.monitored.plan:MonitoredPlan": {
        "scheduler": FUNCTION,
        "lifecycle": _lifecycle,
        "devices": MAPPING, "refresh_s": _tuple_of(Real, "a tuple of seconds"),
    },
}  # fmt: skip
"""Allowed values of every field of the plans, by module and class, so that only the engine that plays is loaded."""


def returned_plan(policy: Any, method: str, plan: Any, kinds: tuple[type, ...]) -> Any:
    """The plan that a method of a policy returned; PolicyError if it is none of ``kinds`` or has a wrong value."""
    where = f"policy {label(policy)}"
    if not isinstance(plan, kinds):
        names = " or ".join(f"{'an' if kind.__name__[0] in 'AO' else 'a'} {kind.__name__}" for kind in kinds)
        raise PolicyError(f"{where}: {method}()", kind_of(plan), names)
    rules = _check(f"{where}: {type(plan).__name__}", plan)
    if isinstance(plan, OnlinePlan):
        for number, term in enumerate(plan.terms):
            _check(f"{where}: term {number}", term)
            if (term.kernel == "python") != (term.scorer is not None):
                expected = "a scorer for kernel 'python' and for no other"
                raise PolicyError(
                    f"{where}: term {number}", f"kernel {term.kernel!r}, {kind_of(term.scorer)}", expected
                )
            if term.kernel in PREFERENCE_KERNELS and term.normalise != "none":
                raise PolicyError(f"{where}: term {number}: normalise", repr(term.normalise), NORMALISED)
    made: Any = plan
    return dataclasses.replace(made, policy=label(policy)) if "policy" in rules else made


def rules_of(kind: type) -> dict[str, Rule]:
    """The rules of a kind of plan by field, or of the plan it is derived from."""
    names = (f"{base.__module__}:{base.__qualname__}" for base in kind.__mro__)
    rules = next(RULES[name] for name in names if name in RULES)
    return {name: rule() if callable(rule) else rule for name, rule in rules.items()}


def _check(where: str, made: Any) -> dict[str, Rule]:
    """The rules of this plan or term; PolicyError if a value breaks one."""
    rules = rules_of(type(made))
    for name, (allowed, expected) in rules.items():
        value = getattr(made, name)
        if not allowed(value):
            raise PolicyError(f"{where}: {name}", kind_of(value), expected)
    return rules
