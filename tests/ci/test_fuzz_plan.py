"""The order of fuzz cases: every seed once, turns of equal time, no target with more than its share."""

from __future__ import annotations

import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fuzz import plan as plans
from tests.fuzz.plan import Lot, Plan


def played(plan: Plan, case_s: dict[str, float]) -> list[Lot]:
    """All lots of a plan whose cases take so long."""
    lots = []
    while (lot := plan.next()) is not None:
        plan.took(lot, lot.cases * case_s[lot.target])
        lots.append(lot)
    return lots


def counts(lots: list[Lot]) -> Counter[str]:
    """Cases of each target."""
    found: Counter[str] = Counter()
    for lot in lots:
        found[lot.target] += lot.cases
    return found


def test_seeds_of_a_target_are_a_range() -> None:
    lots = played(Plan(["a", "b"], 7, math.inf, total=1000), {"a": 0.01, "b": 0.1})
    for name, count in counts(lots).items():
        seeds = [seed for lot in lots if lot.target == name for seed in range(lot.first, lot.first + lot.cases)]
        assert seeds == list(range(7, 7 + count))
    assert counts(lots).total() == 1000


def test_workers_never_have_the_same_seed() -> None:
    plan = Plan(["a", "b", "c"], 0, math.inf, each=5000)
    with ThreadPoolExecutor(4) as threads:
        parts = threads.map(lambda _: played(plan, {"a": 1e-3, "b": 1e-4, "c": 1e-2}), range(4))
    seeds = Counter((lot.target, seed) for part in parts for lot in part for seed in range(lot.first, sum(lot[1:])))
    assert set(seeds.values()) == {1} and len(seeds) == 15_000


def test_a_target_rests_after_its_share() -> None:
    names = [f"t{number}" for number in range(50)]
    case_s = {name: 1e-5 if name == "t0" else 0.01 for name in names}
    found = counts(played(Plan(names, 0, math.inf, total=100_000), case_s))
    assert found["t0"] == 4000 and found.total() == 100_000
    others = [found[name] for name in names[1:]]
    assert max(others) <= 1.3 * min(others)


def test_slow_targets_have_as_much_time_as_fast_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "LARGEST_SHARE", 1.0)
    plan = Plan(["slow", "fast"], 0, math.inf, total=200_000)
    played(plan, {"slow": 0.05, "fast": 0.001})
    assert plan.used_s["slow"] == pytest.approx(plan.used_s["fast"], abs=2 * plans.TURN_S)


def test_two_workers_begin_with_two_targets() -> None:
    plan = Plan(["a", "b"], 0, math.inf, each=30)
    first, second, third = plan.next(), plan.next(), plan.next()
    assert [first, second, third] == [Lot("a", 0, 20), Lot("b", 0, 20), Lot("a", 20, 10)]


def test_no_lot_begins_after_the_end() -> None:
    assert Plan(["a"], 0, -math.inf).next() is None
    plan = Plan(["a"], 0, math.inf)
    assert plan.next() is not None
    plan.stop()
    assert plan.next() is None


def test_the_slowest_target_has_the_share_that_is_kept_for_it() -> None:
    names = [f"t{number}" for number in range(40)]
    case_s = dict.fromkeys(names, 1e-4) | {"t7": 100.0}
    found = counts(played(Plan(names, 0, math.inf, total=40_000), case_s))
    assert found["t7"] >= 100 and found.total() == 40_000
