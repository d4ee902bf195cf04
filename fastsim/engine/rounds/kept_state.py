"""States of the objects of policies in checkpoints: what ``state()`` returns, and what ``restore()`` makes of it."""

from __future__ import annotations

import json
from typing import Any

from fastsim.errors import FastsimError, PolicyError, kind_of

PLAIN = (bool, int, float, str)
EXPECTED = "a dict of values as JSON has them: texts as keys, numbers, texts, true, false, null, lists and dicts"


def kept_state(keeper: Any) -> dict[str, Any]:
    """The state of an allocator, a decider or estimates; PolicyError for one that a file would not give back."""
    name = type(keeper).__qualname__
    if not all(callable(getattr(keeper, method, None)) for method in ("state", "restore")):
        raise PolicyError("checkpoint", f"{name}, whose state cannot be stored", "one with state() and restore()")
    state = keeper.state()
    if not isinstance(state, dict):
        raise PolicyError(f"{name}: state()", kind_of(state), EXPECTED)
    try:
        same = json.loads(json.dumps(state)) == state
    except (TypeError, ValueError, RecursionError):
        same = False
    fault = None if same else _unkept(state, "")
    if fault is not None:
        raise PolicyError(f"{name}: state(){fault[0]}", kind_of(fault[1]), EXPECTED)
    return state


def _unkept(value: Any, place: str, depth: int = 0) -> tuple[str, Any] | None:
    """Place and value of the first part that JSON does not have; tuples come back as lists, which is known."""
    if value is None or isinstance(value, PLAIN):
        return None
    if depth == MOST_DEPTH or not isinstance(value, dict | list | tuple):
        return place, value
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in parts:
        inside = f"{place}[{key!r}]"
        if isinstance(value, dict) and not isinstance(key, str):
            return f"{place}: key", key
        fault = _unkept(part, inside, depth + 1)
        if fault is not None:
            return fault
    return None


MOST_DEPTH = 100
"""Lists inside of lists that a state may have; one that holds itself has more."""


def restored(keeper: Any, state: Any) -> None:
    """Give an object back its state; PolicyError if one of the user's cannot take it."""
    name = type(keeper).__qualname__
    try:
        answer = keeper.restore(state)
    except FastsimError:
        raise
    except Exception as error:
        if type(keeper).__module__.partition(".")[0] == "fastsim":
            raise  # the state is damaged
        found = f"{type(error).__name__}: {error}"
        raise PolicyError(f"{name}: restore()", found, "no error: it takes what state() returned") from error
    if answer is not None:
        raise PolicyError(f"{name}: restore()", kind_of(answer), "None: it changes the object itself")
