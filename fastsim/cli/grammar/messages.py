"""The options -q, -v and --debug of every verb: messages beside the result, on standard error."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Iterable
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from typing import Any

import click

SCRIPT_FLAGS = ("init",)
"""Verbs that take the flags of another program, of which -v is one."""


@dataclass
class Messages:
    """The message options of one command; ``began_s`` is the performance counter at its begin, seconds."""

    debug: bool = field(default_factory=lambda: bool(os.environ.get("FASTSIM_TRACEBACK")))
    verbose: bool = False
    began_s: float = field(default_factory=time.perf_counter)
    defaults: str = ""
    """The file whose defaults hold, if there is one."""
    streams: list[str] = field(default_factory=list)
    """Paths of temporary files that stand for ``-``."""

    def named(self, text: str) -> str:
        """A message with ``-`` for these paths."""
        for path in self.streams:
            text = text.replace(path, "-")
        return text

    def effort(self) -> str:
        """One line: defaults, seconds, and the most memory that the process has held where the system counts it."""
        read = f"defaults of {self.defaults}; " if self.defaults else ""
        return f"{read}took {time.perf_counter() - self.began_s:.2f} s{_memory()}"


def _memory() -> str:
    try:
        import resource
    except ImportError:  # Windows
        return ""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return f", at most {most / (2**20 if sys.platform == 'darwin' else 2**10):,.0f} MiB"


def with_messages(verbs: Iterable[click.Command]) -> None:
    """Give all of these verbs, and those inside groups, the three options."""
    for verb in verbs:
        verb.params += _options(verb.name not in SCRIPT_FLAGS)
        if isinstance(verb, click.Group):
            with_messages(verb.commands.values())


def _options(with_verbose: bool) -> list[click.Parameter]:
    quiet = _flag("-q", "--quiet", "Only errors on standard error.", _quieten)
    verbose = _flag("-v", "--verbose", "Print seconds, memory and defaults at the end.", _note("verbose"))
    debug = _flag("", "--debug", "Show the traceback of what fails.", _note("debug"))
    return [quiet, verbose, debug] if with_verbose else [quiet, debug]


def _flag(short: str, name: str, text: str, callback: Any) -> click.Option:
    words = [word for word in (short, name) if word]
    return click.Option(words, is_flag=True, expose_value=False, is_eager=True, help=text, callback=callback)


def _note(name: str) -> Any:
    def noted(context: click.Context, _: click.Parameter, given: bool) -> None:
        if given and context.obj is not None:
            setattr(context.obj, name, True)

    return noted


def _quieten(context: click.Context, _: click.Parameter, given: bool) -> None:
    if given:
        nowhere = context.with_resource(io.StringIO())
        context.with_resource(redirect_stderr(nowhere))
