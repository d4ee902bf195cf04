"""Runs in which sharing is not known but believed: a plan for pairs is told of an estimator."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from fastsim.engine.shares.plan import SharePlan
from fastsim.errors import ScenarioError
from fastsim.performance.gavel_rates import JOB_NAMES
from fastsim.policies.shares.pair_rate_estimator import Estimator
from fastsim.scenario.compat import switches_on

if TYPE_CHECKING:
    from fastsim.engine.orders.plan import OrderPlan
    from fastsim.engine.rounds.options import Setting
    from fastsim.scenario.scenario import Scenario


def with_estimates(plan: SharePlan | OrderPlan, setting: Setting, scenario: Scenario) -> SharePlan | OrderPlan:
    """The plan with the estimates that the scenario asks for; ScenarioError if no jobs share GPUs in it."""
    asked = {"profiling": scenario.profiling != 1, "references": scenario.references is not None}
    wrong = next((name for name, given in asked.items() if given), None)
    if wrong is None:
        return plan
    if not plan.pairs:
        expected = f"nothing: policy {scenario.policy} lets no jobs share GPUs"
        raise ScenarioError(wrong, repr(getattr(scenario, wrong)), expected)
    single = {name for name, num_gpu in setting.oracle.kinds if num_gpu == 1}
    references = len(single) if scenario.references is None else scenario.references
    if references > len(single):
        expected = f"at most {len(single)}, the workloads with rates on 1 GPU"
        raise ScenarioError("references", references, expected)
    # Draws count Gavel's job types in their own order, so that a seed means there and here the same.
    workloads = tuple(JOB_NAMES) if single == set(JOB_NAMES) else ()
    column_bug = "estimator_column_bug" in switches_on(scenario.compat)
    estimator = Estimator(scenario.profiling, references, workloads, estimator_column_bug=column_bug)
    assert isinstance(plan, SharePlan)
    return dataclasses.replace(plan, beliefs=estimator.begin(setting))
