"""Environments: steps of 64 clusters of 128 nodes in one compiled call, and of one environment on its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench.conftest import Timed

pytest.importorskip("gymnasium", reason="environments need Gymnasium (the rl extra)")

from fastsim.decisions.agents.environment import SchedulingEnv, SchedulingVectorEnv

ENVS, STEPS = 64, 200
CLUSTER, PODS = "openb:128", "synth:openb?pods=500&seed={seed}&tune=1.3&tune_seed={seed}"


def bench_vector_steps(timed: Timed) -> None:
    """Random agents in 64 clusters; pods come and go, and episodes begin again."""
    env, rng = SchedulingVectorEnv(ENVS, CLUSTER, PODS), np.random.default_rng(0)
    seen: Any = env.reset()[0]["mask"]

    def steps() -> Any:
        mask = seen
        for _ in range(STEPS):
            nodes = (rng.random(mask.shape, np.float32) * mask).argmax(1)
            mask = env.step(nodes)[0]["mask"]
        return mask

    assert timed(steps, items=ENVS * STEPS, budget=8.0, rounds=5).any()


def bench_single_steps(timed: Timed) -> None:
    """One environment, which always takes the first node that can host the pod."""
    env = SchedulingEnv(CLUSTER, PODS)

    def steps() -> float:
        seen, total = env.reset(seed=1)[0], 0.0
        for _ in range(STEPS):
            seen, reward, *_ = env.step(int(seen["mask"].argmax()))
            total += reward
        return total

    assert timed(steps, items=STEPS, budget=20.0) != 0
