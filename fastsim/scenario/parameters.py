"""The fields of a scenario, one line each, for the help of everything that takes them."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Mapping

from fastsim.scenario.fields import FIELDS

PARAMETERS: Mapping[str, str] = {field.name: field.text for field in FIELDS}
"""Fields of a scenario and what they are."""


def documented(text: str | None, names: Iterable[str], more: Mapping[str, str]) -> str:
    """A docstring with one entry for each of the parameters, in the order of ``names``."""
    texts = {**PARAMETERS, **more}
    entries = (
        textwrap.fill(f"{name}: {texts[name]}", 110, initial_indent="    ", subsequent_indent="        ",
                      break_long_words=False, break_on_hyphens=False)
        for name in names
    )  # fmt: skip
    return "\n".join([inspect.cleandoc(text or ""), "", "Args:", *entries, ""])
