"""From the rows of the compiled loop to the frames users read, row by row."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from fastsim.engine.tables import (
    FRAG_COLUMNS,
    INTERVAL,
    OUTCOME,
    POD,
    REASONS,
    ROW,
    LazyFrames,
    device_lists,
    jobs_frame,
    placements_frame,
    timeline_frame,
)

NAN = float("nan")
NAMES = ["node-a", "node-b"]
SERIES = pl.Series(NAMES)
BOTH = INTERVAL | POD
HELD = {"ideal": 4.0, "paused": 0.5, "gpu_s": 1800.0}


def outcome(seq: int, reason: str, **cells: Any) -> Any:
    """One row: a pod that arrived at 1 s, on no node, unless told otherwise."""
    row = np.zeros((), OUTCOME)
    base = {"seq": seq, "pod_id": 70 + seq, "node": -1, "reason": REASONS.index(reason), "closes": BOTH,
            "submit": 1.0, "first_start": cells.get("start", NAN), "start": NAN, "end": NAN,
            "ideal": NAN, "paused": NAN, "cost": NAN}  # fmt: skip
    for name, value in (base | cells).items():
        row[name] = value
    return row


def outcomes(*rows: Any) -> Any:
    return np.array([row.item() for row in rows], OUTCOME)


EVICTED_TWICE = outcomes(
    # Rows leave the loop when an interval ends, so attempts of one pod need not follow one another.
    outcome(2, "no_gpu"),
    outcome(0, "evicted", node=1, gpus=0b11, start=1.0, end=4.0, closes=INTERVAL),
    outcome(1, "running", node=0, start=2.0),
    outcome(0, "evicted", node=0, attempt=1, gpus=0b1, start=4.0, first_start=1.0, end=6.0, closes=INTERVAL),
    outcome(0, "finished", node=1, attempt=2, gpus=0b100, start=6.0, first_start=1.0, end=9.0, **HELD),
)


def test_several_attempts_are_several_placements_in_the_order_in_which_they_ended() -> None:
    frame = placements_frame(EVICTED_TWICE, None, SERIES)
    assert frame.rows() == [
        (72, None, 0, None, None, [], None, None, "no_gpu"),
        (70, None, 0, 1, "node-b", [0, 1], 1.0, 4.0, "evicted"),
        (71, None, 0, 0, "node-a", [], 2.0, None, "running"),
        (70, None, 1, 0, "node-a", [0], 4.0, 6.0, "evicted"),
        (70, None, 2, 1, "node-b", [2], 6.0, 9.0, "finished"),
    ]


def test_several_attempts_are_one_job_from_first_start_to_last_end() -> None:
    frame = jobs_frame(EVICTED_TWICE, pl.DataFrame({"native_id": ["z", "x", None, "x", "x"]}))
    assert frame.rows() == [
        (72, "z", 1.0, None, None, None, None, "unplaced", "no_gpu", 0, 0, 0.0, 0, None, 0.0, None, None, None),
        (71, None, 1.0, 2.0, None, 1.0, None, "running", "running", 1, 0, 0.0, 0, None, 0.0, None, None, None),
        (70, "x", 1.0, 1.0, 9.0, 0.0, 8.0, "finished", "finished", 3, 0, 0.0, 2, 0.5, 0.5, 4.0, 2.0, None),
    ]


def test_a_pod_that_is_evicted_and_lost_is_one_job_and_no_further_placement() -> None:
    lost = outcomes(
        outcome(0, "evicted", node=1, start=1.0, end=4.0, closes=INTERVAL),
        outcome(0, "evicted", start=1.0, end=4.0, closes=POD),
    )
    assert len(placements_frame(lost, None, SERIES)) == 1
    assert jobs_frame(lost, None).select("start_s", "end_s", "state", "attempts").rows() == [(1.0, 4.0, "evicted", 1)]


def test_only_a_finished_job_has_a_completion_time() -> None:
    lost = outcomes(
        outcome(0, "node_lost", node=0, start=1.0, end=3.0),
        outcome(1, "evicted", node=0, start=1.0, end=3.0),
        outcome(2, "pending"),
    )
    frame = jobs_frame(lost, None)
    assert frame["state"].to_list() == ["node_lost", "evicted", "pending"]
    assert frame["end_s"].to_list() == [3.0, 3.0, None] and frame["jct_s"].to_list() == [None] * 3
    assert frame["attempts"].to_list() == [1, 1, 0]


def test_every_reason_from_too_large_on_is_unplaced() -> None:
    never = REASONS[REASONS.index("too_large") :]
    frame = jobs_frame(outcomes(*(outcome(k, r) for k, r in enumerate(never))), None)
    assert set(frame["state"]) == {"unplaced"} and frame["reason"].to_list() == list(never)
    assert len(never) == 17


def test_frames_without_rows_keep_their_columns_and_types() -> None:
    none = outcomes()
    for empty, full in (
        (jobs_frame(none, None), jobs_frame(EVICTED_TWICE, None)),
        (placements_frame(none, None, SERIES), placements_frame(EVICTED_TWICE, None, SERIES)),
        (placements_frame(none, None, SERIES.clear()), placements_frame(EVICTED_TWICE, None, SERIES)),
    ):
        assert empty.is_empty() and empty.schema == full.schema


def test_masks_are_ascending_device_numbers() -> None:
    lists = device_lists(np.array([0, 1 << 63 | 1, 0b1010, 0], np.uint64))
    assert lists.to_pylist() == [[], [0, 63], [1, 3], []] and lists.type == pa.list_(pa.int16())
    assert device_lists(np.zeros(0, np.uint64)).to_pylist() == []


def timeline_rows(*cells: dict[str, int]) -> Any:
    rows = np.zeros(len(cells), ROW)
    for k, row in enumerate(cells):
        for name, value in row.items():
            rows[name][k] = value
    return rows


def test_shares_are_over_the_typical_pods_in_force_at_the_row() -> None:
    # A retarget between the rows: the same integer is a quarter of what it was.
    rows = timeline_rows({"q1_lack_both": 100, "q3_satisfied": 300, "pod": -1}, {"q1_lack_both": 100, "pod": -1})
    frame = timeline_frame(rows, np.array([1, 4]))
    assert frame["q1_lack_both"].to_list() == [100.0, 25.0]
    assert frame["q3_satisfied"].to_list() == [300.0, 0.0]
    assert frame["frag_milli"].to_list() == [100.0, 25.0]


def test_all_classes_but_the_satisfied_one_are_fragmented() -> None:
    rows = timeline_rows({name: 10**k for k, name in enumerate(FRAG_COLUMNS)} | {"pod": -1})
    assert timeline_frame(rows, 1)["frag_milli"].to_list() == [1_111_011.0]


def test_events_pods_and_watts() -> None:
    rows = timeline_rows({"kind": 5, "pod": -7, "cpu_mw": 1500, "gpu_mw": 250}, {"kind": 6, "pod": -1})
    frame = timeline_frame(rows, 1)
    assert frame["event"].to_list() == ["arrival", "end"]
    assert frame["pod_id"].to_list() == [-7, None]  # any number may be the name of a pod
    assert frame.select("power_cpu_w", "power_gpu_w", "power_w").row(0) == (1.5, 0.25, 1.75)


def test_late_frames_are_made_once_and_only_if_somebody_looks() -> None:
    calls: list[str] = []

    def maker(name: str) -> pl.DataFrame:
        calls.append(name)
        return pl.DataFrame({name: [1]})

    frames = LazyFrames({"there": pl.DataFrame({"there": [0]})}, {"late": lambda: maker("late")})
    assert list(frames) == ["there", "late"] and len(frames) == 2 and calls == []
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(frames.__getitem__, ["late"] * 8))
    assert all(frame is found[0] for frame in found) and calls == ["late"]
    with pytest.raises(KeyError):
        frames["other"]


def test_late_frames_are_made_for_another_process() -> None:
    frames = LazyFrames({}, {"late": lambda: pl.DataFrame({"a": [1]})})
    assert pickle.loads(pickle.dumps(frames))["late"]["a"].to_list() == [1]
