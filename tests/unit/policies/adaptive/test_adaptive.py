"""Jobs of fixed size in an order: who comes first, on which GPU model, and who stays."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptiveView, JobView, Place
from fastsim.engine.adaptive.run import run_adaptive
from fastsim.errors import PolicyError
from fastsim.policies.adaptive.served import ORDERS, Served
from fastsim.policies.deciders.fixed_size_decider import ServedDecider
from tests.adaptive import APPS, adaptive_setting, told_of


def job(number: int, num_gpu: int, **known: Any) -> JobView:
    """A job of cifar10 that came in order of its number."""
    request = AdaptiveJob(float(number), "cifar10", num_gpu, 1024)
    return JobView(number, request, APPS["cifar10"], 0.0, 0, 0.0, 0.0, 0, 0.0, None, {}, None)._replace(**known)


def served(order: str, *jobs: JobView) -> dict[int, tuple[int, int]]:
    """Group and GPUs of those that run on 4 GPUs of one model and 8 of another, faster one."""
    decider = ServedDecider(adaptive_setting(1, 1, 0), order, (3600.0,))
    places = decider.decide(AdaptiveView(60.0, jobs))
    return {number: (place.group, len(place.nodes)) for number, place in places.items()}


def test_the_first_takes_the_fastest_model_and_others_fill_up() -> None:
    assert served("fifo", job(0, 8), job(1, 8), job(2, 4)) == {0: (1, 8), 2: (0, 4)}


@pytest.mark.parametrize(("order", "first"), [("fifo", 0), ("las", 1), ("tiresias", 0)])
def test_orders(order: str, first: int) -> None:
    had = job(0, 8, service_s=3000.0), job(1, 8, service_s=100.0)
    assert list(served(order, *had)) == [first]


def test_tiresias_serves_the_first_queue_first() -> None:
    assert list(served("tiresias", job(0, 8, service_s=4000.0), job(1, 8, service_s=3000.0))) == [1]


def test_demotion_serves_the_second_queue_in_the_order_of_entry() -> None:
    decider = ServedDecider(adaptive_setting(0, 1, 0), "demotion", (3600.0,))
    early, late = job(0, 8, service_s=100.0), job(1, 8, service_s=4000.0)
    assert list(decider.decide(AdaptiveView(60.0, [early, late]))) == [0]
    both = [early._replace(service_s=5000.0), late]
    other = ServedDecider(adaptive_setting(0, 1, 0), "demotion", (3600.0,))
    other.restore(json.loads(json.dumps(decider.state())))
    assert list(decider.decide(AdaptiveView(120.0, both))) == [1] == list(other.decide(AdaptiveView(120.0, both)))
    assert list(decider.decide(AdaptiveView(180.0, both[:1]))) == [0] and list(decider.demoted) == [0]


def test_jobs_on_the_emptiest_nodes_stay_there() -> None:
    decider = ServedDecider(adaptive_setting(2, 0, 0), "fifo", (), emptiest=True)
    first = decider.decide(AdaptiveView(60.0, [job(0, 2), job(1, 2), job(2, 1)]))
    assert {number: place.nodes for number, place in first.items()} == {0: (0, 0), 1: (1, 1), 2: (0,)}
    later = decider.decide(AdaptiveView(120.0, [job(1, 2), job(2, 1), job(3, 4)]))
    assert {number: place.nodes for number, place in later.items()} == {1: (1, 1), 2: (0,), 3: (0, 0, 0, 1)}


def test_the_shortest_is_served_first() -> None:
    far = APPS["cifar10"].curve.progress(50)
    assert list(served("srtf", job(0, 8), job(1, 8, epoch=50, progress=far))) == [1]


def test_who_runs_stays_on_its_model() -> None:
    assert served("fifo", job(0, 4, place=Place(0, (0,) * 4))) == {0: (0, 4)}


@pytest.mark.parametrize("order", ORDERS)
def test_a_run_ends(order: str) -> None:
    setting = adaptive_setting(round_s=360.0)
    jobs = [AdaptiveJob(30.0 * n, "cifar10", 2 + 2 * (n % 4), 1024) for n in range(8)]
    run = run_adaptive(told_of(setting), setting, Served(order).begin(setting), jobs)
    assert np.isfinite(run.jobs["finish_s"]).all()


@pytest.mark.parametrize(("name", "value"), [("order", "x"), ("first_h", 0), ("first_h", True)])
def test_parameters_are_checked(name: str, value: Any) -> None:
    with pytest.raises(PolicyError, match=name):
        Served(**{name: value})
