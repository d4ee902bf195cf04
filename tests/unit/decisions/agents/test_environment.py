"""Environments: Gymnasium's own checker, runs that equal the engine's, vectors that equal single ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

import fastsim as fs

pytest.importorskip("gymnasium", reason="environments need Gymnasium (the rl extra)")

import gymnasium
from gymnasium.utils.env_checker import check_env

from fastsim.decisions.agents.environment import SchedulingEnv, SchedulingVectorEnv
from fastsim.engine.online.plan import KERNELS, NodeColumns, PodRequest
from fastsim.engine.result import FRAMES
from tests.reference.online.devices import SCORER_STREAM, bounded

FGD = KERNELS.index("fgd")

CLUSTER = "openb:12"
STAYING = "synth:openb?pods=60&seed={seed}&tune=1.4&tune_seed={seed}"
LEAVING = "synth:openb?pods=120&seed={seed}"


def environment(policy: str = "best_fit", **rest: Any) -> SchedulingEnv:
    return SchedulingEnv(CLUSTER, STAYING, policy=policy, record="all", **rest)


def same(found: fs.Result, expected: fs.Result) -> None:
    """The same tables, to the last bit."""
    for name in FRAMES:
        assert found.frames[name].equals(expected.frames[name]), name


def simulated(policy: Any, seed: int, pods: str = STAYING) -> fs.Result:
    """The engine's own run of the same pods."""
    return fs.simulate(CLUSTER, pods.replace("{seed}", str(seed)), policy, seed=seed, record="all")


def test_gymnasium_finds_nothing_to_complain_about() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*(Inf|infinity|not within|flatten).*")
        check_env(environment(), skip_render_check=True)


