"""Orders as rules of the waiting line: who comes first, what blocks, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.engine.online.plan import RULES
from fastsim.errors import FastsimError, ScenarioError
from fastsim.scenario.sort_keys import PODS, line_order


def starts(queue: str, rows: list[dict[str, Any]], **options: Any) -> list[float | None]:
    """Start of each pod on one node with four GPUs, 40,000 milli-CPU; pods ask for one GPU and run for 10 s."""
    request = {"cpu_milli": 1000, "memory_mib": 0, "num_gpu": 1, "gpu_milli": 1000, "duration_s": 10.0}
    pods = fs.Workload.from_arrow(pl.DataFrame([{"pod_id": n} | request | row for n, row in enumerate(rows)]))
    node = "uniform?nodes=1&gpu=T4&gpus=4&cpu_milli=40000"
    found: list[float | None] = fs.simulate(node, pods, "best_fit", queue=queue, **options).jobs["start_s"].to_list()
    return found


FULL: dict[str, Any] = {"submit_s": 0.0, "num_gpu": 4, "duration_s": 10.0}
"""Holds all GPUs for ten seconds."""


@pytest.mark.parametrize(
    ("queue", "first", "second"),
    [
        ("srtf", {"duration_s": 5.0}, {"duration_s": 20.0}),
        ("srsf", {"duration_s": 9.0}, {"duration_s": 5.0, "num_gpu": 2}),
        ("smallest", {"cpu_milli": 5000}, {"num_gpu": 2}),
        ("tetris", {"duration_s": 9.0}, {"duration_s": 5.0, "num_gpu": 4}),
        ("ftf", {"duration_s": 2.0}, {"duration_s": 200.0}),
    ],
)
def test_who_comes_first_by_the_key_starts_first(queue: str, first: dict[str, Any], second: dict[str, Any]) -> None:
    rest = {"submit_s": 1.0, "num_gpu": 4} if queue in ("srtf", "ftf") else {"submit_s": 1.0}
    for rule in (queue, f"{queue}_skip"):
        one = starts(rule, [FULL, rest | second, rest | first, {"submit_s": 1.0, "num_gpu": 3, "duration_s": 300.0}])
        assert one[2] == 10.0 and one[1] is not None and one[1] >= 10.0
    by_arrival = starts("fifo", [FULL, rest | second, rest | first])
    assert by_arrival[1] == 10.0


LATE: dict[str, Any] = {"submit_s": 1.0, "num_gpu": 4}


def test_pods_start_by_their_deadlines_and_those_without_one_at_the_end() -> None:
    rows = [FULL, LATE | {"deadline_s": None}, LATE | {"deadline_s": 90.0}, LATE | {"deadline_s": 80.0},
            LATE | {"deadline_s": 90.0}]  # fmt: skip
    assert starts("edf", rows) == [0.0, 40.0, 20.0, 10.0, 30.0]
    assert starts("-column(deadline_s)", rows) == [0.0, 40.0, 10.0, 30.0, 20.0]
    assert starts("-column(deadline_s), -arrival", rows) == [0.0, 40.0, 10.0, 30.0, 20.0]
    small = [*rows[:4], {"submit_s": 2.0, "num_gpu": 0, "gpu_milli": 0, "deadline_s": 99.0}]
    assert starts("edf", small) == [0.0, 30.0, 20.0, 10.0, 20.0] and starts("edf_skip", small)[4] == 2.0


def test_a_deadline_may_be_a_multiple_of_the_duration() -> None:
    rows = [FULL, LATE | {"slo": 9.0}, LATE | {"slo": None}, LATE | {"slo": 2.0}, LATE | {"slo": 5.0}]
    assert starts("edf", rows) == [0.0, 30.0, 40.0, 10.0, 20.0]


def test_terms_of_a_key_decide_in_turn() -> None:
    rows = [FULL, LATE | {"priority": 1, "duration_s": 9.0}, LATE | {"priority": 2, "duration_s": 8.0},
            LATE | {"priority": 1, "duration_s": 5.0}, LATE | {"duration_s": 1.0}]  # fmt: skip
    assert starts("-column(priority), remaining", rows) == [0.0, 23.0, 10.0, 18.0, 32.0]
    assert starts("remaining, -column(priority)", rows) == [0.0, 24.0, 16.0, 11.0, 10.0]


def test_a_gang_goes_by_the_first_of_its_pods() -> None:
    gang = {"submit_s": 1.0, "num_gpu": 2, "job_id": 1, "gang_size": 2}
    rows = [FULL, LATE | {"deadline_s": 50.0}, gang | {"deadline_s": 90.0}, gang | {"deadline_s": 40.0},
            LATE | {"deadline_s": 30.0}]  # fmt: skip
    assert starts("edf", rows) == [0.0, 30.0, 20.0, 20.0, 10.0]
    assert starts("-column(deadline_s)", rows) == [0.0, 20.0, 10.0, 10.0, 30.0]


def test_a_pod_that_was_stopped_keeps_its_values() -> None:
    """At 5 s an important pod stops the first, which runs again from 25 s to 45 s, between the other two."""
    first = {"submit_s": 0.0, "num_gpu": 4, "duration_s": 20.0, "deadline_s": 50.0, "priority": 0}
    rows = [first, LATE | {"deadline_s": 40.0, "priority": 0}, LATE | {"deadline_s": 60.0, "priority": 0},
            LATE | {"submit_s": 5.0, "deadline_s": 99.0, "priority": 5}]  # fmt: skip
    assert starts("edf_skip", rows, preempt="priority") == [0.0, 15.0, 45.0, 5.0]


def test_equal_pods_keep_their_order() -> None:
    rows = [FULL, *({"submit_s": 1.0, "num_gpu": 4} for _ in range(3))]
    for queue in ("srtf", "srsf_skip", "smallest", "tetris", "ftf_skip"):
        assert starts(queue, rows) == [0.0, 10.0, 20.0, 30.0]


def test_the_first_blocks_unless_the_rule_skips() -> None:
    rows = [FULL | {"num_gpu": 3}, {"submit_s": 1.0, "num_gpu": 2, "duration_s": 5.0}, {"submit_s": 2.0}]
    assert starts("srtf", rows) == [0.0, 10.0, 10.0]
    assert starts("srtf_skip", rows) == [0.0, 10.0, 2.0]


def test_who_waits_for_long_relative_to_his_time_overtakes() -> None:
    """After 9 s of waiting a short pod is further behind than a long one that came first."""
    rows = [FULL, {"submit_s": 0.0, "num_gpu": 4, "duration_s": 100.0},
            {"submit_s": 1.0, "num_gpu": 4, "duration_s": 5.0}]  # fmt: skip
    assert starts("ftf", rows) == [0.0, 15.0, 10.0]


@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.DurationMissing")
def test_what_is_told_counts_and_pods_without_an_end_come_last() -> None:
    rows = [FULL, {"submit_s": 1.0, "num_gpu": 4, "duration_s": None, "est_duration_s": None},
            {"submit_s": 2.0, "num_gpu": 4, "duration_s": 5.0, "est_duration_s": 90.0},
            {"submit_s": 3.0, "num_gpu": 4, "duration_s": 50.0, "est_duration_s": 1.0}]  # fmt: skip
    assert starts("srtf", rows) == [0.0, 65.0, 60.0, 10.0]


def test_who_has_had_less_comes_first() -> None:
    """At 8 s an important pod stops one that ran for 8 s; the newcomer that never ran goes before it."""
    rows = [{"submit_s": 0.0, "num_gpu": 4, "duration_s": 20.0, "priority": 0},
            {"submit_s": 8.0, "num_gpu": 4, "duration_s": 4.0, "priority": 5},
            {"submit_s": 9.0, "num_gpu": 4, "duration_s": 2.0, "priority": 0}]  # fmt: skip
    assert starts("las", rows, preempt="priority") == [0.0, 8.0, 12.0]
    jobs = starts("fifo", rows, preempt="priority")
    assert jobs[2] is not None and jobs[2] > 12.0
    assert starts("tiresias", rows, preempt="priority") == jobs  # all in the first queue: by arrival


@pytest.mark.parametrize("queue", ["las", "tiresias_skip"])
@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.OptionUnused")  # of some of the cases
def test_orders_by_what_pods_have_had_need_pods_that_ran(queue: str) -> None:
    with pytest.raises(ScenarioError, match=f"queue: found '{queue}', where no pod that ran waits again"):
        starts(queue, [FULL])
    assert starts(queue, [FULL], on_node_loss="requeue") == [0.0]


def test_slices_of_time_are_no_queue_rule() -> None:
    with pytest.raises(ScenarioError, match="queue: found 'round_robin', expected one of drop, fifo"):
        starts("round_robin", [FULL])


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        ("column(value)", r"workload: column\(value\): found no such column, expected one of pod_id, submit_s"),
        ("edf", r"workload: column\(deadline_s\): found no such column"),
        ("column(preemptible)", "found a column of type bool, expected a column of numbers"),
        ("column(submit_s), age", "queue: found 'age', expected 1 to 4 of arrival, remaining, .*column\\(age\\)"),
        ("weight", "queue: found 'weight', expected 1 to 4 of arrival"),
        ("arrival,gpus,remaining,packing,dominant", "queue: found 5 terms, expected 1 to 4 of"),
        ("-column(submit_s), service", "where no pod that ran waits again"),
    ],
)
def test_keys_that_mean_nothing_are_refused(queue: str, words: str) -> None:
    with pytest.raises(FastsimError, match=words):
        starts(queue, [FULL | {"preemptible": True}])


def test_a_rule_is_told_as_terms() -> None:
    text = (Path(fs.__file__).parents[1] / "fastsim_ext" / "online" / "ordered_queue.pxd").read_text(encoding="utf-8")
    assert f"ORDERED = {len(RULES)} " in text
    assert set(line_order("srtf_skip")) == {"terms", "level_s"} and line_order("fifo") == {}
    assert all(line_order(name) for name in PODS)
