"""One run in each of the two spellings of a decision, with habits that make small runs keep scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis.strategies import SearchStrategy

from fastsim import engine
from fastsim.cluster import Cluster
from fastsim.columns import HABITS
from fastsim.engine import OnlineOptions, OnlineRun
from fastsim.memo import MEMOS
from fastsim.plan import OnlinePlan
from fastsim.result import Result, gathered
from fastsim.typical import TypicalPods
from fastsim.workload import Workload
from fastsim_ext.index import Indexed

Habits = dict[str, float]
EAGER: Habits = {
    "window_changes": 8, "long_window_changes": 8, "sweep_changes": 4, "upkeep_ns": 0, "search_ns": 1,
    "memo_bytes": 1,
}  # fmt: skip
"""A column for every class at its third question; the memo forgets after every few states."""


def habits() -> SearchStrategy[Habits]:
    """From keeping all there is to giving everything up at once."""
    return st.fixed_dictionaries({
        "window_changes": st.sampled_from((8, 2, 4096)),
        "long_window_changes": st.sampled_from((16, 2, 32768)),
        "sweep_changes": st.sampled_from((4, 1, 4096)),
        "upkeep_ns": st.sampled_from((0, 30, 60)),
        "search_ns": st.sampled_from((0, 0, 60, 1200)),
        "few_classes": st.sampled_from((192, 0)),
        "columns_bytes": st.sampled_from((0, HABITS["columns_bytes"])),
        "least_columns": st.sampled_from((16, 1, 2)),
        "memo_bytes": st.sampled_from((1, HABITS["memo_bytes"])),
    })  # fmt: skip


@contextmanager
def spelled(spelling: str, changed: Mapping[str, float] = MappingProxyType({})) -> Iterator[None]:
    """Decisions are spelled ``index`` or ``scan``; what is kept is checked after every event."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "SPELLING", spelling)
        patch.setattr(engine, "CHECKED", True)
        for name, value in changed.items():
            patch.setitem(HABITS, name, value)
        MEMOS.clear()
        yield
        MEMOS.clear()


def played(
    cluster: Cluster, workload: Workload, plan: OnlinePlan, typical: TypicalPods, options: OnlineOptions,
    seen: Counter[str] | None = None,
) -> Result:  # fmt: skip
    """A whole run, checked at its end; ``seen`` counts what the index did."""
    run = OnlineRun(cluster, workload, plan, typical, options)
    run.play()
    run.select.verify()
    if run.memo is not None:
        run.memo[1].verify()
    if seen is not None and isinstance(run.select, Indexed):
        seen.update(deeds(run.select, run.memo))
    run.scribe.close()
    frames, provenance = gathered(run)
    run.give_back()
    return Result(frames, provenance, {})


def deeds(select: Indexed, memo: Any) -> dict[str, int]:
    """How often the index did what a test wants it to do."""
    table = select.table
    return {
        "runs": 1, "built": select.built, "searches": select.searches, "scans": select.scans,
        "dropped": select.built - table.n_used, "stretched": table.stretched * select.built,
        "forgotten": int(memo[1].generation > 0),
    }  # fmt: skip
