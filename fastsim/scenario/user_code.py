"""Whether a policy that came from a file imports code: files are data, and run nothing unless allowed.

Policies are made above this package, and only what was made says what it imports: a text is read by Python's parser,
which takes many letters for one. :mod:`fastsim.policies.registry` therefore registers the answer here when it is
loaded; :mod:`fastsim.simulation.scenario_checks` loads it. Until then every policy from a file is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastsim.errors import ScenarioError, short

ALLOW = "allow it: --allow-code, allow_code=True"
NO_CODE = "a policy that imports no code, because files are data"
ANSWERS: list[Callable[[str], bool]] = []
"""Functions that answer whether a policy's text names code to import; one is enough to refuse it."""


def names_user_code(text: str) -> bool:
    """Whether the policy that this text stands for imports code of the user's; yes while there is no answer."""
    return not ANSWERS or any(answer(text) for answer in ANSWERS)


def refuse_user_code(policy: Any, where: str, allowed: bool) -> None:
    """ScenarioError if a policy from a file is no text, or if it names code of the user's that is not ``allowed``."""
    if not isinstance(policy, str):
        raise ScenarioError(f"{where}: policy", short(policy, 120), "a text such as 'fgd' or '0.9*fgd + 0.1*pwr'")
    if not allowed and names_user_code(policy):
        raise ScenarioError(f"{where}: policy", short(policy, 120), NO_CODE, ALLOW)
