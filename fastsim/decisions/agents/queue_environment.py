"""Environments in which an agent serves a waiting line: which of its first jobs starts next, or none yet (Gymnasium).

>>> from fastsim.decisions.agents.queue_environment import QueueEnv
>>> env = QueueEnv("openb:4", "synth:openb?pods=40&seed={seed}&load=1.5", places=5)
>>> observation, info = env.reset(seed=3)
>>> observation["jobs"].shape, env.action_space
((5, 7), Discrete(6))
>>> observation, reward, over, cut, info = env.step(env.advice())

``import fastsim.decisions.agents.environment`` registers ``fastsim/Queue-v0``. A decision is due after an arrival and
after departures, as long as one of the first ``places`` jobs fits; the last action waits for the next event, and so
does a masked one. The policy chooses the node. An agent that starts the first job whenever it fits leaves the tables of
a run with ``queue="fifo"``.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from fastsim.decisions.agents.episode import QUEUE_REWARDS, QueueEpisode, queue_episode, refuse_mistakes, rewards
from fastsim.decisions.agents.episode_env import (
    EpisodeEnv,
    Observation,
    Reward,
    checked_actions,
    checked_count,
    outside,
)
from fastsim.decisions.agents.render import rendered_line, rendered_squares
from fastsim.engine.online.kernel_columns import read_only
from fastsim.engine.online.options import OnlineOptions
from fastsim.errors import ScenarioError
from fastsim.foundation.limits.forked_process import whole_process
from fastsim_ext.online.stepped_loop import NODE_FEATURES
from fastsim_ext.online.stepped_queue import JOB_FEATURES, LINE_FEATURES, restarted, served

# Gymnasium after the module that says which extra brings it.
# isort: split
import gymnasium
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

CLUSTER, JOBS = "openb:16", "synth:openb?pods=300&seed={seed}&load=1.2"
"""Generated openb jobs whose requests exceed the cluster, different for each seed."""
PLACES, MOST_PLACES = 10, 1000
"""Places of the line that can be chosen, and the most of them."""


def observation_space(nodes: int, places: int) -> spaces.Dict:
    """Observations of an agent: shares of capacity of each node, the first jobs, the line, and what may be done."""
    return spaces.Dict({
        "nodes": spaces.Box(0.0, 1.0, (nodes, len(NODE_FEATURES)), np.float32),
        "jobs": spaces.Box(-1.0, np.inf, (places, len(JOB_FEATURES)), np.float32),
        "line": spaces.Box(0.0, np.inf, (len(LINE_FEATURES),), np.float32),
        "mask": spaces.MultiBinary(places + 1),
    })  # fmt: skip


def _checked(places: int) -> int:
    if isinstance(places, bool) or not isinstance(places, Integral) or not 1 <= places <= MOST_PLACES:
        raise ScenarioError("places", places, f"1 to {MOST_PLACES}")
    return int(places)


@whole_process
class QueueEnv(EpisodeEnv[QueueEpisode]):
    """One cluster, one decision a step: a place of the line, or ``places`` to wait for the next event.

    Arguments are those of :class:`fastsim.decisions.agents.environment.SchedulingEnv`; ``policy`` chooses the node of a
    job. ``reward`` may also be ``waiting``: the hours that jobs have waited since the last decision, negative.
    """

    def __init__(
        self, cluster: Any = CLUSTER, workload: Any = JOBS, reward: Reward = "waiting", *, places: int = PLACES,
        policy: Any = "best_fit", gpu_pick: str | None = None, record: str = "summary", seed: int = 0,
        render_mode: str | None = None,
    ) -> None:  # fmt: skip
        self.places = _checked(places)
        scenario = {"cluster": cluster, "workload": workload, "policy": policy, "gpu_pick": gpu_pick}
        super().__init__(scenario, rewards(reward, QUEUE_REWARDS), record, seed, render_mode)
        space = observation_space(self.episode.nodes, places)
        self.observation_space = cast("spaces.Space[Observation]", space)
        self.action_space = spaces.Discrete(places + 1)

    def _new_episode(self, options: OnlineOptions) -> QueueEpisode:
        return queue_episode(self.scenario, self.reward__t, options, self.places)

    def render(self) -> Any:
        """The state as text (``ansi``) or as a picture (``rgb_array``); None without a mode."""
        now = self.episode
        if self.render_mode is None:
            return None
        if self.render_mode == "ansi":
            return rendered_line(now.node__nf, now.job__kf, now.line__f, now.mask)
        return rendered_squares(now.node__nf, now.job__kf, now.mask)

    def advice(self) -> int:
        """The action of ``fifo``: the first job if it fits, else wait."""
        return 0 if self.episode.mask[0] else self.places


@whole_process
class QueueVectorEnv(gymnasium.vector.VectorEnv[Observation, npt.NDArray[Any], npt.NDArray[Any]]):
    """Many clusters side by side, each with the jobs of its own seed: ``seed``, ``seed + 1``, ...

    Arguments as for :class:`QueueEnv`. One compiled call takes all steps. A finished episode begins again in the same
    step, with the same jobs; ``reset`` with a seed draws others. Observations are read-only arrays that the next step
    overwrites: copy those that you keep.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(
        self, num_envs: int = 64, cluster: Any = CLUSTER, workload: Any = JOBS, reward: Reward = "waiting", *,
        places: int = PLACES, policy: Any = "best_fit", gpu_pick: str | None = None, seed: int = 0,
    ) -> None:  # fmt: skip
        self.num_envs, self.seed, self.places = checked_count(num_envs), seed, _checked(places)
        self.scenario = {"cluster": cluster, "workload": workload, "policy": policy, "gpu_pick": gpu_pick}
        refuse_mistakes(self.scenario, seed)
        self.reward__t = rewards(reward, QUEUE_REWARDS)
        self._begin()
        self.single_observation_space = observation_space(self.episodes[0].nodes, places)
        self.single_action_space = spaces.Discrete(places + 1)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)

    def _begin(self) -> None:
        options = [OnlineOptions(seed=self.seed + e, record="none") for e in range(self.num_envs)]
        self.episodes = [queue_episode(self.scenario, self.reward__t, option, self.places) for option in options]
        self.serving = [one.serving for one in self.episodes]
        self.nodes__enf = np.stack([one.node__nf for one in self.episodes])
        self.jobs__ekf = np.stack([one.job__kf for one in self.episodes])
        self.line__ef = np.stack([one.line__f for one in self.episodes])
        self.mask__ea = np.stack([one.mask for one in self.episodes])
        self.reward__e, self.over__e = np.zeros(self.num_envs), np.zeros(self.num_envs, np.uint8)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin all episodes; with a seed, with other jobs."""
        first = next((one for one in seed if one is not None), None) if isinstance(seed, list) else seed
        super().reset(seed=first)
        if first is None or first == self.seed:
            restarted(self.serving, self.nodes__enf, self.jobs__ekf, self.line__ef, self.mask__ea)
        else:
            self.seed = first
            self._begin()
        return self._observation(), {}

    def step(
        self, actions: npt.NDArray[Any]
    ) -> tuple[Observation, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        """Start a job or wait in each cluster."""
        place__e = checked_actions(actions, self.num_envs, self.places)
        try:
            served(self.serving, place__e, self.nodes__enf, self.jobs__ekf, self.line__ef, self.mask__ea,
                   self.reward__e, self.over__e)  # fmt: skip
        except IndexError:
            raise outside(place__e, QueueEnv.least, self.places) from None
        over, cut = self.over__e.astype(np.bool_), np.zeros(self.num_envs, np.bool_)
        return self._observation(), self.reward__e.copy(), over, cut, {}

    def advice(self) -> npt.NDArray[np.int64]:
        """The action of ``fifo`` in each cluster."""
        return np.where(self.mask__ea[:, 0] > 0, 0, self.places)

    def _observation(self) -> Observation:
        # The next step writes changed cells only, so that a write by the agent would persist.
        arrays: dict[str, npt.NDArray[Any]] = {
            "nodes": self.nodes__enf,
            "jobs": self.jobs__ekf,
            "line": self.line__ef,
            "mask": self.mask__ea,
        }
        return read_only(arrays)
