"""Whether a run can begin: mistakes between policy, workload and cluster, of which no field alone is wrong.

The objects of a run are made, and its jobs looked at, by the functions that the run itself calls; nothing is played.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fastsim.engine.orders.plan import OrderPlan
from fastsim.policies.registry import engine_of

if TYPE_CHECKING:
    from fastsim.scenario.scenario import Scenario


def refuse_mismatch(scenario: Scenario) -> None:
    """The error with which this run would end for its inputs; none if it can begin and all jobs that it reads run."""
    from fastsim.simulation.simulate import checked_policy

    policy = checked_policy(scenario)
    CHECKS[engine_of(policy)](scenario, policy)


def _pods(scenario: Scenario, policy: Any) -> None:
    from fastsim.simulation.engines.pods import prepared
    from fastsim.simulation.work_estimate import refuse_large

    inputs = prepared(scenario)
    refuse_large(inputs.cluster, inputs.workload, inputs.options, scenario.out is None)


def _rounds(scenario: Scenario, policy: Any) -> None:
    from fastsim.engine.orders import run as orders
    from fastsim.engine.shares import run as shares
    from fastsim.simulation.engines.rounds import prepared_rounds

    inputs = prepared_rounds(scenario, policy)
    if isinstance(inputs.plan, OrderPlan):
        assert inputs.needs is not None
        jobs = orders.usable_jobs(inputs.setting, inputs.plan, inputs.needs, inputs.batches)
    else:
        jobs = shares.usable_jobs(inputs.setting, inputs.batches)
    window, until_s, read = inputs.options.window, inputs.options.until_s, 0
    for batch in jobs:
        read += len(batch.kind)
        late = len(batch.kind) > 0 and batch.submit_s[-1] > until_s
        if late or (window is not None and (inputs.options.endless or read > window[1])):
            return  # the run may end before it reads more


def _adaptive(scenario: Scenario, policy: Any) -> None:
    from fastsim.engine.adaptive.run import check_jobs
    from fastsim.simulation.engines.adaptive import prepared_adaptive

    inputs = prepared_adaptive(scenario, policy)
    check_jobs(inputs.jobs, inputs.setting)


def _monitored(scenario: Scenario, policy: Any) -> None:
    from fastsim.simulation.engines.monitored import pod_arrivals, prepared_monitored

    inputs = prepared_monitored(scenario, policy)
    for pod in pod_arrivals(inputs.workload, inputs.unused):
        if scenario.until_s is not None and pod.submit_s > scenario.until_s:
            return


CHECKS: Mapping[str, Callable[[Scenario, Any], None]] = {
    "pods": _pods, "shares": _rounds, "orders": _rounds, "adaptive": _adaptive, "monitored": _monitored,
}  # fmt: skip
"""The check of each engine."""
