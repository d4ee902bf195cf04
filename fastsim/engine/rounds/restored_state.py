"""Checks of the values of a state between two rounds before the compiled loop works on them.

The loop indexes memory by rows, models and GPUs without looking. Each function raises ValueError naming the first wrong
value. Node metrics are checked where they are restored, in ``fastsim_ext/rounds/snapshot.pyx``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim.engine.checkpoints.value_checks import (
    COUNT,
    LATEST,
    MOST,
    SPAN,
    TIME,
    check_numbers,
    check_range,
    check_records,
    check_rows,
    records_of,
)
from fastsim.engine.rounds.outcome import GANG, MOMENT, RECORDS, ROUND
from fastsim.engine.tables import EVENTS, ROW

SHARE, PAIR, TASK = RECORDS["ShareAccount"], RECORDS["Pair"], RECORDS["Task"]
"""The account of a job or pair on one GPU model; two jobs that share GPUs; one candidate in the round that ended."""
ORDERED_JOB, STREAM = RECORDS["OrderedJob"], RECORDS["Mersenne"]
"""Demand and service of an ordered job; a Mersenne Twister."""
TIMES = {"now_s": TIME, "next_price_s": (-LATEST, np.inf), "wasted_gpu_s": SPAN}
EVER = (-np.inf, np.inf, True)
COUNTS = ("rounds", "calls", "ended", "max_active", "job_rounds", "quiet", "jobs", "couples", "added", "tasks", "held",
          "turn", "extensions", "opportunities", "gpu_drained")  # fmt: skip
NUMBERS: dict[str, tuple[Any, ...]] = {
    **TIMES, **dict.fromkeys(COUNTS, COUNT), "quiet": (0, 1 << 30), "measured": (0, 1),
}  # fmt: skip
"""Ranges of the numbers of all rounds."""
SHARES = {
    "start_s": EVER, "end_s": EVER, "reset_s": EVER, "last_submit_s": EVER, "began_s": EVER, "frozen": (0, 1 << 30),
    "wanted": (0, 1), "ever_reset": (0, 1),
}  # fmt: skip
"""Ranges of further numbers of rounds of shares."""
ORDERS = {"done_s": EVER, "end_s": EVER, **dict.fromkeys(
    ("reclaims", "demotions", "demanded_gpus", "reported", "stakes"), COUNT
)}  # fmt: skip
"""Those of ordered rounds."""
METRICS = {
    **dict.fromkeys(("gauge_turn", "touched", "finished", "dropped", "arrived", "arrived_gpu"), COUNT),
    "changes": COUNT, "given": COUNT,
    "news": (0, 1), "next_s": EVER, "first_s": EVER,
}  # fmt: skip
"""Those of metrics."""
JOB_TIMES = dict.fromkeys(("first_s", "finish_s", "left_s"), (*TIME, True))
"""Ranges of the times of a job: when it first ran, finished and last lost its GPUs; NaN if it has not."""
MOST_SHARE = 1.0 + 1e-6
"""Largest share of a job; solvers exceed 1 by their tolerance."""


def check_state(meta: Mapping[str, Any], arrays: Mapping[str, Any], kinds: int) -> None:
    """A state of rounds of shares or of ordered rounds, of jobs of so many kinds."""
    numbers, gpus = meta["loop"], np.array(meta["decided"]["gpus"], np.int64)
    check_numbers(meta, {"solver_s": SPAN}, "header")
    check_numbers(numbers, NUMBERS, "loop")
    ordered = "stakes" in numbers
    check_numbers(numbers, ORDERS if ordered else SHARES, "loop")
    check_header(meta, numbers["added"])
    if "nodes_s" in numbers:
        check_numbers(numbers, {"nodes_s": (-np.inf, numbers["now_s"])}, "loop")
        check_numbers(meta, {"failures_from_s": TIME}, "header")
    if meta["record_bytes"] != {name: arrays[name].nbytes for name in meta["record_bytes"]}:
        raise ValueError("records of another number of rounds")
    jobs = records_of(arrays, "gangs", GANG, numbers["jobs"])
    ended = records_of(arrays, "ended_jobs", GANG)
    check_jobs(np.concatenate([ended, jobs]), kinds, numbers["added"])
    check_range(jobs["task"], -1, numbers["tasks"] - 1, "gangs.task")
    check_range(jobs["ended"], 0, 0, "gangs.ended")
    width = len(gpus)
    pairs = records_of(arrays, "couples", PAIR, numbers["couples"])
    check_records(pairs, {"row": (0, len(jobs) - 1), "mate": (0, len(jobs) - 1), "num_gpu": (1, MOST)}, "couples")
    for name, count in (("claims", len(jobs)), ("shared", len(pairs))):
        shares = records_of(arrays, name, SHARE, count * width)
        check_records(shares, {"received": SPAN, "deficit": TIME, "share": (0.0, MOST_SHARE), "ran": (0, 2)}, name)
    for name, count in (("price", width), ("type_time", width), ("busy_s", int(gpus.sum()))):
        check_range(records_of(arrays, name, np.dtype(np.float64), count), 0.0, LATEST, name)
    tasks = check_tasks(numbers, arrays, gpus)
    if ordered:
        _check_ordered(numbers, arrays, width)
    else:
        _check_rows(tasks, jobs, pairs, numbers)
        check_range(records_of(arrays, "shuffler", STREAM, 1)["used"], 0, 624, "shuffler.used")
    held = records_of(arrays, "held", np.dtype(np.int32))
    check_range(held, 0, int(gpus.sum()) - 1, "held")
    ids = range(numbers["added"])
    check_moments(records_of(arrays, "tasks", MOMENT), ids, ids, gpus, len(held))
    known = max(numbers["added"], numbers.get("reported", 0))  # a job that is not admitted has arrived, too
    check_rows(records_of(arrays, "rows", ROW), len(EVENTS), known, "rows")


def check_header(meta: Mapping[str, Any], arrived: int) -> None:
    """Time and arrivals of the header are those of the loop, and numbers of metrics are within their ranges."""
    if meta["loop"]["measured"]:
        check_numbers(meta["loop"], METRICS, "loop")
    if (meta["now_s"], meta["arrived"]) != (meta["loop"]["now_s"], arrived):
        raise ValueError("time and jobs of the header, other than those of the loop")


def check_jobs(jobs: Any, kinds: int, added: int) -> None:
    """Records of all jobs that have arrived, those that are gone first."""
    check_records(jobs, {
        "kind": (0, kinds - 1), "estimated_kind": (0, kinds - 1), "num_gpu": (0, MOST), "tenant": (-1, MOST),
        **dict.fromkeys(("rounds", "failures", "restarts", "preemptions", "place"), COUNT),
        **dict.fromkeys(("run", "cost", "gpu_s", "paused_s", "delayed_s"), SPAN), **JOB_TIMES,
        **dict.fromkeys(("known", "settled", "taken", "holds", "ended"), (0, 1)),
    }, "jobs")  # fmt: skip
    if not np.array_equal(np.sort(jobs["id"]), np.arange(added)):
        raise ValueError(f"jobs.id: not those of the {added} jobs that have arrived")


def check_tasks(numbers: Mapping[str, Any], arrays: Mapping[str, Any], gpus: npt.NDArray[Any]) -> Any:
    """The tasks of the round that ended and the GPUs that they hold; the answer is the tasks."""
    total, base = int(gpus.sum()), np.concatenate([[0], np.cumsum(gpus)])
    held = records_of(arrays, "gpu", np.dtype(np.int32), numbers["held"])
    check_range(held, 0, total - 1, "gpu")
    if len(np.unique(held)) != len(held):
        raise ValueError("gpu: one GPU is held twice")
    tasks = records_of(arrays, "leases", TASK, numbers["tasks"])
    check_records(tasks, {
        "model": (0, len(gpus) - 1), "num_gpu": (0, len(held)), "held": (0, len(held)), "before": (-1, MOST),
        "kept": (0, 1), "alive": (0, 1), "steps": SPAN, "mate_steps": SPAN, "finish_s": TIME, "wasted": SPAN,
        "price": SPAN, "priority": EVER, "deficit": EVER,
    }, "leases")  # fmt: skip
    check_range(tasks["held"].astype(np.int64) + tasks["num_gpu"], 0, len(held), "ends of leases.held")
    for task in tasks:
        check_range(held[task["held"] : task["held"] + task["num_gpu"]], base[task["model"]],
                    base[task["model"] + 1] - 1, "gpu of a task")  # fmt: skip
    return tasks


def _check_rows(tasks: Any, jobs: Any, pairs: Any, numbers: Mapping[str, Any]) -> None:
    """Tasks are of jobs and pairs that are there; the next round begins with crediting them."""
    if len(tasks) > 0:
        check_range(tasks["row"], 0, len(jobs) - 1, "leases.row")
    check_records(tasks, {"mate": (-1, len(jobs) - 1), "pair": (-1, len(pairs) - 1)}, "leases")
    check_range(tasks["finish_s"], numbers["began_s"], LATEST, "leases.finish_s")
    both = tasks[tasks["mate"] >= 0]
    rows = pairs[both["pair"]] if len(pairs) else pairs
    fine = (both["pair"] >= 0).all() and len(rows) == len(both)
    if not fine or (np.sort([both["row"], both["mate"]], axis=0) != [rows["row"], rows["mate"]]).any():
        raise ValueError("leases.pair: another pair than that of the task")
    mates = np.where(tasks["mate"] >= 0, jobs["id"][tasks["mate"]] if len(jobs) else -1, -1)
    if (tasks["id"] != jobs["id"][tasks["row"]]).any() or (tasks["mate_id"] != mates).any():
        raise ValueError("leases.id: another job than that of the row")
    if (tasks["num_gpu"] != jobs["num_gpu"][tasks["row"]]).any():
        raise ValueError("leases.num_gpu: another number than the job needs")


def _check_ordered(numbers: Mapping[str, Any], arrays: Mapping[str, Any], width: int) -> None:
    entries = records_of(arrays, "stakes", ORDERED_JOB, numbers["stakes"])
    if len(entries) != numbers["jobs"]:
        raise ValueError(f"{len(entries)} records of stakes, expected {numbers['jobs']}")
    check_records(entries, {
        "need": SPAN, "share": SPAN, "step_s": SPAN, "own_speedup": SPAN, "speedup": SPAN, "attained_s": SPAN,
        "last_s": TIME, "priority": (-MOST, MOST), "model": (-1, width - 1), "n_parts": (0, MOST), "plain": (0, 1),
    }, "stakes")  # fmt: skip
    order = records_of(arrays, "order", np.dtype(np.int32), len(entries))
    if not np.array_equal(np.sort(order), np.arange(len(entries))):
        raise ValueError("order: not every row once")
    rows, rounds = records_of(arrays, "rows", ROW), records_of(arrays, "round_records", ROUND)["round"]
    begins = rows["seq"][rows["kind"] == EVENTS.index("sample")]
    if (np.diff(rounds) <= 0).any() or not np.isin(begins, rounds).all():
        raise ValueError("rows.seq: not those of the rounds")


def check_moments(moments: Any, ids: range, mates: range, gpus: npt.NDArray[Any], held: int) -> None:
    """Records of what ran in each round so far: jobs of these ids, beside others of ``mates``.

    ``gpus`` are those of each model, ``held`` is the length of the list of GPUs that the records lead to.
    """
    check_records(moments, {
        "round": COUNT, "id": (0, len(ids) - 1), "mate_id": (-1, len(mates) - 1), "t": TIME, "finish_s": TIME,
        "model": (0, len(gpus) - 1), "num_gpu": (0, int(gpus.sum())), "held": (-1, held),
    }, "tasks")  # fmt: skip
    check_stays(moments)
    listed = moments[moments["held"] >= 0]
    check_range(listed["held"] + listed["num_gpu"], 0, held, "ends of tasks.held")


def check_stays(moments: Any) -> None:
    """ValueError where the first round of a stay does not have its GPUs."""
    rows = moments[np.lexsort((moments["round"], moments["mate_id"], moments["id"]))]
    begins = np.append(True, np.diff(rows["id"]) | np.diff(rows["mate_id"])).astype(bool)[: len(rows)]
    if (rows["held"][begins] < 0).any():
        raise ValueError("tasks: a stay without its GPUs")
