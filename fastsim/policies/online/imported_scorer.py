"""The function that 'module:function' names, imported from the modules of Python or from the current folder.

The current folder is no place for modules: a folder of traces may hold files that have the name of a library. It comes
last in ``sys.path`` while a scorer is imported that is found nowhere else, and while a scorer from there runs, which
may import more. Where ``sys.path`` has the folder already, as in most notebooks, nothing changes.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from traceback import extract_tb
from typing import Any

_guard = Lock()
_users: Counter[str] = Counter()
"""Folders that stand in ``sys.path`` for a while, each with the number of its users; threads share one entry."""


def imported_scorer(place: str) -> object:
    """The object that ``module:name`` stands for; whatever the import of a module of the user's raises."""
    module, _, name = place.partition(":")
    folder = _current_folder()
    if folder is None or _is_found(module):
        return getattr(import_module(module), name)
    with importable(folder):
        value: object = getattr(import_module(module), name)
    return FolderScorer(value, folder) if callable(value) else value


def failed_import(module: str, error: BaseException) -> str:
    """The cause of a failure: the module or its attribute is missing, or its own code failed, with the line."""
    if isinstance(error, ModuleNotFoundError) and error.name and module.startswith(error.name):
        return f"no module {error.name!r}"
    if isinstance(error, AttributeError) and error.obj is sys.modules.get(module):
        return f"module {module!r} has no {error.name!r}"
    place = "" if isinstance(error, SyntaxError) else _last_line(error)
    return f"its import failed{place}: {type(error).__name__}: {error}"


def _last_line(error: BaseException) -> str:
    """The last place of the traceback that is a file."""
    frames = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    return f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""


class FolderScorer:
    """A scorer from a folder whose modules it may import while it runs; all else is asked of the scorer itself."""

    def __init__(self, scorer: Callable[..., Any], folder: str) -> None:
        self._scorer, self._folder = scorer, folder

    def __call__(self, *arguments: Any) -> Any:
        """The points of the nodes."""
        with importable(self._folder):
            return self._scorer(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scorer, name)

    def __repr__(self) -> str:
        return repr(self._scorer)


@contextmanager
def importable(folder: str) -> Iterator[None]:
    """Inside, modules are also looked for in this folder, after all other places."""
    with _guard:
        ours = folder in _users or folder not in sys.path
        if ours:
            _users[folder] += 1
            if _users[folder] == 1:
                sys.path.append(folder)
    try:
        yield
    finally:
        if ours:
            with _guard:
                _users[folder] -= 1
                if not _users[folder]:
                    del _users[folder]
                    if folder in sys.path:  # the user's code may have taken it out
                        sys.path.remove(folder)


def _current_folder() -> str | None:
    """The current folder; None if it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return None


def _is_found(module: str) -> bool:
    """Whether the package that this module is in is loaded, or found without the current folder."""
    package = module.partition(".")[0]
    if package in sys.modules:
        return True
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # it is there, and broken
        return True
