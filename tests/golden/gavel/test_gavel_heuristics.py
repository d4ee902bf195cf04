"""Policies without a solver answer every recorded call with the recorded shares, to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fastsim.engine.shares.plan import ShareAllocator
from fastsim.policies import registry
from fastsim.policies.registry import ORIGINAL_NAMES
from tests.golden.gavel.gavel_calls import Call, all_calls, answered, golden_setting, recorded_runs, sampled_calls

FAMILIES = {"allox", "fifo", "gandiva", "isolated", "proportional"}
"""Our policies that need no solver."""
POLICIES: dict[str, Any] = {
    name: registry.parse(text) for name, text in ORIGINAL_NAMES.items() if text.partition("(")[0] in FAMILIES
}
NEEDS_STEPS = {"allox"}
"""Policies that look at more than the kinds of jobs, which is all that ``replay`` knows of them."""


def assert_recorded(allocator: ShareAllocator, calls: Iterator[Call]) -> None:
    count = 0
    for call in calls:
        found = allocator.allocate(call.view)
        assert found is not None
        assert answered(found) == call.recorded, f"call {call.number}"
        count += 1
    assert count


def allocator(run: str) -> ShareAllocator:
    """The policy of a recorded run at its start."""
    started: ShareAllocator = POLICIES[run.partition("__")[2]].begin(golden_setting(run)).allocator
    return started


@pytest.mark.parametrize("run", recorded_runs("lp", ".alloc.parquet", set(POLICIES)))
def test_sampled_calls(run: str) -> None:
    assert_recorded(allocator(run), sampled_calls(run))


@pytest.mark.parametrize("run", recorded_runs("replay", ".parquet", set(POLICIES) - NEEDS_STEPS))
def test_all_calls(run: str) -> None:
    assert_recorded(allocator(run), all_calls(run))


def test_every_policy_was_recorded() -> None:
    runs = recorded_runs("lp", ".alloc.parquet", set(POLICIES))
    if not runs:
        pytest.skip("reference data not found (set FASTSIM_SHARED)")
    assert {run.partition("__")[2] for run in runs} == set(POLICIES)
