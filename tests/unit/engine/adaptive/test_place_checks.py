"""Answers of deciders: valid ones become plain places, all others one error with policy, time and job."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from fastsim.engine.adaptive.place_checks import checked_groups, checked_places, excess_of_gpus
from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptivePlan, AdaptiveView, JobView, Place
from fastsim.engine.adaptive.run import adaptive_driver
from fastsim.errors import PolicyError
from tests.adaptive import APPS, adaptive_setting

SETTING = adaptive_setting()  # groups aws: nodes of 4 and 4 GPUs, dgx-ext: 8, rtx: 8


def job(number: int, num_gpu: int = 2) -> JobView:
    request = AdaptiveJob(0.0, "cifar10", num_gpu, 512)
    return JobView(number, request, APPS["cifar10"], 60.0, 0, 0.0, 0.0, 0, 0.0, None, {}, None)


VIEW = AdaptiveView(120.0, [job(3), job(5, 7)])


def checked(answer: Any, before: dict[int, Place] | None = None) -> dict[int, Place]:
    return checked_places(answer, VIEW, SETTING, before or {}, "mine")


NODES = "the node of each of its GPUs, 0 to 1 within group 0"
WRONG: dict[str, tuple[Any, str, str]] = {
    "nothing": (None, "decide(): found None", "a dict of a Place for each job that runs"),
    "a list": ([Place(0, (0,))], "decide(): found [Place(", "a dict of a Place"),
    "a place": (Place(0, (0,)), "decide(): found Place(", "a dict of a Place"),
    "a text": ("3", "decide(): found '3' (str)", "a dict of a Place"),
    "a job that is not there": ({4: Place(0, (0,))}, "found 4 as a job", "ids of active jobs: 3, 5"),
    "a text as a job": ({"3": Place(0, (0,))}, "found '3' as a job", "ids of active jobs"),
    "a fraction as a job": ({3.5: Place(0, (0,))}, "found 3.5 as a job", "ids of active jobs"),
    "a truth value as a job": ({True: Place(0, (0,))}, "found True as a job", "ids of active jobs"),
    "a tuple": ({3: (0, (0,))}, "job 3: found (0, (0,)) (tuple)", "a Place(group, nodes)"),
    "a number": ({3: 2}, "job 3: found 2 (int)", "a Place(group, nodes)"),
    "a group that is not there": ({3: Place(99, (0,))}, "job 3: group: found 99", "0 = aws, 1 = dgx-ext, 2 = rtx"),
    "a group below 0": ({3: Place(-1, (0,))}, "job 3: group: found -1", "the number of a group"),
    "a part of a group": ({3: Place(0.5, (0,))}, "job 3: group: found 0.5", "the number of a group"),  # type: ignore[arg-type]
    "a truth value as a group": ({3: Place(True, (0,))}, "job 3: group: found True", "the number of a group"),
    "a model as a group": ({3: Place("aws", (0,))}, "job 3: group: found 'aws'", "the number of a group"),  # type: ignore[arg-type]
    "a node that is not there": ({3: Place(0, (0, 2))}, "job 3: nodes: found 2", NODES),
    "a node below 0": ({3: Place(0, (-1,))}, "job 3: nodes: found -1", NODES),
    "a part of a node": ({3: Place(0, (0.5,))}, "job 3: nodes: found 0.5", NODES),  # type: ignore[arg-type]
    "a truth value as a node": ({3: Place(0, (True,))}, "job 3: nodes: found True", NODES),
    "no nodes": ({3: Place(0, ())}, "job 3: nodes: found none", "a job that waits has no place"),
    "a number of GPUs": ({3: Place(0, 2)}, "job 3: nodes: found 2 (int)", NODES),  # type: ignore[arg-type]
    "a text as nodes": ({3: Place(0, "01")}, "job 3: nodes: found '01' (str)", NODES),  # type: ignore[arg-type]
}
"""Answers that are wrong, with what was found and a part of what is expected."""


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_place_is_one_error_with_policy_and_time(case: str) -> None:
    answer, found, expected = WRONG[case]
    with pytest.raises(PolicyError) as caught:
        checked(answer)
    text = str(caught.value)
    assert text.startswith("policy mine at 120 s: decide()") and found in text
    assert expected in text.partition(", expected ")[2]


def test_places_become_plain() -> None:
    answer: Any = {np.int64(3): Place(np.int32(0), [np.int64(1), 0]), 5: None}  # type: ignore[arg-type]
    places = checked(answer)
    assert places == {3: Place(0, (1, 0))}
    assert [type(number) for number in (*places, places[3].group, *places[3].nodes)] == [int] * 4
    assert checked({}) == {}


def test_a_place_that_a_job_keeps_is_not_looked_at_again() -> None:
    kept = Place(99, (0,))
    assert checked({3: kept}, {3: kept})[3] is kept
    with pytest.raises(PolicyError, match="group: found 99"):
        checked({5: kept}, {3: kept})


def test_jobs_that_keep_their_places_are_active_and_their_ids_plain() -> None:
    kept = {3: Place(0, (0,)), 4: Place(0, (1,)), 5: Place(1, (0,))}
    with pytest.raises(PolicyError, match="found 4 as a job, expected ids of active jobs: 3, 5"):
        checked(dict(kept), kept)
    places = checked({np.int64(3): kept[3], 5: kept[5]}, kept)
    assert {type(job) for job in places} == {int} and places[3] is kept[3]
    answer = {3: kept[3]}
    assert checked(answer, kept) == answer and checked(answer, kept) is not answer
    assert checked({3: None, 5: kept[5]}, {5: kept[5]}) == {5: kept[5]}


def test_a_truth_value_is_no_job_even_where_a_job_has_that_id() -> None:
    view = AdaptiveView(0.0, [job(0), job(1)])
    with pytest.raises(PolicyError, match="found True as a job, expected ids of active jobs: 0, 1"):
        checked_places({True: Place(0, (0,))}, view, SETTING, {}, "mine")
    with pytest.raises(PolicyError, match="found True as a job"):
        checked_groups({True: 0}, view, SETTING, "Mine")


def test_an_application_that_was_not_measured_on_a_model_has_no_place_there() -> None:
    app = APPS["cifar10"]
    steps = {model: times for model, times in app.steps.items() if model != "rtx"}
    view = AdaptiveView(0.0, [job(3)._replace(application=dataclasses.replace(app, steps=steps))])
    with pytest.raises(PolicyError, match=r"job 3: found group 2 \(rtx\), expected a GPU model that cifar10 can use"):
        checked_places({3: Place(2, (0,))}, view, SETTING, {}, "mine")


def test_groups_of_jobs_of_fixed_size() -> None:
    assert checked_groups({3: 0, np.int64(5): np.int64(1)}, VIEW, SETTING, "Mine") == {3: 0, 5: 1}
    assert checked_groups({3: None}, VIEW, SETTING, "Mine") == {}
    for answer, found in {
        "None": (None, r"Mine\.chosen\(\) at 120 s: found None, expected a dict of the group"),
        "99": ({3: 99}, r"job 3: group: found 99, expected the number of a group: 0 = aws"),
        "9 GPUs": ({3: 0, 5: 0}, r"found jobs on 9 GPUs of group 0 \(aws\), expected at most its 8"),
        "4": ({4: 0}, "found 4 as a job, expected ids of active jobs: 3, 5"),
    }.values():
        with pytest.raises(PolicyError, match=found):
            checked_groups(answer, VIEW, SETTING, "Mine")


def test_more_gpus_than_any_application_was_measured_on_are_an_error_of_the_policy() -> None:
    """Step times are asked for before GPUs are counted, and there are none on 99 GPUs of one node."""

    class Crowd:
        solver_s = 0.0

        def decide(self, view: AdaptiveView) -> dict[int, Place]:
            return {one.id: Place(0, (0,) * 99) for one in view.jobs}

    driver = adaptive_driver(SETTING, AdaptivePlan(Crowd()), [AdaptiveJob(0.0, "cifar10", 2, 512)])
    driver.loop.work()
    with pytest.raises(
        PolicyError, match=r"found 99 GPUs of node 0 of group 0 \(aws\) for jobs 0, expected at most its 4"
    ):
        driver.decide()


def test_gpus_given_twice_are_named() -> None:
    assert excess_of_gpus({3: Place(0, (1,) * 4)}, VIEW, SETTING, "mine") is None
    error = excess_of_gpus({3: Place(0, (1, 1)), 5: Place(0, (1,) * 3)}, VIEW, SETTING, "mine")
    assert str(error) == (
        "policy mine at 120 s: decide(): found 5 GPUs of node 1 of group 0 (aws) for jobs 3, 5, "
        "expected at most its 4, each for one job"
    )
