"""No field of the compiled loop is forgotten in a checkpoint: each stands under ``# saved`` or ``# not saved: why``."""

from __future__ import annotations

import re

import pytest

from tests.style.tree import ROOT

FOLDER = ROOT / "fastsim_ext"
HOMES = {
    "adaptive_loop": "adaptive/loop",
    "adaptive_snapshot": "adaptive/snapshot",
    "backfill": "online/backfill",
    "candidates": "rounds/candidates CandidateSelection",
    "cluster_metrics": "rounds/cluster_metrics",
    "earliest_fit": "online/earliest_fit",
    "free_forecast": "online/free_forecast",
    "job_table": "rounds/job_table",
    "learned_performance": "adaptive/training_job LearnedPerformance",
    "leases": "rounds/leases",
    "node_constraints": "online/node_constraints",
    "node_presence": "rounds/node_presence",
    "online_loop": "online/loop",
    "ordered_jobs": "rounds/ordered_jobs",
    "ordered_loop": "rounds/ordered_loop",
    "ordered_queue": "online/ordered_queue",
    "pod_membership": "state/pod_membership PodMembership",
    "preempt": "online/preempt",
    "queue_loop": "online/queue_loop",
    "resource_shares": "rounds/resource_shares",
    "round_log": "rounds/round_log",
    "round_loop": "rounds/loop",
    "round_snapshot": "rounds/snapshot",
    "rules_loop": "online/rules_loop",
    "share_loop": "rounds/share_loop",
    "tenant_usage": "state/tenant_usage",
    "training_job": "adaptive/training_job TrainingJob",
}
"""Files of the modules below the package, and the class that is meant where a file has several."""
RULED = (
    "ordered_queue", "pod_membership", "rules_loop", "queue_loop", "tenant_usage", "node_constraints", "preempt",
    "backfill", "free_forecast", "earliest_fit",
)  # fmt: skip
"""Modules whose one class lists its fields below the comments ``# saved`` and ``# not saved: why``."""
FIELD = re.compile(r"    cdef (?:readonly |const )*[\w\[\], :*]+?[ *\]](\w+(?:, \w+)*) *(?:#.*)?$")
NOT_SAVED_BY_ONLINE = {
    "nodes", "work", "select", "departures",  # tables of their own
    "queue_rule", "record", "checked", "until", "sample_s", "deschedule_t", "starts_recorded",
    "gpu_sample_s", "next_s", "draws",  # options
    "line",  # built again from the waiting pods
    "change_t", "change_node", "change_adds",  # the caller's columns
    "a_pod_id", "a_class", "a_priority", "a_tenant", "a_submit", "a_duration",  # the batch, like the next
    "a_node", "a_gpus", "binds",
    "a_count", "a_next", "last_batch",
    "rows", "n_rows", "row_room",  # drained before
    "expected",  # a hint
}  # fmt: skip

ROUNDS = ("round_loop", "share_loop", "job_table", "leases", "candidates", "round_log", "cluster_metrics",
          "node_presence")  # fmt: skip