@pytest.mark.parametrize("mode", [None, "ansi", "rgb_array"])
def test_an_environment_by_name_passes_every_check_in_every_mode(mode: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*(Inf|infinity|not within|flatten).*")
        env = gymnasium.make("fastsim/Placement-v0", cluster=CLUSTER, workload=STAYING, render_mode=mode)
        check_env(env.unwrapped)


def test_an_environment_by_the_name_of_its_module() -> None:
    env = gymnasium.make("fastsim.decisions.agents.environment:fastsim/Placement-v0", cluster=CLUSTER, workload=STAYING)
    assert isinstance(env.unwrapped, SchedulingEnv) and env.unwrapped.spec is not None


def test_many_by_name_are_one_compiled_vector_or_single_ones() -> None:
    given: dict[str, Any] = {"cluster": CLUSTER, "workload": STAYING}
    vector = gymnasium.make_vec("fastsim/Placement-v0", num_envs=3, **given)
    assert isinstance(vector, SchedulingVectorEnv)
    singles = gymnasium.make_vec("fastsim/Placement-v0", num_envs=3, vectorization_mode="sync", **given)
    ours, theirs = vector.reset(seed=7)[0], singles.reset(seed=7)[0]  # seeds 7, 8 and 9 in both
    for _ in range(5):
        for name in ours:
            assert np.array_equal(ours[name], theirs[name]), name
        actions = ours["mask"].argmax(axis=1)
        ours, theirs = vector.step(actions)[0], singles.step(actions)[0]


def test_a_mode_that_is_none_is_refused() -> None:
    with pytest.raises(fs.ScenarioError, match="render_mode: found 'human', expected one of ansi, rgb_array"):
        environment(render_mode="human")


def played(env: SchedulingEnv, seed: int, agent: Callable[[SchedulingEnv], int]) -> fs.Result:
    """The result of an episode with this agent."""
    env.reset(seed=seed)
    over = False
    while not over:
        *_, over, _, _ = env.step(agent(env))
    return env.result()


@pytest.mark.parametrize("policy", ["fgd", "random", "pwr", "0.9*fgd + 0.1*pwr"])
@pytest.mark.parametrize("pods", [STAYING, LEAVING])
def test_an_agent_that_takes_advice_leaves_what_the_policy_leaves(policy: str, pods: str) -> None:
    env = SchedulingEnv(CLUSTER, pods, policy=policy, record="all")
    same(played(env, 5, SchedulingEnv.advice), simulated(policy, 5, pods))


def test_a_greedy_agent_is_fgd() -> None:
    """The agent looks at the points of every node that is open to it; the engine searches what it has kept."""

    def greedy(env: SchedulingEnv) -> int:
        one = env.episode
        points = [one.run.select.raw(FGD, 0, 0, n, one.stepping.pod_class)[0] if one.mask[n] else -1
                  for n in range(one.nodes)]  # fmt: skip
        return int(np.argmax(points))

    same(played(environment("fgd"), 2, greedy), simulated("fgd", 2))


def test_a_random_agent_with_the_engine_s_draws_is_random() -> None:
    """Draws come from the readable twin of the generator."""

    def drawn(env: SchedulingEnv) -> int:
        one = env.episode
        place = bounded(6, SCORER_STREAM, one.run.select.attempts, one.stepping.count)
        return int(np.flatnonzero(one.mask)[place])

    same(played(environment("random"), 6, drawn), simulated("random", 6))


def test_whatever_an_agent_does_the_engine_does_the_same() -> None:
    """A random agent's nodes, played again by a scorer in Python, give the same run."""
    rng = np.random.default_rng(1)
    taken: list[int] = []

    def anywhere(env: SchedulingEnv) -> int:
        taken.append(int(rng.choice(np.flatnonzero(env.action_masks()))))
        return taken[-1]

    found = played(environment(), 3, anywhere)

    def scorer(nodes: NodeColumns, pod: PodRequest) -> npt.NDArray[np.int64]:
        points = np.zeros(len(nodes.cpu_free), np.int64)
        points[next(turn)] = 1
        return points

    # A scorer is not called if one node alone can host the pod.
    several = [node for node, alone in zip(taken, _alone(taken), strict=True) if not alone]
    turn = iter(several)
    same(found, simulated(fs.policies.PythonScorer(scorer, gpu_pick="best"), 3))


def _alone(taken: list[int]) -> list[bool]:
    again = environment()
    again.reset(seed=3)
    found = []
    for node in taken:
        found.append(again.episode.stepping.count == 1)
        again.step(node)
    return found


def test_a_masked_action_drops_the_pod() -> None:
    env = environment(reward="placed")
    seen, _ = env.reset(seed=1)
    over, refused = False, 0
    while not over:
        closed = np.flatnonzero(seen["mask"] == 0)
        refused += bool(len(closed))
        seen, reward, over, _, _ = env.step(int(closed[0]) if len(closed) else 0)
        assert reward == (0.0 if len(closed) else 1.0)
    result = env.result()
    assert refused and result.summary["pods_unplaced"].item() >= refused
    with pytest.raises(fs.ScenarioError, match="over"):
        env.step(0)
    with pytest.raises(fs.ScenarioError, match="goes on"):
        environment().result()


@pytest.mark.parametrize(
    ("reward", "column", "scale"), [("allocation", "gpu_milli_alloc", 1e-3), ("placed", "pods_running", 1.0),
                                    ("power", "power_w", -1e-3), ("fragmentation", "frag_milli", -1e-3)]
)  # fmt: skip
def test_rewards_add_up_to_the_change_of_the_timeline(reward: str, column: str, scale: float) -> None:
    env = environment(reward=reward)
    env.reset(seed=4)
    gained, over = [], False
    while not over:
        _, now, over, _, _ = env.step(env.advice())
        gained.append(now)
    timeline = env.result().timeline[column]
    # Pods stay, so all changes but that of the first pod stand between two rows; sums of numbers below 1,000.
    assert sum(gained[1:]) == pytest.approx(scale * (timeline[-1] - timeline[0]), abs=1e-8)


def test_a_vector_is_its_environments_side_by_side() -> None:
    many = SchedulingVectorEnv(3, CLUSTER, STAYING, "power", seed=7)
    alone = [SchedulingEnv(CLUSTER, STAYING, "power", seed=7 + e) for e in range(3)]
    seen, _ = many.reset(seed=7)
    single = [env.reset(seed=7 + e)[0] for e, env in enumerate(alone)]
    over = np.zeros(3, bool)
    while not over.all():
        assert all((seen[key][e] == single[e][key]).all() for e in range(3) for key in seen if not over[e])
        actions = many.advice()
        seen, rewards, ended, _, _ = many.step(actions)
        for e in np.flatnonzero(~over):
            single[e], reward, done, _, _ = alone[e].step(int(actions[e]))
            assert (reward, done) == (rewards[e], ended[e])
            over[e] = done


def test_an_episode_that_is_over_begins_again_as_it_did() -> None:
    many = SchedulingVectorEnv(2, CLUSTER, STAYING, seed=1)
    seen, _ = many.reset()
    trails: list[list[float]] = [[], []]
    for turn in range(2):
        ended = np.zeros(2, bool)
        while not ended[0]:
            seen, rewards, ended, _, _ = many.step(seen["mask"].argmax(1))
            trails[turn].append(float(rewards[0]))
    assert trails[0] == trails[1] and len(trails[0]) > 10
    with pytest.raises(ValueError, match="read-only"):
        seen["nodes"][0] = 1


def test_mistakes_are_named() -> None:
    with pytest.raises(fs.ScenarioError, match="did you mean 'power'"):
        environment(reward="powr")
    with pytest.raises(fs.PolicyError, match=r"action: found 99 .int., expected a whole number from 0 to"):
        environment().step(99)


def test_a_workload_without_decisions_is_refused() -> None:
    request = {"cpu_milli": [1 << 30], "memory_mib": [1], "num_gpu": [0], "gpu_milli": [0]}
    pod = {"pod_id": [0], "submit_s": [0.0], **request}
    with pytest.raises(fs.ScenarioError, match="no pod that any node can host"):
        SchedulingEnv("uniform?nodes=1", fs.Workload.from_arrow(pl.DataFrame(pod)))
