"""Verbs that read saved runs: values that no run writes are one error about their folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from fastsim.errors import reading

P = ParamSpec("P")
R = TypeVar("R")

EDITED = (KeyError, AttributeError, TypeError, ValueError, IndexError, ZeroDivisionError)
"""Errors of these verbs in a folder that was changed by hand, where columns and types are as they were."""


def reads_saved_runs(verb: Callable[P, R]) -> Callable[P, R]:
    """The verb; it names folders in which something is not what a run wrote."""

    @wraps(verb)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        with reading(_folders(options), "what a run wrote, unchanged (--debug shows where)", EDITED):
            return verb(*args, **options)

    return checked


def _named(options: dict[str, Any]) -> list[Path]:
    named = options.get("folders") or (options.get("folder"),)
    return [Path(folder) for folder in named if isinstance(folder, Path | str)]


def _folders(options: dict[str, Any]) -> str:
    return ", ".join(map(str, _named(options)))
