"""State of a run of adaptive jobs between two rounds as numbers and bytes: snapshot and restore."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fastsim_ext.adaptive.loop import AdaptiveLoop
from fastsim_ext.adaptive.training_job import LearnedPerformance, PlacedStepTimes

def record_types() -> dict[str, np.dtype[Any]]:
    """Types of stored records for NumPy, by the name of their struct."""

def snapshot(run: AdaptiveLoop, learned: LearnedPerformance) -> tuple[dict[str, Any], dict[str, bytes]]:
    """(numbers, bytes) by name: all that ``restore`` needs."""

def restore(
    run: AdaptiveLoop,
    learned: LearnedPerformance,
    placements: Mapping[int, PlacedStepTimes],
    numbers: Mapping[str, Any],
    parts: Mapping[str, Any],
) -> None:
    """Take over a snapshot in a run that has not begun; ``placements`` are those of the jobs that have GPUs, by id."""

def recorded_again(run: AdaptiveLoop, tasks: Sequence[Sequence[Any]], gpus: Sequence[int]) -> None:
    """Restore the records so far."""
