"""Whether a policy text that came from a file names code to import: files are data, and run nothing unless allowed."""

from __future__ import annotations

import re
from typing import Any

from fastsim.errors import ScenarioError, short

IMPORTING = re.compile(r"\bpython\b")
"""The one policy that imports what its text names."""


def refuse_user_code(policy: Any, where: str, allowed: bool) -> None:
    """ScenarioError if the text of a policy names code of the user's and that is not ``allowed``; objects may."""
    if isinstance(policy, str) and not allowed and IMPORTING.search(policy):
        expected = "a policy that imports no code, because files are data"
        raise ScenarioError(f"{where}: policy", short(policy, 120), expected, "allow it: --allow-code, allow_code=True")
