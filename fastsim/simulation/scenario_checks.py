"""What the fields of a scenario mean is known up here: whether they mean anything is checked before a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastsim.engine.online.plan import GPU_PICKS, QUEUES
from fastsim.errors import PolicyError, ScenarioError
from fastsim.policies import registry
from fastsim.scenario import scenario as spec
from fastsim.scenario.compat import switches_on
from fastsim.scenario.outages import failures_from, maintenance_from
from fastsim.scenario.round_texts import check_rates, window_from
from fastsim.scenario.run_rules import NODE_LOSS, PREEMPT, quotas_from, weights_from
from fastsim.simulation.engine_choice import is_monitored_policy, is_round_policy
from fastsim.workload import texts


def _check_policy(value: Any) -> None:
    if isinstance(value, str):
        registry.parse(value)
    elif not (callable(getattr(value, "plan", None)) or is_round_policy(value) or is_monitored_policy(value)):
        expected = "a text or an object with a method plan(cluster, workload), begin(setting) or watch()"
        raise PolicyError("policy", type(value).__name__, expected)
    elif hasattr(value, "check"):
        value.check()


def _one_of(field: str, known: tuple[str, ...]) -> Callable[[Any], None]:
    def check(value: Any) -> None:
        if value is not None and value not in known:
            raise ScenarioError(field, repr(value), f"one of {', '.join(known)}")

    return check


def _check_deschedule(value: tuple[Any, ...]) -> None:
    for step in value:  # numpy is loaded for a step only
        from fastsim.policies.deschedule import deschedule_from

        deschedule_from(step)


def _check_telemetry(value: Any) -> None:
    if value is not None:
        from fastsim.telemetry.telemetry import telemetry_from

        telemetry_from(value)


spec.CHECKS.update(
    cluster=texts.cluster_from,
    workload=texts.workload_from,
    policy=_check_policy,
    queue=_one_of("queue", QUEUES),
    preempt=_one_of("preempt", PREEMPT),
    on_node_loss=_one_of("on_node_loss", NODE_LOSS),
    quotas=quotas_from,
    weights=weights_from,
    failures=failures_from,
    maintenance=maintenance_from,
    gpu_pick=_one_of("gpu_pick", GPU_PICKS),
    deschedule=_check_deschedule,
    compat=switches_on,
    window=window_from,
    rates=check_rates,
    telemetry=_check_telemetry,
)
