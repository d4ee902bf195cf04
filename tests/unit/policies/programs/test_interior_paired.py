"""Newton's equations of a program with pairs, and the program of alike jobs against the one written out."""

from __future__ import annotations

import numpy as np
import pytest

from fastsim.engine.shares.plan import RoundView
from fastsim.policies.programs.interior_paired import PairedEquations
from fastsim.policies.programs.job_classes import Groups, grouped
from fastsim.policies.solvers.interior_point import optimum
from tests.rounds import oracle, setting, view

KINDS = [0, 1, 0, 2, 0, 1]


def seen() -> RoundView:
    random = np.random.default_rng(3)
    alone = random.uniform(1, 4, (3, 2))
    shared = random.uniform(0.4, 0.9, (3, 3, 2)) * alone[:, None, :]
    shared[1, 1] = 0.0
    shared[0, 2] = shared[2, 0] = 0.0
    return view(setting(oracle(alone.tolist(), shared), [2, 1]), KINDS)


def program(groups: Groups, of: RoundView) -> PairedEquations:
    count = groups.classes
    rows = groups.whole()
    return PairedEquations(
        rows, np.ones(count), of.setting.gpus__g.astype(float), np.arange(count), np.ones(count), np.ones(count),
        np.zeros(count), np.zeros(rows.rate__rg.shape),
    )  # fmt: skip


def test_pairs_that_run_nowhere_take_part() -> None:
    of = seen()
    groups = grouped(of, of.rate__jg, of.kind, pairs=True)
    assert [side.tolist() for side in groups.idle] == [[1, 0], [1, 2]]
    whole = groups.whole()
    assert len(whole.first__r) == len(groups.first__r) + 2 == 3 + 2 + 3 + 0 + 1 - 1 + 0
    assert whole.count__r[-2:].tolist() == [1, 3] and not whole.rate__rg[-2:].any()


def test_the_solution_solves() -> None:
    of = seen()
    system = program(grouped(of, of.rate__jg, of.kind, pairs=True), of)
    random = np.random.default_rng(2)
    columns, entries = len(system.cost), len(system.count)
    weight, damping = 10 ** random.uniform(-3, 3, entries), random.uniform(0, 1e-6, columns)
    rise, fall = random.normal(size=columns), random.normal(size=entries)
    x, level, z = system.solver(weight, damping, 1e-6)(rise, 0.7, fall)
    prices, level_price = system.prices(z)
    assert prices + damping * x == pytest.approx(rise, abs=1e-7)
    assert level_price + 1e-6 * level == pytest.approx(0.7, abs=1e-7)
    assert np.concatenate([-x, system.used(x, level)]) - weight * z == pytest.approx(fall, rel=1e-6, abs=1e-6)
    used = np.concatenate([-x, system.used(x, level)])
    assert (system.count * used) @ z == pytest.approx((system.count[:columns] * x) @ prices + level * level_price)


def test_alike_jobs_end_where_the_program_written_out_ends() -> None:
    of = seen()
    groups = grouped(of, of.rate__jg, of.kind, pairs=True)
    apart = grouped(of, of.rate__jg, np.arange(len(of)), pairs=True)
    found, expected = (optimum(program(one, of)) for one in (groups, apart))
    assert found is not None and expected is not None
    assert found[1] == pytest.approx(expected[1], rel=1e-8)
    by_classes, by_jobs = found[0].reshape(-1, 2), expected[0].reshape(-1, 2)
    whole, each = groups.whole(), apart.whole()
    place = {pair: r for r, pair in enumerate(zip(whole.first__r.tolist(), whole.second__r.tolist(), strict=True))}
    for r, (one, two) in enumerate(zip(each.first__r.tolist(), each.second__r.tolist(), strict=True)):
        low, high = sorted([KINDS[one], KINDS[two]]) if two >= 0 else (KINDS[one], two)
        # The same steps, summed in another order.
        assert by_jobs[r] == pytest.approx(by_classes[place[low, high]], abs=1e-5)
