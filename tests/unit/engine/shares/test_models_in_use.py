"""Models without GPUs: rounds are those of a cluster that does not have them, draws included."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import groupby
from typing import Any

import numpy as np
import pytest

from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.job_metrics import utilization_by_model
from fastsim.engine.rounds.options import Job, RoundOptions, Setting
from fastsim.engine.rounds.outcome import RoundOutcome
from fastsim.engine.shares.models_in_use import models_with_gpus, options_on, setting_on
from fastsim.engine.shares.plan import Allocation, RoundView, SharePlan
from fastsim.engine.shares.run import run_rounds
from fastsim.errors import InputError
from fastsim.performance.oracle import Oracle
from fastsim.scenario.prices import Prices
from tests.unit.reference.rounds.test_share_rounds import Fixed, setting


class DrawnShares:
    """Gives every job the same random share of every model; records what it saw."""

    def __init__(self) -> None:
        self.random, self.seen = np.random.default_rng(5), list[tuple[str, ...]]()

    def allocate(self, view: RoundView) -> Allocation | None:
        """A number for each model that the view has."""
        self.seen.append(view.setting.gpu_models)
        assert view.setting.gpus__g.min() > 0 and view.price__g.shape == view.setting.gpus__g.shape
        share__jg = self.random.random((len(view), len(view.setting.gpu_models))) / max(len(view), 2)
        return Allocation.of_singles(view.job_id, share__jg)

    def state(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Nothing."""


RATES = np.array([[1.0, 0.9, 3.0], [2.0, 0.1, 2.5], [0.5, 0.4, 4.0]])


def on_models(gpus: list[int], keep: list[int], servers: tuple[int, ...] = ()) -> tuple[RoundOutcome, DrawnShares]:
    """Nine jobs in rounds whose models are filled in a drawn order, on the models ``keep`` of three."""
    kinds = tuple((f"w{k}", 1) for k in range(3))
    names = tuple(f"m{g}" for g in keep)
    oracle = Oracle(kinds, names, RATES[:, keep], np.zeros((3, 3, len(keep))))
    where = Setting(names, np.array(gpus), oracle, RATES[:, 2], seed=11)
    policy = DrawnShares()
    options = RoundOptions(prices=Prices(names, np.array([0.0]), np.array([[1.0, 2.0, 4.0]])[:, keep]))
    jobs = [Job(400.0 * k, k % 3, 1, 4000.0 + 77 * k) for k in range(9)]
    plan = SharePlan(policy, visit="shuffled", overcommitted=True)
    return run_rounds(where, plan, [JobBatch.of(jobs)], options, gpus_per_server=servers, record_tasks=True), policy


@pytest.mark.parametrize(("gpus", "servers"), [([2, 0, 1], ()), ([2, 3, 1], (1, 4, 1))])
def test_a_model_without_gpus_changes_nothing_but_its_own_zero(gpus: list[int], servers: tuple[int, ...]) -> None:
    # Three of its GPUs fill no server of four, which is as if there were none.
    (run, policy), (without, other) = on_models(gpus, [0, 1, 2], servers), on_models([2, 1], [0, 2])
    assert policy.seen == other.seen and policy.seen[0] == ("m0", "m2")
    assert repr(run.jobs.tolist()) == repr(without.jobs.tolist())  # by digits, as NaN differs from itself
    columns = ["round", "id", "t", "finish_s", "num_gpu", "priority", "deficit", "held"]
    assert run.tasks[columns].tolist() == without.tasks[columns].tolist()
    assert run.tasks["model"].tolist() == [(0, 2)[model] for model in without.tasks["model"]]
    assert run.setting.gpu_models == ("m0", "m1", "m2") and run.gpus__g == (2, 0, 1)
    found = utilization_by_model(run)
    assert found == {**utilization_by_model(without), "m1": 0.0} and found["m0"] > 0


def test_models_are_filled_in_the_order_drawn_among_those_with_gpus() -> None:
    # One job more than GPUs, so every model is used in every round, in the order in which they are visited.
    where, jobs = setting([1, 0, 1], [[1.0, 1.0, 3.0]]), [Job(0.0, 0, 1, 20_000.0)] * 3
    run = run_rounds(
        where, SharePlan(Fixed([0.3, 0.3]), visit="shuffled"), [JobBatch.of(jobs)], RoundOptions(), record_tasks=True
    )
    stream, visits = random.Random(where.seed + 5), list[list[int]]()
    for _ in range(10):
        order = [2, 0]  # the fastest first, as the original lists them; none of the model without GPUs
        stream.shuffle(order)
        visits.append(order)
    found = [
        [model for _, model in rows] for _, rows in groupby(run.tasks[["round", "model"]].tolist(), lambda r: r[0])
    ]
    assert found[:10] == visits and len({tuple(order) for order in visits}) == 2


def test_nothing_is_copied_where_every_model_has_gpus() -> None:
    where, options = setting([2, 1], [[1.0, 1.0]]), RoundOptions()
    models = models_with_gpus([2, 1])
    assert models == (0, 1) and setting_on(where, (2, 1), models) is where and options_on(options, models) is options


def test_prices_are_those_of_the_models_left_and_change_when_they_did() -> None:
    prices = Prices(("a", "b", "c"), np.array([0.0, 60.0]), np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    some = options_on(RoundOptions(prices=prices), (0, 2)).prices
    assert some is not None and some.at(0.0).tolist() == [1, 3] and some.at(60.0).tolist() == [4, 6]
    assert (some.next_change_s(0.0), some.next_change_s(60.0)) == (60.0, float("inf"))


def test_a_cluster_without_gpus_is_refused() -> None:
    where, plan = setting([0, 3], [[1.0, 1.0]]), SharePlan(Fixed([1.0]))
    with pytest.raises(InputError, match="found no GPU that fills a server, expected one at least"):
        run_rounds(where, plan, [], RoundOptions(), gpus_per_server=(1, 4))
