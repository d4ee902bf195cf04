"""All that is fuzzed, by name."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz import checkpoints
from tests.fuzz.worker import Trial

TARGETS: dict[str, Callable[[], Trial]] = {**checkpoints.TARGETS}
"""Functions that prepare the trial of each target, in the worker."""
