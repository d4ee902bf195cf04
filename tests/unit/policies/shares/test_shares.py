"""Policies for jobs: parameters, text, and the rounds they ask for."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from fastsim.engine.shares.plan import RoundPolicy
from fastsim.errors import PolicyError
from fastsim.policies import registry
from fastsim.policies.shares.allox import Allox
from fastsim.policies.shares.fifo import Fifo
from fastsim.policies.shares.gandiva import Gandiva
from fastsim.policies.shares.isolated import Isolated
from fastsim.policies.shares.max_sum_throughput import MaxSumThroughput
from fastsim.policies.shares.proportional import Proportional
from tests.views import setting

POLICIES: dict[str, type[Any]] = {
    "allox": Allox,
    "fifo": Fifo,
    "gandiva": Gandiva,
    "isolated": Isolated,
    "proportional": Proportional,
}


@pytest.mark.parametrize("name", POLICIES)
def test_descriptions_are_complete(name: str) -> None:
    described = registry.describe(name)
    assert described.title.endswith(".") and ("share[j, g] =" in described.text or "share[c, g] =" in described.text)
    assert all(parameter.text for parameter in described.parameters)
    assert described.citation.startswith("@")
    assert str(POLICIES[name]()) == name


def test_policies_are_written_as_they_are_parsed() -> None:
    assert str(Fifo(mode="packed")) == "fifo(mode=packed)"
    assert str(Allox(alpha=0.5, allox_compat=True)) == "allox(alpha=0.5, allox_compat=True)"
    assert str(Isolated(per_gpu=False)) == "isolated(per_gpu=False)"


@pytest.mark.parametrize(
    ("policy", "pairs", "visit", "strict"),
    [
        (Fifo(), False, "shuffled", True),
        (Fifo(mode="perf"), False, "fastest", True),
        (Fifo(mode="packed"), True, "fastest", True),
        (Allox(), False, "fastest", False),
        (Gandiva(), True, "fastest", False),
        (Isolated(), False, "shuffled", False),
        (Proportional(), False, "shuffled", False),
    ],
)
def test_rounds(policy: RoundPolicy, pairs: bool, visit: str, strict: bool) -> None:
    plan = policy.begin(setting([1], [[1]]))
    assert (plan.pairs, plan.visit, plan.strict) == (pairs, visit, strict)


@pytest.mark.parametrize(
    ("cls", "parameters", "words"),
    [
        (Fifo, {"mode": "fast"}, "policy fifo, parameter mode: found 'fast', expected one of base, perf, packed"),
        (Fifo, {"fifo_compat": 1}, "parameter fifo_compat: found 1, expected True or False"),
        (Fifo, {"mode": "perf", "fifo_compat": True}, "expected true with mode=base or packed only"),
        (Allox, {"alpha": 1.5}, "policy allox, parameter alpha: found 1.5, expected a number from 0 to 1"),
        (Allox, {"alpha": "all"}, "parameter alpha: found 'all'"),
        (Isolated, {"per_gpu": "yes"}, "policy isolated, parameter per_gpu: found 'yes'"),
    ],
)
def test_wrong_parameters_are_refused(cls: type[Any], parameters: dict[str, object], words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        cls(**parameters)


def test_deadlines_do_not_wait_for_an_allocation() -> None:
    assert not MaxSumThroughput().begin(setting([1], [[1]])).prompt
    assert MaxSumThroughput(deadlines=True).begin(setting([1], [[1]])).prompt


def test_a_policy_for_small_jobs_says_so_before_the_run() -> None:
    assert Allox().begin(setting([1], [[1]])).max_num_gpu == 1


def test_describing_them_imports_no_tables() -> None:
    modules = "; ".join(f"import {cls.__module__}" for cls in POLICIES.values())
    code = f"import sys; {modules}; assert not {{'numpy', 'scipy', 'polars', 'pyarrow'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
