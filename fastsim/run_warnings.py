"""What the user of a run should know before believing the result."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastsim.oversize import Oversized
    from fastsim.workload import Workload

Message = tuple[type[Warning], str]
"""A warning that is yet to be given."""

NOT_HONOURED = ("min_replicas", "max_replicas")
"""Pod columns that ask for more than the online engine looks at so far."""


class RunWarning(UserWarning):
    """Something about a run that its user should know before believing the result."""


class PodTooLarge(RunWarning):
    """Some pods are larger than any node of the cluster, so they will stay unplaced."""


class ColumnIgnored(RunWarning):
    """The workload has a column that asks for something the engine does not look at."""


def large_pods(oversized: Oversized) -> list[Message]:
    """What to say of pods that fit nowhere."""
    if not oversized.count:
        return []
    subject = "1 pod is" if oversized.count == 1 else f"{oversized.count:,} pods are"
    text = f"{subject} larger than any node and stayed unplaced, for example {oversized.example}"
    return [(PodTooLarge, text)]


def ignored_columns(workload: Workload) -> list[Message]:
    """What to say of columns that are not looked at."""
    ignored = [name for name in NOT_HONOURED if name in workload.columns]
    text = f"{workload.name}: the online engine does not look at {', '.join(ignored)}"
    return [(ColumnIgnored, text)] if ignored else []


def warn(messages: Iterable[Message], depth: int) -> None:
    """Give the warnings where the user called; ``depth`` public functions lie between."""
    for category, text in sorted(messages, key=lambda pair: pair[1]):
        warnings.warn(text, category, stacklevel=depth + 2)
