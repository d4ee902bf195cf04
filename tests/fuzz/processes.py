"""Commands in odd processes: any verb with any streams, or with any odd variables of the environment."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.cli.command_children import Child, played
from tests.cli.terminal import Outcome
from tests.cli.test_environment import USUAL, play
from tests.cli.test_grammar import VERBS
from tests.cli.test_process_streams import STATES, WORDS, words_of, write_places
from tests.fuzz import trial
from tests.fuzz.trial import Trial


def in_streams(places: dict[str, Path], folder: Path, seed: int) -> str:
    """Some verbs with streams in one state, beside the same verbs with all three."""
    draw = random.Random(f"streams {seed}")
    state, names = draw.choice([*STATES]), draw.sample([*VERBS], 8)
    children: dict[str, Child] = {}
    for name in ("usual", state):
        place = folder / str(len(children))
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        children[name] = Child(words_of(names, places, f"{place}/"), str(place), *STATES.get(name, ()))
    told = played(children, folder)
    odd = [(name, *both) for name, *both in zip(names, *told.values(), strict=True) if differ(name, *both)]
    assert not odd, (state, odd)
    return "valid"


def differ(verb: str, usual: Outcome, found: Outcome) -> bool:
    """Whether a command did something that the state of its streams does not explain.

    A command that writes its file to standard output, ``-``, refuses that if it is closed.
    """
    internal = "internal error" in found.err or "Traceback" in found.err
    refused = 2 if "-" in WORDS[verb] or not usual.out else 1
    return internal or found.code not in (usual.code, 1 if usual.out else 2, refused)


def with_variables(folder: Path, seed: int) -> str:
    """All commands, with some odd variables."""
    draw = random.Random(f"variables {seed}")
    names = draw.sample([*USUAL], draw.choice((1, 1, 2, 5)))
    shutil.rmtree(folder / "played", ignore_errors=True)
    (folder / "played").mkdir()
    play(folder / "played", {name: draw.choice(USUAL[name]) for name in names})
    return "valid"


def _streams() -> Trial:
    folder = trial.folder("streams")
    return partial(in_streams, write_places(folder), folder)


def _variables() -> Trial:
    return partial(with_variables, trial.folder("variables"))


TARGETS: dict[str, Callable[[], Trial]] = {"verbs in odd streams": _streams, "odd variables": _variables}
"""Trials by name."""
