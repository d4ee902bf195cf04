"""Checks of scenario fields that need policies, clusters or workloads.

Loading this module registers the checks of fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastsim.cluster.cluster import Cluster
from fastsim.engine.online.plan import GPU_PICKS, QUEUES
from fastsim.errors import GUESS, FastsimError, PolicyError, ScenarioError, kind_of, plain_name, suggestion
from fastsim.policies import registry
from fastsim.scenario import run_inputs
from fastsim.scenario import scenario as spec
from fastsim.scenario.compat import switches_on
from fastsim.scenario.outages import failures_from, maintenance_from
from fastsim.scenario.round_texts import check_rates, window_from
from fastsim.scenario.run_rules import NODE_LOSS, PREEMPT, quotas_from, weights_from
from fastsim.scenario.sort_keys import OF_JOBS, key_fault, queue_key
from fastsim.workload import texts


def _check_policy(value: Any) -> Any:
    """The policy; PolicyError for what is none."""
    if isinstance(value, str):
        return registry.parse(value)
    if isinstance(value, type):
        expected = "a policy, which is an object of such a class"
        raise PolicyError("policy", kind_of(value), expected, f"write {value.__name__}()")
    if not registry.engine_of(value):
        expected = "a text or an object with a method plan(cluster, workload), begin(setting) or watch()"
        raise PolicyError("policy", kind_of(value), expected, _policy_written(value))
    registry.check_parameters(value)
    if hasattr(value, "check"):
        value.check()
    return value


def _policy_written(value: Any) -> str:
    """How to make a policy from an object that is none."""
    if callable(value):
        name = getattr(value, "__name__", "scorer")
        return f"write fs.policies.PythonScorer({name}) for a function that scores nodes"
    if isinstance(value, list | tuple):
        return "one policy a run: fs.simulate_many takes a list of scenarios, Sweep a list of policies"
    return ""


def _one_of(field: str, known: tuple[str, ...]) -> Callable[[Any], None]:
    def check(value: Any) -> None:
        if value is not None and not (isinstance(value, str) and value in known):
            found = repr(value) if isinstance(value, str) else kind_of(value)
            raise ScenarioError(field, found, f"one of {', '.join(known)}", _meant(field, value, known))

    return check


def _check_queue(value: Any) -> None:
    """ScenarioError for what is neither the name of a queue rule nor a sort key of what pods have."""
    key = queue_key(value) if isinstance(value, str) else ()
    if not key:
        _one_of("queue", QUEUES)(value)
    elif fault := key_fault(key, OF_JOBS):
        raise ScenarioError("queue", *fault)


def _meant(field: str, value: Any, known: tuple[str, ...]) -> str:
    """A guess at the word that was meant; a queue may have the name of a policy."""
    if not isinstance(value, str):
        return ""
    plain = plain_name(value)
    if field == "queue" and plain not in map(plain_name, known):
        policy = {plain_name(name): name for name in registry.names()}.get(plain)
        if policy:
            return f"{GUESS} the policy, policy={policy!r}?"
    return suggestion(value, known)


def _check_deschedule(value: tuple[Any, ...]) -> None:
    for step in value:  # numpy is loaded for a step only
        from fastsim.policies.deschedule import deschedule_from

        deschedule_from(step)


def _check_telemetry(value: Any) -> None:
    if value is not None:
        from fastsim.telemetry.telemetry import telemetry_from

        telemetry_from(value)


def _check_carbon(value: Any) -> None:
    if value is not None:
        from fastsim.scenario.carbon import carbon_from

        carbon_from(value)


def _check_workload(value: Any, cluster: Any = None) -> None:
    beside = None
    if cluster is not None:
        try:
            beside = Cluster.from_text(cluster)
        except FastsimError:  # the mistake of the other field
            return
    run_inputs.workload_from(value, beside)


spec.CHECKS.update(
    cluster=Cluster.from_text,
    workload=_check_workload,
    policy=_check_policy,
    queue=_check_queue,
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
    carbon=_check_carbon,
    telemetry=_check_telemetry,
)


spec.RELATIVE["workload"] = (texts.is_relative, "cluster")