"""Modules whose one class is part of a run in rounds; ``rounds/snapshot`` writes and reads their fields."""
NOT_SAVED_BY_ROUNDS = {
    "round_loop": {
        "table", "leases", "log", "metrics",  # parts of their own
        "round_s", "restart_s", "until_s", "recorded", "first", "last",  # arguments
        "stage",  # always between two rounds
        "presence",  # a part of its own
        "pending", "n_pending", "at_pending", "pending_room", "closed", "value",  # read again
    },
    "share_loop": {
        "selection",  # a part of its own
        "alone", "shared", "realloc_s", "endless", "estimated", "last_chunk", "gap_counts", "whole", "reset_at_zero",
        "stale", "lease_cost", "late_deadlines",  # arguments
        "completions", "spare", "was_idle", "moved",  # rewritten in every round
    },
    "job_table": {"width", "half", "owed"},  # arguments
    "leases": {
        "base", "gpus", "width", "presence",  # arguments
        "present",  # counted again
        "room",  # for tasks
        "last", "last_gpu", "n_last",  # what is saved takes their place when the next round begins
        "stamp",  # any round but the next one
    },
    "candidates": {
        "table", "leases", "alone", "shared", "fastest", "pairs", "shuffled", "strict", "one_line",
        "reserves",  # arguments
        "heap", "visit", "free", "unplaced",  # rewritten in every round
    },
    "round_log": {"ended_jobs", "tasks", "gpu", "n_ended", "ended_room", "n_tasks", "task_room", "n_gpu", "gpu_room"},
    "cluster_metrics": {
        "node_of_gpu", "shape_of_node", "totals__sut", "sample_s", "recorded",  # arguments
        "rows", "n_rows", "row_room",  # drained before, as the ledger is
        "change_room", "freed_room",  # as much as there is to keep
        "absent",  # of the nodes' presence
    },
    "node_presence": {
        "node_of_gpu",  # an argument
        "away", "leaves_s", "t", "node", "comes", "at", "closed",  # seen again from the beginning
    },
}  # fmt: skip
TURNS = ("ordered_loop", "ordered_jobs", "resource_shares")
"""Modules whose one class is part of a run in ordered rounds and of no other; ``rounds/snapshot`` has their fields."""
NOT_SAVED_BY_TURNS = {
    "ordered_loop": {
        "ordered_jobs", "allocation", "shares",  # parts of their own
        "need__kr", "speedup__k", "step_s__kg", "begin_s", "starving_s", "admitted_gpus", "whole", "lease_end",
        "gap_ends", "stale_speedup", "narrow", "sticky", "blocking",  # arguments
        "chosen", "n_chosen", "chosen_room", "context",  # rewritten in every round
        "records", "n_records", "record_room",  # drained before
    },
    "ordered_jobs": {
        "terms", "term", "sign", "level_s", "room",  # arguments
        "spare", "keys",  # rewritten in every round
    },
    "resource_shares": {
        "table", "ordered_jobs", "allocation", "step_s__kg", "packed__k", "mechanism", "raises", "sweeping",
    },
}  # fmt: skip
LOOPS = {"round_loop": "common", "share_loop": "share", "ordered_loop": "ordered"}
"""First words of the functions of ``rounds/snapshot`` that have the fields of a loop, which all call it ``run``."""
ADAPTIVE = {"adaptive_loop": "run", "training_job": "job", "learned_performance": "learned"}
"""Modules whose one class is part of a run of adaptive jobs, as ``adaptive/snapshot`` calls it."""
NOT_SAVED_BY_ADAPTIVE = {
    "adaptive_loop": {
        "metrics",  # a part of its own
        "active", "ended_jobs", "pending",  # jobs are parts of their own, given again in the order of their ids
        "taken", "used__n",  # follow from what is held
        "base__n", "round_s", "recorded", "interference",  # arguments
        "tasks", "gpus",  # records
    },
    "training_job": {
        "curve", "learned", "batch", "gpus_requested", "tuned", "merged", "submit_s", "restart_s", "speed",  # arguments
        "placement",  # follows from the job's place
        "undisturbed",  # follows from the places of all
    },
    "learned_performance": {"fit", "known", "room"},  # arguments; made from the rows; how much fits
}  # fmt: skip
ROOM = {"job_table": {"room", "pair_room"}}
"""Fields that say how much fits: set when they are restored."""


def fields(module: str) -> dict[str, str]:
    """Every field of the module's class with the heading it stands under."""
    found: dict[str, str] = {}
    heading, inside = "", False
    home, _, owner = HOMES.get(module, module).partition(" ")
    for line in (FOLDER / f"{home}.pxd").read_text(encoding="utf-8").splitlines():
        if line.startswith("cdef class "):
            inside = not owner or line.startswith((f"cdef class {owner}:", f"cdef class {owner}("))
        elif owner and line[:1].strip():
            inside = False
        if not inside:
            continue
        if line.startswith("    # "):
            heading = line.strip("# ")
        match = FIELD.match(line)
        if match and "(" not in line.split("#")[0]:
            found |= dict.fromkeys(match[1].split(", "), heading)
    return found


