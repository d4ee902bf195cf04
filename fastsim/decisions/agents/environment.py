"""Environments for reinforcement learning: an agent chooses the node of each pod (Gymnasium; extra ``rl``).

>>> from fastsim.decisions.agents.environment import SchedulingEnv
>>> env = SchedulingEnv("openb:16", "synth:openb?pods=50&seed={seed}&tune=1.2&tune_seed={seed}", reward="fragmentation")
>>> observation, info = env.reset(seed=3)
>>> observation["nodes"].shape, int(observation["mask"].sum()) == info["feasible"]
((16, 6), True)
>>> observation, reward, over, cut, info = env.step(int(observation["mask"].argmax()))

Importing this module registers ``fastsim/Placement-v0``, so that ``gymnasium.make`` and ``make_vec`` find it by name,
and ``fastsim/Queue-v0`` of :mod:`fastsim.decisions.agents.queue_environment`, whose agents serve a waiting line:

>>> import gymnasium
>>> gymnasium.make("fastsim/Placement-v0", cluster="openb:16").action_space
Discrete(16)

Episodes use the engine of all runs, with its rules for GPUs and pods: an episode has an ordinary result, equal to that
of a policy if the agent chooses the same nodes. Pods that fit nowhere are dropped without a step; a masked action drops
the pod.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from fastsim.decisions.agents.episode import PlacementEpisode, episode, refuse_mistakes, rewards
from fastsim.decisions.agents.episode_env import (
    EpisodeEnv,
    Observation,
    Reward,
    checked_actions,
    checked_count,
    outside,
)
from fastsim.decisions.agents.render import rendered_picture, rendered_text
from fastsim.engine.online.kernel_columns import read_only
from fastsim.engine.online.options import OnlineOptions
from fastsim.foundation.limits.forked_process import whole_process
from fastsim_ext.online.stepped_loop import NODE_FEATURES, POD_FEATURES, stepped

# Gymnasium after the module that says which extra brings it.
# isort: split
import gymnasium
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

PLACEMENT = "fastsim/Placement-v0"
"""Name of the environment in Gymnasium's registry."""
QUEUE = "fastsim/Queue-v0"
"""Name of the environment of waiting lines, whose module is loaded when it is made."""
PODS = "synth:openb?pods=500&seed={seed}&tune=1.3&tune_seed={seed}"
"""Generated openb pods that fill the cluster, different for each seed."""


def observation_space(nodes: int) -> spaces.Dict:
    """Observations of an agent: shares of capacity of each node, the pod's request, and the nodes that can host it."""
    return spaces.Dict({
        "nodes": spaces.Box(0.0, 1.0, (nodes, len(NODE_FEATURES)), np.float32),
        "pod": spaces.Box(0.0, np.inf, (len(POD_FEATURES),), np.float32),
        "mask": spaces.MultiBinary(nodes),
    })  # fmt: skip


@whole_process
class SchedulingEnv(EpisodeEnv[PlacementEpisode]):
    """One cluster, one pod a step.

    ``cluster`` and ``workload`` are texts or objects as in :func:`fastsim.simulate`; ``{seed}`` in a text stands for
    the seed of the episode. ``reward`` is the change by a decision of ``placed`` (pods), ``allocation`` (GPUs),
    ``fragmentation`` (fragmented GPUs, negative) or ``power`` (kW, negative), or weights of several of them. ``policy``
    picks the GPU in the node (``gpu_pick`` overrides) and answers ``advice``. With ``record`` other than ``summary``
    the result has timeline, placements and jobs. ``render_mode`` is None or one of ``RENDER_MODES``.
    """

    least = -1
    """The policy's own choice."""

    def __init__(
        self, cluster: Any = "openb:128", workload: Any = PODS, reward: Reward = "fragmentation", *,
        policy: Any = "best_fit", gpu_pick: str | None = None, record: str = "summary", seed: int = 0,
        render_mode: str | None = None,
    ) -> None:  # fmt: skip
        scenario = {"cluster": cluster, "workload": workload, "policy": policy, "gpu_pick": gpu_pick}
        super().__init__(scenario, rewards(reward), record, seed, render_mode)
        self.observation_space = cast("spaces.Space[Observation]", observation_space(self.episode.nodes))
        self.action_space = spaces.Discrete(self.episode.nodes)

    def _new_episode(self, options: OnlineOptions) -> PlacementEpisode:
        return episode(self.scenario, self.reward__t, options)

    def render(self) -> Any:
        """The state as text (``ansi``) or as a picture (``rgb_array``); None without a mode."""
        now = self.episode
        if self.render_mode is None:
            return None
        if self.render_mode == "ansi":
            return rendered_text(now.node__nf, now.pod__f, now.mask)
        return rendered_picture(now.node__nf, now.mask)

    def advice(self) -> int:
        """The node that the policy would choose."""
        return self.episode.stepping.advice()


