"""A policy as the text that makes it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


def spelled(policy: Any) -> str:
    """The name, and the parameters that are not as they are by default."""
    given = [f"{item.name}={getattr(policy, item.name)}" for item in fields(policy)
             if getattr(policy, item.name) != item.default]  # fmt: skip
    return f"{policy.policy_name}({', '.join(given)})" if given else str(policy.policy_name)
