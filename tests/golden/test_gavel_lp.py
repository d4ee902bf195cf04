"""The recorded calls of Gavel's linear programs: our optimum is as good, and nobody gets what there is not."""

from __future__ import annotations

import numpy as np
import pytest

from fastsim.round_plan import Allocation, Floats, RoundView
from tests.golden.gavel_lp import Call, calls, recordings, round_policy
from tests.rounds import excess, rates_under

FEASIBLE = 1e-6
"""The recordings' own bar."""
SOLUTIONS = ("centered", "vertex")


def answers(name: str, solution: str) -> list[tuple[Call, RoundView, Allocation]]:
    """Our allocations of all calls of a recording, each of them checked."""
    found = []
    for call in calls(name):
        view = call.view
        allocator = round_policy(call.policy, solution=solution).begin(view.setting).allocator
        allocation = allocator.allocate(view)
        assert allocation is not None and excess(view, allocation) <= FEASIBLE
        assert allocation.first[: len(view)].tolist() == view.job_id.tolist()
        found.append((call, view, allocation))
    return found


def proportional(view: RoundView) -> Floats:
    """Rate of each job that spends its time on the models by the number of their GPUs."""
    share: Floats = view.setting.gpus__g / view.setting.gpus__g.sum()
    rate: Floats = np.nan_to_num(view.rate__jg) @ share
    return rate


def normalised(view: RoundView, allocation: Allocation, policy: str) -> Floats:
    """Normalised rates; without heterogeneity a rate is the share of time itself."""
    if policy.endswith(("_perf", "_packed")):
        return rates_under(view, allocation) / proportional(view)
    return rates_under(view, allocation, np.ones_like(view.rate__jg))


def plain(family: str) -> list[str]:
    """Recordings of one family: base, perf and packed."""
    suffixes = {family, f"{family}_perf", f"{family}_packed"}
    return [name for name in recordings(family) if name.partition("__")[2] in suffixes]


@pytest.mark.parametrize("solution", SOLUTIONS)
@pytest.mark.parametrize("name", plain("max_min_fairness"))
def test_max_min_fairness(name: str, solution: str) -> None:
    for call, view, allocation in answers(name, solution):
        smallest = (normalised(view, allocation, call.policy) * view.num_gpu / view.weight).min()
        # The recordings' bar; the reference's own gap is 2e-9.
        assert smallest == pytest.approx(call.meta["objective_opt"], rel=1e-6)