@whole_process
class SchedulingVectorEnv(gymnasium.vector.VectorEnv[Observation, npt.NDArray[Any], npt.NDArray[Any]]):
    """Many clusters side by side, each with the pods of its own seed: ``seed``, ``seed + 1``, ...

    Arguments as for :class:`SchedulingEnv`. One compiled call takes all steps. A finished episode begins again in the
    same step, with the same pods; ``reset`` with a seed draws others. Observations are read-only arrays that the next
    step overwrites: copy those that you keep.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(
        self, num_envs: int = 64, cluster: Any = "openb:128", workload: Any = PODS, reward: Reward = "fragmentation", *,
        policy: Any = "best_fit", gpu_pick: str | None = None, seed: int = 0,
    ) -> None:  # fmt: skip
        self.num_envs, self.seed = checked_count(num_envs), seed
        self.scenario = {"cluster": cluster, "workload": workload, "policy": policy, "gpu_pick": gpu_pick}
        refuse_mistakes(self.scenario, seed)
        self.reward__t = rewards(reward)
        self._begin()
        nodes = self.episodes[0].nodes
        self.single_observation_space, self.single_action_space = observation_space(nodes), spaces.Discrete(nodes)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)

    def _begin(self) -> None:
        options = (OnlineOptions(seed=self.seed + e, record="none") for e in range(self.num_envs))
        self.episodes = [episode(self.scenario, self.reward__t, option) for option in options]
        self.stepping = [one.stepping for one in self.episodes]
        self.nodes__enf = np.stack([one.node__nf for one in self.episodes])
        self.pod__ef = np.stack([one.pod__f for one in self.episodes])
        self.mask__en = np.stack([one.mask for one in self.episodes])
        self.reward__e, self.over__e = np.zeros(self.num_envs), np.zeros(self.num_envs, np.uint8)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin all episodes; with a seed, with other pods."""
        first = next((one for one in seed if one is not None), None) if isinstance(seed, list) else seed
        super().reset(seed=first)
        self.seed = self.seed if first is None else first
        self._begin()
        return self._observation(), {}

    def step(
        self, actions: npt.NDArray[Any]
    ) -> tuple[Observation, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        """Place a pod in each cluster."""
        most = self.mask__en.shape[1] - 1
        node__e = checked_actions(actions, self.num_envs, most)
        try:
            stepped(self.stepping, node__e, self.nodes__enf, self.pod__ef, self.mask__en, self.reward__e, self.over__e)
        except IndexError:
            raise outside(node__e, SchedulingEnv.least, most) from None
        return (
            self._observation(),
            self.reward__e.copy(),
            self.over__e.astype(np.bool_),
            np.zeros(self.num_envs, np.bool_),
            {},
        )

    def advice(self) -> npt.NDArray[np.int64]:
        """The node that the policy would choose in each cluster."""
        return np.array([one.advice() for one in self.stepping], np.int64)

    def _observation(self) -> Observation:
        # The next step writes changed cells only, so that a write by the agent would persist.
        return read_only({"nodes": self.nodes__enf, "pod": self.pod__ef, "mask": self.mask__en})


for name, module, single, vector in (
    (PLACEMENT, __name__, SchedulingEnv.__name__, SchedulingVectorEnv.__name__),
    (QUEUE, "fastsim.decisions.agents.queue_environment", "QueueEnv", "QueueVectorEnv"),
):
    if name not in gymnasium.registry:
        gymnasium.register(name, f"{module}:{single}", vector_entry_point=f"{module}:{vector}")
