"""The terms of sort keys, for jobs in rounds and for pods that wait: one table for both, see
``fastsim.scenario.sort_keys``."""

from collections.abc import Iterable
from typing import Any

def terms(numbers: Iterable[int], claim: Any, yard: Any, level_s: Any) -> list[float]:
    """These terms of one claim: numbers by name, as in ``tests.reference.rounds.sort_keys``."""
