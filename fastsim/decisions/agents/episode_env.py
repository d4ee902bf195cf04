"""The common part of all environments: an episode for each reset, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from operator import index
from typing import Any, Generic, SupportsInt, TypeVar

import numpy as np
import numpy.typing as npt

from fastsim.decisions.agents.episode import Episode, refuse_mistakes
from fastsim.decisions.agents.render import RENDER_MODES, known_mode
from fastsim.engine.online.options import OnlineOptions
from fastsim.engine.result import Result
from fastsim.errors import FastsimError, PolicyError, ScenarioError, kind_of
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.limits.knobs import EPISODES

try:
    import gymnasium
except ImportError:
    raise FastsimError('environments need the rl extra: pip install "fastsim-gpu[rl]"') from None

Observation = dict[str, npt.NDArray[Any]]
Reward = str | Mapping[str, float]
OneEpisode = TypeVar("OneEpisode", bound=Episode)


def checked_action(action: Any, least: int, most: int) -> int:
    """The number of an action; PolicyError for anything but a whole number from ``least`` to ``most``."""
    try:
        number = least - 1 if isinstance(action, bool) else index(action)
    except TypeError:
        number = least - 1
    if not least <= number <= most:
        raise PolicyError("action", kind_of(action), _numbers(most))
    return number


def checked_actions(actions: Any, count: int, most: int) -> npt.NDArray[np.int64]:
    """The numbers of the actions of so many environments; PolicyError for arrays of other kinds and shapes."""
    try:
        array = np.asarray(actions)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if array.dtype.kind not in "iu" or array.shape != (count,):
        raise PolicyError("actions", kind_of(actions), f"an array of {count}, each {_numbers(most)}")
    return np.ascontiguousarray(array, np.int64)


def outside(actions: npt.NDArray[np.int64], least: int, most: int) -> PolicyError:
    """The error that names the first environment whose action is not from ``least`` to ``most``."""
    e = int(((actions < least) | (actions > most)).argmax())
    return PolicyError(f"action of environment {e}", int(actions[e]), _numbers(most))


def _numbers(most: int) -> str:
    return f"a whole number from 0 to {most}"


def checked_count(num_envs: Any) -> int:
    """The number of environments of a vector, a whole number of 1 or more."""
    if isinstance(num_envs, bool) or not isinstance(num_envs, Integral) or num_envs < 1:
        raise ScenarioError("num_envs", kind_of(num_envs), "a whole number of 1 or more")
    EPISODES.refuse(int(num_envs))
    return int(num_envs)


@whole_process
class EpisodeEnv(gymnasium.Env[Observation, SupportsInt], Generic[OneEpisode]):
    """One cluster, one decision a step; subclasses say how an episode begins, how it looks and what the spaces are."""

    least = 0
    """The smallest action."""
    metadata = {"render_modes": [*RENDER_MODES], "render_fps": 10}  # noqa: RUF012  (Gymnasium's own declaration)

    def __init__(
        self, scenario: Mapping[str, Any], reward__t: npt.NDArray[np.float64], record: str, seed: int,
        render_mode: str | None,
    ) -> None:  # fmt: skip
        self.render_mode = known_mode(render_mode)
        refuse_mistakes(scenario, seed, record)
        self.scenario, self.reward__t, self.record, self.next_seed = scenario, reward__t, record, seed
        self.episode = self._new_episode(OnlineOptions(seed=seed, record=record))

    def _new_episode(self, options: OnlineOptions) -> OneEpisode:
        raise NotImplementedError

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; without a seed, its own is drawn from the generator of the last one."""
        super().reset(seed=seed)
        if seed is not None:
            self.next_seed = seed
        self.episode = self._new_episode(OnlineOptions(seed=self.next_seed, record=self.record))
        self.next_seed = int(self.np_random.integers(2**31))
        return self._observation(), self._info()

    def step(self, action: SupportsInt) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take a decision: observation, reward, whether the episode is over, False (not cut), information."""
        most = len(self.episode.mask) - 1
        reward = self.episode.step(checked_action(action, self.least, most))
        return self._observation(), reward, self.episode.over, False, self._info()

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """The actions that do something, by the name that agents with masks call."""
        return self.episode.mask.astype(np.bool_)

    def result(self) -> Result:
        """The result of the finished episode."""
        return self.episode.result()

    def _observation(self) -> Observation:
        return {name: values.copy() for name, values in self.episode.observed().items()}

    def _info(self) -> dict[str, Any]:
        return {"feasible": 0 if self.episode.over else self.episode.feasible()}
