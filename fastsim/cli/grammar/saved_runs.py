"""Verbs that read saved runs: values that no run writes are one error about their folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import click

from fastsim.errors import reading

P = ParamSpec("P")
R = TypeVar("R")

FAILED = "failed.json"
"""The file of a sweep's folder that lists its failed runs; a copy, because the sweep would load the engine."""
EDITED = (KeyError, AttributeError, TypeError, ValueError, IndexError, ZeroDivisionError)
"""Errors of these verbs in a folder that was changed by hand, where columns and types are as they were."""


def reads_saved_runs(verb: Callable[P, R]) -> Callable[P, R]:
    """The verb; it names folders in which something is not what a run wrote, and sweeps in which runs failed."""

    @wraps(verb)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        _warn_of_failed(_named(options))
        with reading(_folders(options), "what a run wrote, unchanged (--debug shows where)", EDITED):
            return verb(*args, **options)

    return checked


def _named(options: dict[str, Any]) -> list[Path]:
    named = options.get("folders") or (options.get("folder"),)
    return [Path(folder) for folder in named if isinstance(folder, Path | str)]


def _folders(options: dict[str, Any]) -> str:
    return ", ".join(map(str, _named(options)))


def _warn_of_failed(folders: Iterable[Path]) -> None:
    """Warn on standard error of sweeps whose failed runs are in no table and no chart."""
    for path in (folder / FAILED for folder in folders):
        if path.is_file():
            with reading(str(path), "what a sweep wrote", EDITED):
                count = len(json.loads(path.read_text()))
            runs = "1 run" if count == 1 else f"{count:,} runs"
            click.echo(f"fastsim: warning: {runs} of {path.parent} failed, see {path}; no mean has them", err=True)
