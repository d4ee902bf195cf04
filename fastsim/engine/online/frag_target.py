"""What fragmentation is measured against, as the compiled tables take it; worked out once for runs that share it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from fastsim.engine.online.kernel_columns import Columns, ModelIds, fresh_target, typical_columns
from fastsim.engine.online.memo_pool import memo_key

if TYPE_CHECKING:
    from fastsim.workload.typical_pods import TypicalPods

MOST = 8
"""Targets that are remembered, least recently used ones go first; one takes up to about a megabyte."""


def target(typical: TypicalPods, models: tuple[str, ...]) -> tuple[Columns, str]:
    """Columns of the target workload for a cluster with these GPU models, to be written to, and the key of a memo."""
    try:
        hash(typical)
    except TypeError:  # made by hand from lists
        columns, key = _known.__wrapped__(typical, models)
    else:
        columns, key = _known(typical, models)
    return fresh_target(columns), key


@lru_cache(maxsize=MOST)
def _known(typical: TypicalPods, models: tuple[str, ...]) -> tuple[Columns, str]:
    columns = typical_columns(typical, ModelIds(models))
    return columns, memo_key(columns)
