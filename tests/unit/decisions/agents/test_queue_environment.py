"""Environments of waiting lines: Gymnasium's checker, runs that equal the engine's, vectors equal to single ones."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import fastsim as fs

pytest.importorskip("gymnasium", reason="environments need Gymnasium (the rl extra)")

import gymnasium
from gymnasium.utils.env_checker import check_env

from fastsim.decisions.agents.queue_environment import QueueEnv, QueueVectorEnv
from fastsim.engine.result import FRAMES

CLUSTER = "openb:6"
JOBS = "synth:openb?pods=150&seed={seed}&load=2"
STAYING = "synth:openb?pods=60&seed={seed}&tune=1.4&tune_seed={seed}"


def environment(jobs: str = JOBS, **rest: Any) -> QueueEnv:
    return QueueEnv(CLUSTER, jobs, record="all", **rest)


def played(env: QueueEnv, seed: int, agent: Callable[[QueueEnv], int]) -> tuple[fs.Result, float]:
    """The result of an episode with this agent, and the sum of its rewards."""
    env.reset(seed=seed)
    over, total = False, 0.0
    while not over:
        _, reward, over, _, _ = env.step(agent(env))
        total += reward
    return env.result(), total


def simulated(queue: str, policy: str, seed: int, jobs: str = JOBS) -> fs.Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fs.PodTooLarge)
        return fs.simulate(CLUSTER, jobs.replace("{seed}", str(seed)), policy, seed=seed, queue=queue, record="all")


@pytest.mark.parametrize("mode", [None, "ansi", "rgb_array"])
def test_an_environment_by_name_passes_every_check_in_every_mode(mode: str | None) -> None:
    import fastsim.decisions.agents.environment  # noqa: F401  (registers both)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*(Inf|infinity|not within|flatten).*")
        env = gymnasium.make("fastsim/Queue-v0", cluster=CLUSTER, workload=JOBS, render_mode=mode)
        check_env(env.unwrapped)


@pytest.mark.parametrize("policy", ["fgd", "random", "best_fit", "0.9*fgd + 0.1*pwr"])
@pytest.mark.parametrize("jobs", [JOBS, STAYING])
def test_an_agent_that_always_takes_the_first_leaves_what_fifo_leaves(policy: str, jobs: str) -> None:
    found, _ = played(environment(jobs, policy=policy), 5, QueueEnv.advice)
    expected = simulated("fifo", policy, 5, jobs)
    assert len(found.jobs) > 50
    for name in FRAMES:
        assert found.frames[name].equals(expected.frames[name]), name


def test_an_agent_that_takes_the_first_that_fits_starts_what_fifo_skip_starts() -> None:
    """All that wait are in sight, and the policy draws nothing."""
    found, _ = played(environment(places=150), 4, lambda env: int(np.argmax(env.action_masks())))
    expected = simulated("fifo_skip", "best_fit", 4)
    columns = ["pod_id", "start_s", "end_s", "state"]
    assert found.jobs.select(columns).equals(expected.jobs.select(columns))
    assert expected.jobs["wait_s"].to_numpy().max() > 0


def test_rewards_add_up_to_the_hours_that_jobs_waited() -> None:
    found, total = played(environment(), 3, QueueEnv.advice)
    # Both are sums of some hundred products of doubles.
    assert total == pytest.approx(-found.jobs["wait_s"].sum() / 3600, rel=1e-9) and total < -1


def test_a_masked_action_waits_and_waiting_is_masked_at_the_end() -> None:
    env = environment()
    seen, info = env.reset(seed=2)
    assert info["feasible"] == 1 and seen["mask"].tolist() == [1, *[0] * 9, 1]
    waiting = seen["line"][0]
    seen, *_ = env.step(7)  # an empty place
    assert seen["line"][0] == waiting + 1
    over = False
    while seen["mask"][-1]:
        seen, _, over, _, _ = env.step(env.places)
    assert not over and seen["mask"][:-1].any()  # nothing runs, nothing comes, but jobs wait
    assert math.isclose(seen["line"][1], 1.0)
    *_, over, _, info = env.step(env.places)
    assert over and info == {"feasible": 0}
    assert env.result().summary["pods_running"].item() == 0
    with pytest.raises(fs.ScenarioError, match="over"):
        env.step(0)


def test_what_is_seen_of_a_job() -> None:
    request = {"cpu_milli": [1000, 1000], "memory_mib": [64, 64], "num_gpu": [2, 1], "gpu_milli": [1000, 500]}
    pods = {"pod_id": [0, 1], "submit_s": [0.0, 1800.0], "duration_s": [7200.0, None], **request}
    jobs = fs.Workload.from_arrow(pl.DataFrame(pods))
    env = QueueEnv("uniform?nodes=1&gpu=T4&gpus=2&cpu_milli=4000&memory_mib=256", jobs, places=2)
    seen, _ = env.reset(seed=0)
    assert seen["jobs"].tolist() == [[0.25, 0.25, 0.25, 1.0, 0.0, 2.0, 1.0], [0.0] * 7]
    seen, reward, *_ = env.step(2)
    assert seen["jobs"].tolist() == [[0.25, 0.25, 0.25, 1.0, 0.5, 2.0, 1.0], [0.25, 0.25, 0.125, 0.5, 0.0, -1.0, 1.0]]
    assert reward == -0.5 and seen["line"].tolist() == [2.0, 1.0] and seen["mask"].tolist() == [1, 1, 0]


def test_a_vector_is_its_environments_side_by_side_and_begins_again() -> None:
    given: dict[str, Any] = {"cluster": CLUSTER, "workload": "synth:openb?pods=40&seed={seed}&load=2"}
    vector = gymnasium.make_vec("fastsim/Queue-v0", num_envs=3, **given)
    assert isinstance(vector, QueueVectorEnv)
    seen, _ = vector.reset(seed=7)
    first = {name: values.copy() for name, values in seen.items()}
    alone = [QueueEnv(**given) for _ in range(3)]
    single = [env.reset(seed=7 + e)[0] for e, env in enumerate(alone)]
    over = np.zeros(3, bool)
    while not over.all():
        assert all((seen[key][e] == single[e][key]).all() for e in range(3) for key in seen if not over[e])
        actions = seen["mask"].argmax(axis=1)
        seen, rewards, ended, _, _ = vector.step(actions)
        for e in np.flatnonzero(ended):
            assert all((seen[key][e] == first[key][e]).all() for key in seen)
        for e in np.flatnonzero(~over):
            single[e], reward, done, _, _ = alone[e].step(int(actions[e]))
            assert (reward, done) == (rewards[e], ended[e])
            over[e] = done
    again, _ = vector.reset()  # the same jobs
    assert all((again[key] == first[key]).all() for key in again)
    assert not all((vector.reset(seed=9)[0][key] == first[key]).all() for key in again)
    with pytest.raises(ValueError, match="read-only"):
        again["nodes"][0] = 1
    assert vector.advice().shape == (3,)


def test_mistakes_are_named() -> None:
    with pytest.raises(fs.ScenarioError, match="did you mean 'waiting'"):
        environment(reward="wating")
    with pytest.raises(fs.ScenarioError, match="places: found 0, expected 1 to 1000"):
        environment(places=0)
    with pytest.raises(fs.ScenarioError, match="render_mode: found 'human'"):
        environment(render_mode="human")
    with pytest.raises(fs.PolicyError, match=r"action: found 11 .int., expected a whole number from 0 to 10"):
        environment().step(11)
