"""What policies for jobs have in common: parameters are checked, and the policy prints as it is written."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

from fastsim.errors import PolicyError


@dataclass(frozen=True)
class Checked:
    """A policy whose parameters take only the values that they list."""

    policy_name: ClassVar[str] = ""
    citation: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for item in fields(self):
            choices, value = item.metadata.get("choices", ()), getattr(self, item.name)
            if choices and value not in choices:
                raise PolicyError(self._place(item.name), repr(value), f"one of {', '.join(choices)}")
            if isinstance(item.default, bool) and not isinstance(value, bool):
                raise PolicyError(self._place(item.name), repr(value), "true or false")

    def _place(self, parameter: str) -> str:
        return f"policy {self.policy_name}, parameter {parameter}"

    def __str__(self) -> str:
        given = [
            f"{item.name}={getattr(self, item.name)}"
            for item in fields(self)
            if getattr(self, item.name) != item.default
        ]
        return f"{self.policy_name}({', '.join(given)})" if given else self.policy_name
