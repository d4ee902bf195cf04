"""Jobs made as Synergy makes them, against the rules written out with CPython's own generator."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.errors import InputError, ScenarioError
from fastsim.performance.sensitivity import Sensitivity
from fastsim.workload.generators.synergy_jobs import (
    JobLog,
    SynergyRecipe,
    SynergyStream,
    short_seconds,
    split_of,
    workload_turns,
)

DEFAULT = Sensitivity.default()


def recipe(**options: object) -> SynergyRecipe:
    return SynergyRecipe(DEFAULT, **options)  # type: ignore[arg-type]


def plain(seed: int, jobs: int, rate: float, log: int, pickled: bool) -> list[tuple[float, float, int]]:
    """(arrival, duration, GPUs) one number after another."""
    draw, now, drawn = random.Random(seed), 0, []
    found: list[tuple[float, float, int]] = []

    def seconds() -> float:
        low, high = (3, 4) if draw.random() >= 0.8 else (1.5, 3)
        return 60 * 10 ** draw.uniform(low, high)

    drawn = [seconds() for _ in range(log)]
    draw = random.Random(seed) if pickled else draw
    for job in range(jobs):
        now += math.ceil(-math.log(1 - draw.random()) / rate * 3600)
        duration = drawn[job % log] if log else seconds()
        u = 0.0 if log else draw.uniform(0, 1)
        found.append((now, duration, 8 if u >= 0.95 else 4 if u >= 0.8 else 2 if u >= 0.7 else 1))
        draw.randint(0, 9)
    return found


@given(st.integers(0, 2**40), st.integers(0, 40), st.sampled_from([0, 1, 7, 100]), st.booleans(), st.integers(0, 40))
def test_every_number_is_that_of_the_plain_rules(seed: int, jobs: int, log: int, pickled: bool, cut: int) -> None:
    given_log = JobLog(np.ones(log, np.int64)) if log else None
    made = recipe(seed=seed, rate_per_hour=6.0, log=given_log, pickled=pickled and bool(log))
    stream = SynergyStream(made)
    pieces = [stream.take(min(cut, jobs))]
    pieces.append(SynergyStream(made, stream.kept()).take(jobs - min(cut, jobs)))
    found = [
        row
        for piece in pieces
        for row in zip(*(piece[c].to_pylist() for c in ("submit_s", "duration_s", "num_gpu")), strict=True)
    ]
    assert found == plain(seed, jobs, 6.0, log, pickled)
    work = [
        (w, d, t)
        for piece in pieces
        for w, d, t in zip(*(piece[c].to_pylist() for c in ("workload", "duration_s", "total_work")), strict=True)
    ]
    assert all(total == int(duration / DEFAULT.profile(name).iteration_s) for name, duration, total in work)


def test_the_task_that_lacks_most_is_next_and_its_workloads_take_turns() -> None:
    names = [DEFAULT.workloads[place] for place in islice(workload_turns(recipe(split=(50, 0, 50))), 6)]
    assert names == ["alexnet", "m5", "res18", "deepspeech", "res50", "m5"]
    jobs = [DEFAULT.profiles[place].task for place in islice(workload_turns(recipe()), 1000)]
    assert Counter(jobs) == {"image": 200, "language": 700, "speech": 100}


def test_short_durations_end_at_eight_hours() -> None:
    hours = short_seconds(np.array([0.0, 0.79, 0.8, 0.99]), np.array([0.0, 0.5, 0.0, 1.0])) / 3600
    assert hours == pytest.approx([10**1.5 / 60, 10**2 / 60, 10**2.5 / 60, 10**2.7 / 60])


def test_a_log_tells_arrivals_durations_and_gpus() -> None:
    log = JobLog(np.array([2, 16]), np.array([0.0, 90.5]), np.array([600.0, 1200.0]))
    stream = SynergyStream(recipe(log=log, arrivals="log", durations="log", multi_gpu=True))
    batches = list(stream.batches(rows=1))
    assert [batch["submit_s"][0].as_py() for batch in batches] == [0, 90.5]
    assert [batch["num_gpu"][0].as_py() for batch in batches] == [2, 16]
    assert [batch["total_work"][0].as_py() for batch in batches] == [1000, 10_000]  # alexnet 0.6 s, gnmt 0.12 s
    assert stream.take(5).num_rows == 0
    again = SynergyStream(recipe(log=log, arrivals="static", durations="log")).take(3)
    assert again["submit_s"].to_pylist() == [0, 0.001, 0.002]
    assert again["num_gpu"].to_pylist() == [1, 1, 1] and again["duration_s"].to_pylist() == [600, 1200, 600]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": (20, 80)}, "per cent of jobs for each of image, language, speech"),
        ({"split": (20, -1, 3)}, "per cent of jobs"),
        ({"rate_per_hour": 0}, "arrivals per hour"),
        ({"arrivals": "random"}, "one of poisson, static, log"),
        ({"durations": "long"}, "one of gavel, short, log"),
        ({"arrivals": "static"}, "expected a log of jobs"),
        ({"multi_gpu": True}, "expected a log of jobs"),
        ({"log": JobLog(np.ones(3, np.int64), tells_gpus=False), "multi_gpu": True}, "a log that tells GPUs"),
        ({"log": JobLog(np.ones(3, np.int64)), "durations": "log"}, "a log without them"),
        ({"log": JobLog(np.ones(0, np.int64))}, "no jobs"),
    ],
)
def test_impossible_recipes_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        recipe(**options)


def test_wrong_splits_and_standings_are_refused() -> None:
    assert split_of("50:0:50") == (50, 0, 50)
    with pytest.raises(ScenarioError, match="numbers, such as 20:70:10"):
        split_of("half")
    with pytest.raises(InputError, match="what kept"):
        SynergyStream(recipe(), {"jobs": 3})
