"""One run in each of the two spellings of a decision, with settings that make small runs keep scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis.strategies import SearchStrategy

from fastsim.cluster.cluster import Cluster
from fastsim.engine.online import run as engine
from fastsim.engine.online.kernel_columns import COLUMN_SETTINGS
from fastsim.engine.online.memo_pool import MEMOS
from fastsim.engine.online.options import OnlineOptions
from fastsim.engine.online.plan import OnlinePlan
from fastsim.engine.online.recorder import tables_and_provenance
from fastsim.engine.online.run import OnlineRun
from fastsim.engine.result import Result
from fastsim.engine.tables import OUTCOME, ROW
from fastsim.workload import Workload
from fastsim.workload.typical_pods import TypicalPods
from fastsim_ext.select.indexed import IndexedSelector

ColumnSettings = dict[str, float]
EAGER: ColumnSettings = {
    "window_changes": 8, "long_window_changes": 8, "drop_changes": 4, "upkeep_ns": 0, "search_ns": 1, "few_classes": 0,
    "memo_bytes": 1, "memo_node_bytes": 0, "most_gaps": 0, "pack_changes": 0,
}  # fmt: skip
"""A column for every class at its fourth question; the memo forgets after every few states."""


def column_settings() -> SearchStrategy[ColumnSettings]:
    """From keeping all there is to giving everything up at once."""
    return st.fixed_dictionaries({
        "window_changes": st.sampled_from((8, 2, 4096)),
        "long_window_changes": st.sampled_from((16, 2, 32768)),
        "drop_changes": st.sampled_from((4, 1, 4096)),
        "upkeep_ns": st.sampled_from((0, 30, 60)),
        "search_ns": st.sampled_from((0, 0, 60, 1200)),
        "few_classes": st.sampled_from((192, 0)),
        "columns_bytes": st.sampled_from((0, COLUMN_SETTINGS["columns_bytes"])),
        "least_columns": st.sampled_from((16, 1, 2)),
        "memo_bytes": st.sampled_from((1, 1, COLUMN_SETTINGS["memo_bytes"])),
        "memo_node_bytes": st.sampled_from((0, 0, COLUMN_SETTINGS["memo_node_bytes"])),
        "most_gaps": st.sampled_from((0, 2, COLUMN_SETTINGS["most_gaps"])),
        "pack_changes": st.sampled_from((0, 8)),
    })  # fmt: skip


@contextmanager
def spelled(spelling: str, changed: Mapping[str, float] = MappingProxyType({})) -> Iterator[None]:
    """Decisions are spelled ``index`` or ``scan``; what is kept is checked after every event."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "SPELLING", spelling)
        patch.setattr(engine, "CHECKED", True)
        for name, value in changed.items():
            patch.setitem(COLUMN_SETTINGS, name, value)
        MEMOS.clear()
        yield
        MEMOS.clear()


class Traced(OnlineRun):
    """A run that keeps what the compiled tables write, as it is."""

    def play(self) -> None:
        """The whole run."""
        self.events, self.outcomes = b"", b""
        super().play()

    def collect_records(self) -> None:
        """Collect the rows since the last time."""
        self.events += self.online.drain_rows()
        self.outcomes += self.work.drain()

    def trace(self) -> tuple[Any, ...]:
        """Every event, every outcome, every stage and the state at the end."""
        events, outcomes = np.frombuffer(self.events, ROW), np.frombuffer(self.outcomes, OUTCOME)
        return events, outcomes, self.stages, self.online.state(), self.select.attempts


def checked(run: OnlineRun, seen: Counter[str] | None) -> None:
    """Play a whole run and check what it kept; ``seen`` counts what the index did."""
    run.play()
    run.select.verify()
    if run.memo is not None:
        run.memo[1].verify()
    if seen is not None and isinstance(run.select, IndexedSelector):
        seen.update(deeds(run.select, run.memo))
    run.writer.close()


def played(
    cluster: Cluster, workload: Workload, plan: OnlinePlan, typical: TypicalPods, options: OnlineOptions
) -> Result:
    """The result of a whole run."""
    run = OnlineRun(cluster, workload, plan, typical, options)
    checked(run, None)
    frames, provenance = tables_and_provenance(run)
    run.release_memo()
    return Result(frames, provenance, {})


def traced(
    cluster: Cluster, workload: Workload, plan: OnlinePlan, typical: TypicalPods, options: OnlineOptions,
    seen: Counter[str],
) -> tuple[Any, ...]:  # fmt: skip
    """What a whole run wrote: quicker to have and to compare than the tables made from it."""
    run = Traced(cluster, workload, plan, typical, options)
    checked(run, seen)
    run.recorder.drop()
    run.release_memo()
    return run.trace()


def assert_same_trace(found: tuple[Any, ...], expected: tuple[Any, ...]) -> None:
    """Equal to the last bit; says which row differs first."""
    for mine, others in zip(found[:2], expected[:2], strict=True):
        for k in range(min(len(mine), len(others))):
            assert mine[k].tobytes() == others[k].tobytes(), f"row {k}: {mine[k]} is not {others[k]}"
        assert len(mine) == len(others)
    assert repr(found[2:]) == repr(expected[2:])


def deeds(select: IndexedSelector, memo: Any) -> dict[str, int]:
    """How often the index did what a test wants it to do."""
    table = select.table
    return {
        "runs": 1, "built": select.built, "searches": select.searches, "scans": select.scans,
        "dropped": select.built - table.n_used, "stretched": table.normalised * select.built,
        "forgotten": int(memo[1].forgotten > 0),
    }  # fmt: skip
