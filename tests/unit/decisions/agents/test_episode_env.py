"""What environments have in common: seeds of episodes, masks and results, whatever a decision is."""

from __future__ import annotations

import inspect
import sys
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from fastsim.errors import FastsimError, PolicyError, ScenarioError
from fastsim.policies import FGD

pytest.importorskip("gymnasium", reason="environments need Gymnasium (the rl extra)")

from fastsim.decisions.agents.environment import SchedulingEnv, SchedulingVectorEnv
from fastsim.decisions.agents.queue_environment import QueueEnv, QueueVectorEnv

KINDS = (SchedulingEnv, QueueEnv)


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_begins_the_same_episodes_again(kind: type[SchedulingEnv] | type[QueueEnv]) -> None:
    env = kind("openb:3", "synth:openb?pods=10&seed={seed}")
    first, second = (env.reset(seed=seed)[0] for seed in (5, None))
    again, next_one = (env.reset(seed=seed)[0] for seed in (5, None))
    for before, after in ((first, again), (second, next_one)):
        assert all(np.array_equal(values, after[name]) for name, values in before.items())


@pytest.mark.parametrize("kind", KINDS)
def test_an_observation_stays_when_the_next_one_comes(kind: type[SchedulingEnv] | type[QueueEnv]) -> None:
    env = kind("openb:3", "synth:openb?pods=10&seed=1")
    before, _ = env.reset(seed=0)
    kept = {name: values.copy() for name, values in before.items()}
    env.step(env.advice())
    assert all(np.array_equal(values, kept[name]) for name, values in before.items())
    assert env.action_masks().dtype == np.bool_ and env.action_masks().tolist() == env.episode.mask.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_an_episode_is_over_once(kind: type[SchedulingEnv] | type[QueueEnv]) -> None:
    env = kind("openb:3", "synth:openb?pods=5&seed=1")
    env.reset(seed=0)
    with pytest.raises(ScenarioError, match="goes on"):
        env.result()
    over = False
    while not over:
        _, _, over, cut, info = env.step(env.advice())
        assert not cut
    assert info == {"feasible": 0} and env.result().summary["pods"].item() == 5
    with pytest.raises(ScenarioError, match="over"):
        env.step(0)


SMALL: dict[str, Any] = {"cluster": "uniform?nodes=3&gpu=T4&gpus=2", "workload": "synth:openb?pods=40&seed=1&load=1.5"}
VECTORS = (SchedulingVectorEnv, QueueVectorEnv)
ACTIONS: list[Any] = [
    None, "1", 1.0, 1.5, np.float64(1), np.nan, -2, 99, 10**30, True, np.bool_(True), [1], np.array([1]), np.array(1.0),
    {}, int, 1j,
]  # fmt: skip
LISTS: list[Any] = [
    None, 1, [1], [1, 1, 1], ["1", "1"], [1.0, 1.0], [np.nan, 1], np.array([[1, 1]]), [True, False], [None, 1],
    [[1], []], [10**30, 1], {},
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_an_action_is_a_whole_number_of_the_space(kind: type[SchedulingEnv] | type[QueueEnv]) -> None:
    env = kind(**SMALL)
    env.reset(seed=0)
    for action in ACTIONS:
        with pytest.raises(PolicyError, match=r"^action: found .*, expected a whole number from 0 to \d+$"):
            env.step(action)
    whole: list[Any] = [0, np.int8(0), np.uint64(0), np.array(0)]
    gained = [(env.reset(seed=0), env.step(action)[1])[1] for action in whole]
    assert len(set(gained)) == 1


@pytest.mark.parametrize("kind", VECTORS)
def test_actions_are_an_array_of_whole_numbers(kind: type[SchedulingVectorEnv] | type[QueueVectorEnv]) -> None:
    env: Any = kind(2, **SMALL)
    before, _ = env.reset(seed=0)
    kept = {name: values.copy() for name, values in before.items()}
    for actions in LISTS:
        with pytest.raises(
            PolicyError, match=r"^actions: found .*, expected an array of 2, each a whole number from 0"
        ):
            env.step(actions)
    for actions, e, found in (([0, 99], 1, 99), ([-2, 0], 0, -2), (np.array([0, 2**40]), 1, 2**40)):
        with pytest.raises(PolicyError, match=f"^action of environment {e}: found {found}, expected a whole number"):
            env.step(actions)
    assert all(np.array_equal(values, kept[name]) for name, values in before.items())  # none has gone on
    rewards = [env.step(actions)[1].shape for actions in ([0, 0], np.zeros(2, np.uint8), (0, np.int64(0)))]
    assert rewards == [(2,)] * 3


WRONG: dict[str, tuple[list[Any], str]] = {
    "num_envs": ([0, -1, "a", 1.5, True], "a whole number of 1 or more"),
    "places": ([0, 1001, "a", 1.5, True], "1 to 1000"),
    "reward": ([None, 3, ["placed"], {"placed": "x"}, {"placed": np.nan}, {"placed": True}],
               "a name or weights|a finite"),
    "seed": ([-1, "a", 1.5], "a whole number from 0"),
    "policy": ([FGD, None, 3], "a policy|a text or an object"),
    "record": (["no"], "one of none"),
}  # fmt: skip
"""Wrong arguments of environments, and what is expected."""


@pytest.mark.parametrize("kind", [*KINDS, *VECTORS])
def test_wrong_arguments_are_one_error(kind: type) -> None:
    for name in WRONG.keys() & set(inspect.signature(kind).parameters):
        values, expected = WRONG[name]
        for value in values:
            with pytest.raises((ScenarioError, PolicyError), match=f"^{name}.*: found .*, expected ({expected})"):
                kind(**({"num_envs": 1} if kind in VECTORS else {}) | SMALL | {name: value})


def test_without_gymnasium_the_extra_is_named() -> None:
    name = "fastsim.decisions.agents.episode_env"
    with patch.dict(sys.modules, gymnasium=None), pytest.raises(FastsimError, match=r"fastsim-gpu\[rl\]"):
        del sys.modules[name]
        __import__(name)
