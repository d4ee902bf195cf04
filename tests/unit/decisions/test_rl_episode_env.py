"""What environments have in common: seeds of episodes, masks and results, whatever a decision is."""

from __future__ import annotations

import sys
from unittest.mock import patch

import numpy as np
import pytest

from fastsim.errors import FastsimError, ScenarioError

pytest.importorskip("gymnasium", reason="environments need Gymnasium (the rl extra)")

from fastsim.decisions.rl_environment import SchedulingEnv
from fastsim.decisions.rl_queue_environment import QueueEnv

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


def test_without_gymnasium_the_extra_is_named() -> None:
    name = "fastsim.decisions.rl_episode_env"
    with patch.dict(sys.modules, gymnasium=None), pytest.raises(FastsimError, match=r"fastsim-gpu\[rl\]"):
        del sys.modules[name]
        __import__(name)