def functions(module: str, *names: str) -> list[str]:
    """The texts of some functions of the module."""
    home, _, owner = HOMES.get(module, module).partition(" ")
    text = (FOLDER / f"{home}.pyx").read_text(encoding="utf-8")
    if owner:
        text = re.split(rf"^cdef class {owner}\b", text, flags=re.M)[-1]
        text = re.split(r"^cdef class ", text, flags=re.M)[0]
    found = [re.search(rf"    def {name}\(.*?(?=\n    c?p?def |\Z)", text, re.S) for name in names]
    return [match[0] if match else "" for match in found]


@pytest.mark.parametrize("module", RULED)
def test_every_field_says_what_becomes_of_it(module: str) -> None:
    named = fields(module)
    assert named
    for name, heading in named.items():
        assert heading == "saved" or heading.startswith("not saved: "), f"{module}.pxd: {name}"


@pytest.mark.parametrize("module", RULED)
def test_what_is_saved_is_written_and_read(module: str) -> None:
    saved = [name for name, heading in fields(module).items() if heading == "saved"]
    for text in functions(module, "snapshot", "restore"):
        assert [name for name in saved if f"self.{name}" not in text] == []


def test_the_plain_loop_forgets_nothing() -> None:
    snapshot, restore = functions("online_loop", "snapshot", "restore")
    for name in fields("online_loop").keys() - NOT_SAVED_BY_ONLINE:
        assert f"self.{name}" in restore, name
        assert f"self.{name}" in snapshot or name == "at_capacity", name  # the last one by way of state()


def state_functions(suffix: str, module: str = "round_snapshot", prefix: str = r"\w+") -> str:
    """The texts of the functions of ``rounds/snapshot``, or of its like, whose names begin and end so."""
    text = (FOLDER / f"{HOMES.get(module, module).split()[0]}.pyx").read_text(encoding="utf-8")
    return "".join(re.findall(rf"^cdef \w+ {prefix}_{suffix}\(.*?(?=^cdef |^# ---|^def |\Z)", text, re.S | re.M))


@pytest.mark.parametrize("module", ROUNDS)
def test_rounds_forget_nothing(module: str) -> None:
    variable = {
        "round_loop": "run",
        "share_loop": "run",
        "job_table": "table",
        "candidates": "selection",
        "round_log": "log",
        "cluster_metrics": "metrics",
        "node_presence": r"run\.presence",
    }.get(module, module)
    named, prefix = fields(module).keys(), LOOPS.get(module, r"\w+")
    assert NOT_SAVED_BY_ROUNDS[module] <= named
    for name in named - NOT_SAVED_BY_ROUNDS[module]:
        written = rf"\b{variable}\.{name}\b"
        saved = re.search(written, state_functions("state", prefix=prefix))
        assert name in ROOM.get(module, ()) or saved, f"{module}.{name}"
        assert re.search(written, state_functions("restore", prefix=prefix)), f"{module}.{name}"


@pytest.mark.parametrize("module", TURNS)
def test_ordered_rounds_forget_nothing(module: str) -> None:
    variable = {"ordered_loop": "run", "resource_shares": "run.shares"}.get(module, module)
    named, prefix = fields(module).keys(), LOOPS.get(module, r"\w+")
    assert NOT_SAVED_BY_TURNS[module] <= named
    for name in named - NOT_SAVED_BY_TURNS[module]:
        written = rf"\b{variable}\.{name}\b"
        for suffix in ("state", "restore"):
            assert re.search(written, state_functions(suffix, prefix=prefix)), f"{module}.{name}"


@pytest.mark.parametrize("module", ADAPTIVE)
def test_adaptive_rounds_forget_nothing(module: str) -> None:
    named = fields(module).keys()
    assert NOT_SAVED_BY_ADAPTIVE[module] <= named
    for name in named - NOT_SAVED_BY_ADAPTIVE[module]:
        for suffix in ("state", "restore"):
            written = rf"\b{ADAPTIVE[module]}\.{name}\b"
            assert re.search(written, state_functions(suffix, "adaptive_snapshot")), f"{module}.{name}"
