"""Plans of the placement policies: weights, normalisers and the GPU-pick rule of mixes."""

from __future__ import annotations

import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.engine.online.plan import GPU_PICKS, KERNELS, OnlinePlan
from fastsim.errors import PolicyError
from fastsim.policies import FGD, PWR, BestFit, DotProduct, PythonScorer, Simon
from fastsim.policies.online.weighted_sum import PICK_ORDER, WeightedSum
from fastsim.policies.registry import placing

NOTHING: Any = None  # the published policies look at neither the cluster nor the workload


def plan_of(policy: Any) -> OnlinePlan:
    """The plan of a policy or of its text form."""
    chosen = placing(policy) if isinstance(policy, str) else policy
    plan: OnlinePlan = chosen.plan(NOTHING, NOTHING)
    return plan


def points(nodes: Any, pod: Any) -> Any:
    """A scorer that prefers nodes with much memory."""
    return nodes.memory_free


@pytest.mark.parametrize(
    ("text", "normalise", "pick"),
    [
        ("random", "none", "random"),
        ("dot_product", "none", "best"),
        ("dot_product(dim=share)", "none", "dot_product"),
        ("gpu_clustering", "none", "best"),
        ("gpu_packing", "none", "best"),
        ("best_fit", "min_max_0", "best"),
        ("fgd", "none", "fgd"),
        ("pwr", "min_max_100", "pwr"),
        ("simon", "min_max_0", "best"),
    ],
)
def test_each_policy_has_its_normaliser_and_gpu_pick(text: str, normalise: str, pick: str) -> None:
    plan = plan_of(text)
    (term,) = plan.terms
    assert (term.weight, term.normalise, plan.gpu_pick, plan.queue) == (1, normalise, pick, "drop")
    assert term.kernel == text.partition("(")[0]


@pytest.mark.parametrize(
    ("text", "pick"),
    [
        ("500*pwr + 500*fgd", "fgd"),
        ("100*pwr + 900*fgd", "fgd"),
        ("900*pwr + 100*fgd", "pwr"),
        ("fgd + best_fit", "best"),
        ("fgd + random", "random"),
        ("pwr + dot_product", "best"),
        ("pwr + dot_product(dim=extend)", "dot_product"),
        ("2*simon + fgd", "best"),
        ("simon + fgd", "fgd"),
        ("pwr(gpu_pick=worst) + 9*fgd", "worst"),
        ("fgd(gpu_pick=random)", "random"),
    ],
)
def test_the_heaviest_part_picks_the_gpus(text: str, pick: str) -> None:
    assert plan_of(text).gpu_pick == pick


def test_dot_product_pick_uses_the_vectors_of_the_sum() -> None:
    plan = plan_of("dot_product(dim=extend, norm=pod) + 0.1*fgd")
    assert (plan.gpu_pick, plan.gpu_dim, plan.gpu_norm) == ("dot_product", "extend", "pod")
    plan = plan_of("fgd(gpu_pick=dot_product)")
    assert (plan.gpu_dim, plan.gpu_norm) == ("share", "max")


def test_operators_and_text_say_the_same() -> None:
    mixes = [
        0.9 * FGD() + 0.1 * PWR(),
        FGD() * 900 + 100 * PWR(),
        9 * FGD() + PWR(),
        (FGD() + PWR() * Fraction(1, 9)) * 5,
    ]
    assert {str(mix) for mix in mixes} == {"9*fgd + pwr"}
    assert {plan_of(mix) for mix in mixes} == {plan_of("0.9*fgd + 0.1*pwr")}
    assert [term.weight for term in plan_of(mixes[0]).terms] == [9, 1]


@given(st.lists(st.decimals(min_value=0, max_value=1000, places=3), min_size=2, max_size=2), st.integers(1, 1000))
def test_weights_are_ratios_and_nothing_else(weights: list[Decimal], factor: int) -> None:
    if not any(weights):
        with pytest.raises(PolicyError):
            (weights[0] * FGD() + weights[1] * PWR()).check()
        return
    one = weights[0] * FGD() + weights[1] * PWR()
    assert (one * factor).integer_parts() == one.integer_parts()
    kept = {str(summand): weight for weight, summand in one}
    assert kept.get("fgd", 0) * weights[1] == kept.get("pwr", 0) * weights[0]


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), -0.5, "heavy", None])
def test_bad_weights_are_refused(weight: Any) -> None:
    with pytest.raises(PolicyError, match="0 or more"):
        _ = weight * FGD()


def test_only_policies_can_be_added() -> None:
    anything: Any = 1
    with pytest.raises(TypeError):
        _ = FGD() + anything


def test_parameters_are_checked_when_given() -> None:
    with pytest.raises(PolicyError, match="one of node, pod, max"):
        DotProduct(norm="min")
    with pytest.raises(PolicyError, match="gpu_pick"):
        FGD(gpu_pick="nearest")


def test_a_python_scorer_mixes_like_the_others() -> None:
    plan = plan_of(0.8 * FGD() + 0.2 * PythonScorer(points, normalise="min_max_0"))
    assert [(term.kernel, term.weight, term.normalise) for term in plan.terms] == [
        ("fgd", 4, "none"),
        ("python", 1, "min_max_0"),
    ]
    assert plan.terms[1].scorer is points and plan.gpu_pick == "fgd"
    assert str(PythonScorer(points)) == f"python(scorer='{__name__}:points')"
    assert plan_of("python(scorer='operator:sub')").gpu_pick == "best"
    with pytest.raises(PolicyError, match="normalise"):
        PythonScorer(points, normalise="softmax")


def test_policies_are_values() -> None:
    assert DotProduct() == DotProduct(dim="merge") != DotProduct(dim="share")
    assert len({FGD(), FGD(), PWR()}) == 2
    mix = 0.5 * BestFit() + 0.5 * Simon()
    assert pickle.loads(pickle.dumps(mix)) == mix
    assert isinstance(mix, WeightedSum)


def test_every_kernel_has_a_rank_and_every_pick_exists() -> None:
    assert sorted(PICK_ORDER) == sorted(KERNELS)
    picks = {plan_of(name).gpu_pick for name in PICK_ORDER if name != "python"}
    assert picks <= set(GPU_PICKS)
