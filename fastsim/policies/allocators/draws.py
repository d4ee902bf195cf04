"""The state of a ``random.Random`` as JSON values, so that a resumed run draws on where it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any


def kept_draws(stream: Random) -> list[Any]:
    """Where the stream stands."""
    version, words, spare = stream.getstate()
    return [version, list(words), spare]


def restored_draws(kept: Sequence[Any]) -> Random:
    """A stream that goes on from there."""
    version, words, spare = kept
    stream = Random()
    stream.setstate((version, tuple(words), spare))
    return stream
