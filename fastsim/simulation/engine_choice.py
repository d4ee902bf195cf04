"""Which engine a policy plugs into, and which options of a scenario are for the other one."""

from __future__ import annotations

import dataclasses
from typing import Any

from fastsim.errors import ScenarioError
from fastsim.scenario.scenario import Scenario

ONLINE_ONLY = (
    "queue", "gpu_pick", "deschedule", "inflation", "retarget", "preempt", "on_node_loss", "checkpoint_every_s",
    "quotas", "weights", "failures", "maintenance",
)  # fmt: skip
"""Fields of a scenario that only mean something for pods placed one by one."""
ROUNDS_ONLY = (
    "round_s", "realloc_s", "begin_s", "window", "rates", "global_queue", "profiling", "references", "ideal", "log",
)  # fmt: skip
"""Fields of a scenario that only mean something for jobs in rounds."""


def is_round_policy(policy: Any) -> bool:
    """Whether a policy shares out the time of jobs instead of placing pods."""
    return callable(getattr(policy, "begin", None))


def is_ordered_policy(policy: Any) -> bool:
    """Whether a policy says that its jobs run in an order, without shares."""
    return bool(getattr(policy, "ordered", False))


def refuse_options_of_shares(scenario: Scenario) -> None:
    """Refuse options that mean something only where time is shared out."""
    defaults = {item.name: item.default for item in dataclasses.fields(scenario)}
    for name in ("realloc_s", "global_queue"):
        if getattr(scenario, name) != defaults[name]:
            expected = f"nothing: policy {scenario.policy} gives all GPUs out anew in every round"
            raise ScenarioError(name, repr(getattr(scenario, name)), expected)
    for name in ("ideal", "log"):
        if getattr(scenario, name):
            expected = f"nothing: policy {scenario.policy} has no shares"
            raise ScenarioError(name, repr(getattr(scenario, name)), expected)


def refuse_begin(scenario: Scenario) -> None:
    """Refuse a first moment where rounds begin with the first job."""
    if scenario.begin_s is not None:
        raise ScenarioError("begin_s", scenario.begin_s, f"nothing: policy {scenario.policy} shares time out")


def is_monitored_policy(policy: Any) -> bool:
    """Whether a policy is a scheduler that looks at what GPUs report while pods share them."""
    return callable(getattr(policy, "watch", None))


def refuse_foreign_fields(scenario: Scenario, policy: Any) -> None:
    """Refuse options that the engine of this policy would have to ignore."""
    engine = "pods"
    names: tuple[str, ...] = ROUNDS_ONLY
    if is_round_policy(policy):
        engine, names = "rounds", ONLINE_ONLY
    elif is_monitored_policy(policy):
        engine, names = "pods that share monitored GPUs", (*ONLINE_ONLY, *ROUNDS_ONLY, "sample_s")
    defaults = {item.name: item.default for item in dataclasses.fields(scenario)}
    for name in names:
        if getattr(scenario, name) != defaults[name]:
            raise ScenarioError(
                name, repr(getattr(scenario, name)), f"nothing: policy {scenario.policy} is for {engine}"
            )
