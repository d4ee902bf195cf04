"""The compiled vectors of episodes as Stable-Baselines3 and sb3-contrib take them, with the masks of MaskablePPO.

``MaskablePPO("MultiInputPolicy", SideBySide(SchedulingVectorEnv(256)))`` trains on 256 episodes; neither library comes
with an extra.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim.decisions.agents.episode_env import Observation
from fastsim.errors import FastsimError

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError:
    raise FastsimError("Stable-Baselines3 is not installed: pip install sb3-contrib") from None


class SideBySide(VecEnv):  # type: ignore[misc]  # what is checked must not depend on the library
    """A ``SchedulingVectorEnv`` or ``QueueVectorEnv``; of observations copies, because the library keeps them."""

    def __init__(self, many: Any) -> None:
        self.many = many
        super().__init__(many.num_envs, many.single_observation_space, many.single_action_space)

    def _kept(self, seen: Observation) -> Observation:
        self.seen = {name: values.copy() for name, values in seen.items()}
        return self.seen

    def reset(self) -> Observation:
        """Begin all episodes."""
        return self._kept(self.many.reset()[0])

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Take a decision in each episode; :meth:`step_wait` says what came of it."""
        self.stepped = self.many.step(actions)

    def step_wait(self) -> tuple[Observation, npt.NDArray[Any], npt.NDArray[np.bool_], list[dict[str, Any]]]:
        """Observations, rewards, which episodes are over (others began in their place), no information."""
        seen, reward__e, over__e, _, _ = self.stepped
        return self._kept(seen), reward__e, over__e, [{} for _ in over__e]

    def has_attr(self, attr_name: str) -> bool:
        """Whether episodes have an attribute: ``action_masks``."""
        return attr_name == "action_masks"

    def env_method(self, method_name: str, *_: Any, **__: Any) -> list[Any]:
        """What ``action_masks`` says in each episode."""
        return list(self.seen["mask"] == 1)

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """None for each episode: they share their state."""
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Nothing is set."""

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Any = None) -> list[bool]:
        """No episode is wrapped."""
        return [False] * self.num_envs

    def close(self) -> None:
        """Nothing is open."""
