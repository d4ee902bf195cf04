"""On any cluster and any pods, agents that act like a policy leave what the engine's run of that policy leaves."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import fastsim as fs

pytest.importorskip("gymnasium", reason="environments need Gymnasium (the rl extra)")

from fastsim.decisions.agents.environment import SchedulingEnv
from fastsim.engine.online.plan import KERNELS
from fastsim.engine.result import FRAMES
from tests.reference.online.devices import SCORER_STREAM, bounded
from tests.strategies import clusters, workloads

FGD = KERNELS.index("fgd")


def greedy(env: SchedulingEnv, _: int) -> int:
    """The node with the most points for FGD, the first of several."""
    one = env.episode
    asked = one.stepping.pod_class
    points = [one.run.select.raw(FGD, 0, 0, n, asked)[0] if one.mask[n] else -1 for n in range(one.nodes)]
    return int(np.argmax(points))


def drawn(env: SchedulingEnv, seed: int) -> int:
    """Any node, by the draws that the engine makes for `random`: as its readable twin says."""
    one = env.episode
    place = bounded(seed, SCORER_STREAM, one.run.select.attempts, one.stepping.count)
    return int(np.flatnonzero(one.mask)[place])


@pytest.mark.spread(1)
@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.PodTooLarge")
@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.RunWarning")
@pytest.mark.parametrize(("policy", "agent"), [("fgd", greedy), ("random", drawn)])
@settings(max_examples=30)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_an_agent_like_a_policy_is_that_policy(
    policy: str, agent: Callable[[SchedulingEnv, int], int], data: st.DataObject, seed: int
) -> None:
    cluster = data.draw(clusters(churn=False))
    workload = data.draw(workloads(cluster))
    try:
        env = SchedulingEnv(cluster, workload, policy=policy, record="all")
    except fs.ScenarioError as error:
        assert "no pod that any node can host" in str(error)
        return
    env.reset(seed=seed)
    over = False
    while not over:
        *_, over, _, _ = env.step(agent(env, seed))
    found, expected = env.result(), fs.simulate(cluster, workload, policy, seed=seed, record="all")
    for name in FRAMES:
        assert found.frames[name].equals(expected.frames[name]), name
