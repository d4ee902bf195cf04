"""The strategy-proof policy: discounts by hand, optimality checked by a linear program, nothing gained by lying."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog

from fastsim.engine.shares.plan import Floats, RoundView
from fastsim.performance.oracle import Oracle
from fastsim.policies.programs.geometric_mean import Discounted, rows_of
from fastsim.policies.shares.strategy_proof import StrategyProof
from tests.rounds import excess, oracle, rates_under, setting, view, views


def shares(seen: RoundView, mode: str = "perf") -> Floats:
    """Shares of each job under a new policy."""
    found = StrategyProof(mode=mode).begin(seen.setting).allocator.allocate(seen)
    assert found is not None
    return found.share__rg


def test_two_equal_jobs_pay_half() -> None:
    # Each has half of the GPU; alone it would have all of it, so each costs the other half of its rate.
    seen = view(setting(oracle([[2.0]]), [1]), [0, 0])
    assert shares(seen).ravel() == pytest.approx([0.25, 0.25], rel=1e-9)


def test_who_is_in_nobodys_way_pays_nothing() -> None:
    seen = view(setting(oracle([[4.0, 1.0], [1.0, 4.0]]), [1, 1]), [0, 1])
    assert shares(seen) == pytest.approx(np.eye(2), abs=1e-6)


def test_a_wide_job_costs_more() -> None:
    # x + 2y <= 1 with the largest product: x = 1/2, y = 1/4. Without the other each would run all or half of the time.
    seen = view(setting(oracle([[1.0], [1.0]], num_gpu=[1, 2]), [1]), [0, 1])
    assert shares(seen).ravel() == pytest.approx([0.5 * 0.25 / 0.5, 0.25 * 0.5 / 1.0], rel=1e-8)


def test_a_job_that_runs_nowhere_is_left_out() -> None:
    seen = view(setting(oracle([[0.0], [2.0]]), [1]), [0, 1])
    assert shares(seen).ravel() == pytest.approx([0, 1], abs=1e-9)


def test_a_model_without_gpus_is_closed() -> None:
    seen = view(setting(oracle([[5.0, 1.0]]), [0, 1]), [0])
    assert shares(seen).ravel() == pytest.approx([0, 1], abs=1e-9)


def test_nothing_is_remembered_and_no_jobs_are_no_answer() -> None:
    used = Discounted("base")
    used.restore(used.state())
    assert used.allocate(view(setting(oracle([[1.0]]), [1]), [])) is None
    assert [StrategyProof(mode=mode).begin(setting(oracle([[1.0]]), [1])).visit for mode in ("base", "perf")] == [
        "shuffled", "fastest",
    ]  # fmt: skip


def test_rows_of_a_view() -> None:
    seen = view(setting(oracle([[1.0]]), [1]), [0, 0, 0], weight=[1.0, 2.0, 3.0], tenant=("a", "b", "c"))
    some = rows_of(seen, np.array([0, 2]))
    assert (some.job_id.tolist(), some.weight.tolist(), some.tenant) == ([0, 2], [1, 3], ("a", "c"))


@settings(max_examples=60)
@given(views(sizes=(1, 2)))
def test_no_direction_raises_the_product(seen: RoundView) -> None:
    assert_no_direction_raises_the_product(seen)


def test_shares_that_may_be_exchanged_do_not_end_the_steps_early() -> None:
    # Two classes may exchange shares of two models with hardly a change of rates.
    rates = [
        [2.02307587, 2.81638192, 0.8766176],
        [2.28723767, 0.57504961, 4.9979912],
        [0.82493683, 1.15746696, 2.52758569],
    ]
    seen = view(setting(oracle(rates, num_gpu=[1, 2, 2]), [5, 3, 4]), [2, 0, 1, 1, 2])
    assert_no_direction_raises_the_product(seen)


def assert_no_direction_raises_the_product(seen: RoundView) -> None:
    found, rate__j = Discounted("perf").proportional_fairness(seen)
    relative = seen.rate__jg / seen.rate__jg.max(axis=1, keepdims=True)
    assert (relative * found).sum(axis=1) == pytest.approx(rate__j, rel=1e-12)
    count, models = relative.shape
    rows = np.concatenate(
        [np.kron(np.eye(count), np.ones(models)), np.kron(seen.num_gpu.astype(float), np.eye(models))]
    )
    limits = np.concatenate([np.ones(count), seen.setting.gpus__g])
    assert (rows @ found.ravel() - limits).max() < 1e-9
    # To first order a change of rates adds the sum of their relative changes; at the optimum that is 0 at most.
    most = -linprog(-(relative / rate__j[:, None]).ravel(), rows, limits, bounds=(0, None)).fun
    assert most == pytest.approx(count, rel=1e-7)


@settings(max_examples=30)
@given(views(most=5))
def test_nothing_is_gained_by_telling_other_rates(seen: RoundView) -> None:
    allocation = Discounted("perf").allocate(seen)
    assert allocation is not None and excess(seen, allocation) < 1e-9
    honest = rates_under(seen, allocation)[0]
    oracle = seen.setting.oracle
    lie = Oracle(
        (*oracle.kinds, ("lie", int(seen.num_gpu[0]))), oracle.gpu_models,
        np.concatenate([oracle.alone__kg, oracle.alone__kg[seen.kind[:1], ::-1]]),
        np.zeros((len(oracle.kinds) + 1, len(oracle.kinds) + 1, len(oracle.gpu_models))),
    )  # fmt: skip
    liar = view(
        setting(lie, seen.setting.gpus__g.tolist()), [len(oracle.kinds), *seen.kind[1:].tolist()],
    )  # fmt: skip
    found = Discounted("perf").allocate(liar)
    assert found is not None
    assert float(seen.rate__jg[0] @ found.share__rg[0]) <= honest * (1 + 1e-6)
