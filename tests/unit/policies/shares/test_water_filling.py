"""Water filling: small cases by hand, entities, and levels found job by job."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastsim.engine.shares.plan import Allocation, RoundView
from fastsim.errors import PolicyError
from fastsim.policies import registry
from fastsim.policies.programs.share_program import proportional_rate
from fastsim.policies.programs.water_filling import Claims, WaterFilling
from fastsim.policies.shares.water_filling import WaterFillingFairness, entities_of
from tests.reference.exact_levels import exact_levels
from tests.reference.rounds.water_levels import filled
from tests.rounds import excess, oracle, rates_under, setting, view, views

SOLUTIONS = ("centered", "vertex")


def allocated(seen: RoundView, **parameters: Any) -> Allocation:
    """What a new policy says of these jobs."""
    found = WaterFillingFairness(**parameters).begin(seen.setting).allocator.allocate(seen)
    assert found is not None
    return found


@pytest.mark.parametrize("solution", SOLUTIONS)
def test_what_the_slowest_cannot_use_goes_to_the_next(solution: str) -> None:
    # Weights 1, 1 and 4 on two GPUs: the heavy job is full at 1, the others rise from 1/4 to 1/2.
    seen = view(setting(oracle([[1.0]]), [2]), [0, 0, 0], weight=[1.0, 1.0, 4.0])
    assert allocated(seen, solution=solution).share__rg.ravel() == pytest.approx([0.5, 0.5, 1], abs=1e-6)


def test_no_job_rises_twice_if_all_that_rose_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    programs: list[Any] = []
    raised = WaterFilling._raised

    def counted(self: WaterFilling, *given: Any) -> Any:
        programs.append(given)
        return raised(self, *given)

    monkeypatch.setattr(WaterFilling, "_raised", counted)
    seen = view(setting(oracle([[1.0]]), [2]), [0, 0, 0], weight=[1.0, 1.0, 4.0])
    for compat in (False, True):
        share = allocated(seen, hold="all", program_compat=compat).share__rg.ravel()
        # The level is 1/4, at which the heavy job is full; the light ones have at least that, and no more level.
        assert share[2] == pytest.approx(1, abs=1e-6) and (share >= 0.25 - 1e-6).all() and share.sum() < 2 + 1e-6
    assert len(programs) == 2
    # Jobs of an entity that serves in order wait for their turn: one of each entity in a program.
    ordered = view(setting(oracle([[1.0]]), [4]), [0] * 5, tenant=tuple("aaabb"))
    allocated(ordered, entities="a:1:fifo, b:1:fifo", hold="all")
    assert len(programs) == 2 + 3
    with pytest.raises(PolicyError, match="hold: found 'none', expected one of stuck, all"):
        WaterFillingFairness(hold="none")


@pytest.mark.parametrize("solution", SOLUTIONS)
def test_entities_share_by_weight_and_their_jobs_within(solution: str) -> None:
    # One GPU: red has 1/4 of it, blue 3/4; blue's jobs divide theirs 1 to 2.
    names = ("red", "blue", "blue")
    seen = view(setting(oracle([[1.0]]), [1]), [0, 0, 0], weight=[5.0, 1.0, 2.0], tenant=names)
    found = allocated(seen, entities="red:1, blue:3", solution=solution)
    assert found.share__rg.ravel() == pytest.approx([0.25, 0.25, 0.5], abs=1e-6)


@pytest.mark.parametrize("solution", SOLUTIONS)
def test_an_entity_may_serve_its_jobs_in_order(solution: str) -> None:
    # Two GPUs: blue's first job rises three times as fast, is full at 1, then its second rises until the GPUs are gone
    # at 1/3 + x and 3x with 4x = 2/3.
    names = ("blue", "blue", "blue", "red")
    seen = view(setting(oracle([[1.0], [1.0]]), [2]), [1, 0, 1, 0], tenant=names)
    found = allocated(seen, entities="red:1, blue:3:fifo", solution=solution)
    assert found.share__rg.ravel() == pytest.approx([1, 0.5, 0, 0.5], abs=1e-6)


def test_claims_of_classes_follow_the_weights_of_their_entities() -> None:
    # Entity 0 of weight 2 is fair: two jobs of weight 1 and one of weight 3, so 2 / (2 * 1 + 3) a unit of weight.
    # Entity 1 of weight 1 serves in order: its second class, of weight 0.5, stands in the lower row.
    claims = Claims(
        np.array([1.0, 3.0, 1.0, 0.5]), np.array([0, 0, 1, 1]), np.array([False, False, True, True]),
        np.array([2.0, 1.0]), np.array([2, 1, 1, 1]), np.array([0, 1, 4, 3]),
    )  # fmt: skip
    assert claims.rise(np.zeros(4, np.bool_)).tolist() == pytest.approx([0.4, 0.4, 0.0, 2.0], rel=1e-15)
    # A held class leaves the weight of its entity to the others, or the turn to the next.
    assert claims.rise(np.array([True, False, False, True])).tolist() == pytest.approx(
        [0.0, 2 / 3, 1.0, 0.0], rel=1e-15
    )
    without = replace(claims, weight__e=np.zeros(1))
    assert without.rise(np.array([True, False, False, False])).tolist() == [0.0, 1.0, 1.0, 1.0]


def test_tenants_count_for_nothing_unless_asked() -> None:
    seen = view(setting(oracle([[1.0]]), [1]), [0, 0, 0], tenant=("red", "blue", "blue"))
    assert allocated(seen).share__rg.ravel() == pytest.approx([1 / 3] * 3, abs=1e-6)
    # An entity that is not listed weighs 1.
    assert allocated(seen, entities="green:7").share__rg.ravel() == pytest.approx([0.5, 0.25, 0.25], abs=1e-6)


def test_a_job_that_runs_nowhere_holds_nobody_down() -> None:
    seen = view(setting(oracle([[0.0], [2.0]]), [1]), [0, 1])
    assert allocated(seen).share__rg.ravel() == pytest.approx([0, 1], abs=1e-6)


def test_entities_as_text() -> None:
    assert entities_of(" red:1, blue:0.5:fifo,") == {"red": (1.0, "fairness"), "blue": (0.5, "fifo")}
    policy = registry.parse("max_min_fairness_water_filling(entities='red:1')")
    assert str(policy) == "max_min_fairness_water_filling(entities='red:1')"
    for text in (
        "red",
        "red:0",
        "red:-1",
        "red:inf",
        "red:nan",
        "red:x",
        ":1",
        "red:1:lifo",
        "red:1,red:2",
        "red:1:fifo:2",
    ):
        with pytest.raises(PolicyError, match=r"parameter entities: .*expected name:weight"):
            WaterFillingFairness(entities=text)


@settings(max_examples=60)
@given(
    views(sizes=(1, 2), most=7), st.sampled_from(SOLUTIONS), st.sampled_from(("", "red:2:fifo,blue:3", "red:2,grey:7"))
)
def test_every_job_is_as_fast_as_filling_it_slowly_makes_it(seen: RoundView, solution: str, entities: str) -> None:
    found = WaterFilling("perf", solution, entities_of(entities)).allocate(seen)
    assert found is not None and excess(seen, found) < 1e-6
    relative = seen.rate__jg / proportional_rate(seen.rate__jg, seen.setting.gpus__g)[:, None]
    gpus = (seen.num_gpu.astype(float), seen.setting.gpus__g.astype(float))
    exact = filled(relative, *gpus, seen.weight, seen.tenant, entities_of(entities))
    # Each of up to seven levels may be 1e-6 off in the slow solution; a job that waits for GPUs has what is left over.
    assert rates_under(seen, found, relative) == pytest.approx(exact, rel=2e-5, abs=7e-6)


@settings(max_examples=60)
@given(views(sizes=(1, 2)), st.sampled_from(("base", "perf", "packed")), st.sampled_from(("", "red:2:fifo,blue:3")))
def test_jobs_alike_may_be_one_column(seen: RoundView, mode: str, entities: str) -> None:
    found = WaterFilling(mode, "vertex", entities_of(entities)).allocate(seen)
    # Estimates that are the truth keep all jobs apart.
    truth = replace(
        seen, partner_rates=lambda view, first, second: replace(view, partner_rates=None).pair_rates(first, second)
    )
    apart = WaterFilling(mode, "vertex", entities_of(entities)).allocate(truth)
    assert found is not None and apart is not None and max(excess(seen, found), excess(seen, apart)) < 1e-6
    rate = np.ones_like(seen.rate__jg) if mode == "base" else None
    # The vector is unique; both follow the same exact steps.
    assert rates_under(seen, found, rate) == pytest.approx(rates_under(seen, apart, rate), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("seed", range(36))
def test_entities_get_what_fractions_without_rounding_say(seed: int) -> None:
    draw = Random(seed)
    jobs, gpus, inner = draw.randint(3, 5), [draw.randint(1, 2), draw.randint(1, 2)], draw.choice(["fairness", "fifo"])
    rates = [[draw.choice([1, 2]), draw.choice([2, 3, 5])] for _ in range(jobs)]
    weights, tenant = [1 + job % 2 for job in range(jobs)], tuple("abc"[job * 3 // jobs] for job in range(jobs))
    weight_of = dict(zip("abc", (1, 2, 3), strict=True))
    seen = view(setting(oracle(rates), gpus), range(jobs), weight=weights, tenant=tenant)
    mode = draw.choice(["base", "perf"])
    text = ",".join(f"{name}:{weight}:{inner}" for name, weight in weight_of.items())
    known = [[Fraction(rate) for rate in each] if mode == "perf" else [Fraction(1)] * 2 for each in rates]
    fair = [sum(rate * gpus[g] for g, rate in enumerate(each)) * Fraction(1, sum(gpus)) for each in known]
    relative = [[rate / part for rate in each] for each, part in zip(known, fair, strict=True)]
    exact = exact_levels(
        relative, gpus, [Fraction(weight) for weight in weights], tenant,
        {name: (Fraction(weight), inner) for name, weight in weight_of.items()},
    )  # fmt: skip
    share__jg = allocated(seen, mode=mode, entities=text).share__rg
    reached = (share__jg * np.array(relative, float)).sum(axis=1)
    # The solver's own tolerance, once a level.
    assert reached == pytest.approx([float(level) for level in exact], rel=1e-6, abs=1e-6)
