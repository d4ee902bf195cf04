"""All that is fuzzed, by name."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz import (
    checkpoints,
    claimed_devices,
    code_in_files,
    importers,
    kubernetes,
    names_in_files,
    physical_types,
    processes,
    readings,
    relations,
    saved_runs,
    scenario_fields,
    scenarios,
    services,
    tables,
)  # fmt: skip
from tests.fuzz.trial import Trial

TARGETS: dict[str, Callable[[], Trial]] = {
    **checkpoints.TARGETS, **importers.TARGETS, **kubernetes.TARGETS, **readings.TARGETS, **scenarios.TARGETS,
    **saved_runs.TARGETS, **services.TARGETS, **tables.TARGETS, **physical_types.TARGETS,
    **code_in_files.TARGETS, **names_in_files.TARGETS, **processes.TARGETS, **relations.TARGETS,
    **scenario_fields.TARGETS, **claimed_devices.TARGETS,
}  # fmt: skip
"""Functions that prepare the trial of each target, in the worker."""
