"""Gavel's names for its policies mean something here."""

from __future__ import annotations

import pytest

from fastsim.policies import registry
from fastsim.policies.shares.gavel_names import ORIGINAL_NAMES


def known(text: str) -> bool:
    """Whether the policy of a text is registered."""
    return text.partition("(")[0] in registry.names()


@pytest.mark.parametrize("name", [name for name, text in ORIGINAL_NAMES.items() if known(text)])
def test_a_name_is_a_round_policy(name: str) -> None:
    policy = registry.parse(ORIGINAL_NAMES[name])
    assert registry.describe(ORIGINAL_NAMES[name].partition("(")[0]).socket == "rounds"
    assert registry.parse(str(policy)) == policy


def test_no_two_names_mean_the_same() -> None:
    made = [str(registry.parse(text)) for text in ORIGINAL_NAMES.values() if known(text)]
    assert len(set(made)) == len(made) > 0
