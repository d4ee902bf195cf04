"""Vectors of episodes as Stable-Baselines3 takes them, with a stand-in for its base class: few have the library."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from fastsim.errors import FastsimError

pytest.importorskip("gymnasium", reason="environments need Gymnasium (the rl extra)")

from fastsim.decisions.agents.environment import SchedulingVectorEnv
from fastsim.decisions.agents.queue_environment import QueueVectorEnv

NAME = "fastsim.decisions.agents.stable_baselines"


class Base:
    """What Stable-Baselines3's VecEnv does with its arguments."""

    def __init__(self, num_envs: int, observation_space: Any, action_space: Any) -> None:
        self.num_envs, self.observation_space, self.action_space = num_envs, observation_space, action_space


def side_by_side(monkeypatch: pytest.MonkeyPatch, library: ModuleType | None) -> Any:
    """The class, loaded with this library in place of the real one."""
    monkeypatch.setitem(sys.modules, "stable_baselines3.common.vec_env", library)
    monkeypatch.setitem(sys.modules, "stable_baselines3.common", library)
    monkeypatch.setitem(sys.modules, "stable_baselines3", library)
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    try:
        return import_module(NAME).SideBySide
    finally:
        sys.modules.pop(NAME, None)


@pytest.mark.parametrize(
    ("kind", "jobs"), [(SchedulingVectorEnv, "synth:openb?pods=9"), (QueueVectorEnv, "synth:openb?pods=9&load=3")]
)
def test_observations_stay_what_they_were(kind: Any, jobs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    library = ModuleType("vec_env")
    library.VecEnv = Base  # type: ignore[attr-defined]
    many = kind(2, "openb:3", jobs)
    env = side_by_side(monkeypatch, library)(many)
    assert (env.num_envs, env.action_space) == (2, many.single_action_space)
    seen = env.reset()
    before, overs = {name: values.copy() for name, values in seen.items()}, np.zeros(2, bool)
    assert env.has_attr("action_masks") and not env.has_attr("seed")
    for _ in range(40):
        masks = np.stack(env.env_method("action_masks"))
        assert masks.dtype == bool and masks.any(axis=1).all()
        env.step_async(masks.argmax(axis=1))
        now, reward, over, told = env.step_wait()
        overs |= over
        assert env.observation_space.contains({name: values[0] for name, values in now.items()})
    assert all(np.array_equal(seen[name], before[name]) for name in seen)
    assert reward.shape == (2,) and told == [{}, {}] and overs.all()
    assert (env.get_attr("render_mode"), env.env_is_wrapped(Base)) == ([None, None], [False, False])
    env.set_attr("x", 1)
    env.close()


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FastsimError, match="pip install sb3-contrib"):
        side_by_side(monkeypatch, None)
