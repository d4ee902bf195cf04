"""No field of the compiled loop is forgotten in a checkpoint: each stands under ``# saved`` or ``# not saved: why``."""

from __future__ import annotations

import re

import pytest

from tests.style.tree import ROOT

FOLDER = ROOT / "fastsim_ext"
HOMES = {
    "adaptive": "adaptive/loop",
    "adaptive_state": "adaptive/snapshot",
    "backfill": "online/backfill",
    "demand": "online/node_constraints",
    "draft": "rounds/candidates CandidateSelection",
    "gangs": "rounds/job_table",
    "gauge": "rounds/cluster_metrics",
    "glance": "online/earliest_fit",
    "leases": "rounds/leases",
    "ledger": "rounds/round_log",
    "lessons": "adaptive/training_job LearnedPerformance",
    "lineup": "online/ordered_queue",
    "online": "online/loop",
    "outlook": "online/free_forecast",
    "portions": "rounds/resource_shares",
    "preempt": "online/preempt",
    "regulated": "online/rules_loop",
    "roster": "state/pod_membership PodMembership",
    "round_state": "rounds/snapshot",
    "rounds": "rounds/share_loop",
    "stakes": "rounds/ordered_jobs",
    "tenants": "state/pod_membership TenantUsage",
    "trainee": "adaptive/training_job TrainingJob",
    "turn_state": "rounds/snapshot",
    "turns": "rounds/ordered_loop",
    "waiting": "online/queue_loop",
}
"""Where the modules stand that go by these names here, below the package; and which of their classes."""
RULED = ("lineup", "roster", "regulated", "waiting", "tenants", "demand", "preempt", "backfill", "outlook", "glance")
"""Modules whose one class says beside its fields what becomes of them."""
FIELD = re.compile(r"    cdef (?:readonly |const )*[\w\[\], :*]+?[ *\]](\w+(?:, \w+)*) *(?:#.*)?$")
NOT_SAVED_BY_ONLINE = {
    "nodes", "work", "select", "departures",  # tables of their own
    "queue_rule", "record", "checked", "until", "sample_s", "deschedule_t", "told", "look_s", "next_s",  # options
    "change_t", "change_node", "change_adds",  # the caller's columns
    "a_pod_id", "a_class", "a_priority", "a_payer", "a_submit", "a_duration",  # the batch, like the next
    "a_node", "a_gpus", "binds",
    "a_count", "a_next", "last_batch",
    "rows", "n_rows", "row_room",  # drained before
    "expected",  # a hint
}  # fmt: skip

ROUNDS = ("rounds", "gangs", "leases", "draft", "ledger", "gauge")
"""Modules whose one class is part of a run in rounds; ``rounds/snapshot`` writes and reads their fields."""
NOT_SAVED_BY_ROUNDS = {
    "rounds": {
        "table", "leases", "ledger", "draft", "gauge",  # parts of their own
        "alone", "shared", "round_s", "realloc_s", "restart_s", "until_s", "recorded", "endless", "guessed",
        "last_chunk", "gap_counts", "whole", "reset_at_zero", "stale", "lease_cost", "first",
        "last",  # told
        "dues", "spare", "was_idle", "moved",  # rewritten in every round
        "stage",  # always between two rounds
        "pending", "n_pending", "at_pending", "pending_room", "closed",  # read again
    },
    "gangs": {"width", "half"},  # told
    "leases": {
        "base", "gpus", "width",  # told
        "room",  # for tasks
        "last", "last_gpu", "n_last",  # what is saved takes their place when the next round begins
        "stamp",  # any round but the next one
    },
    "draft": {
        "table", "leases", "alone", "shared", "fastest", "pairs", "shuffled", "strict", "one_line", "reserves",  # told
        "ranking", "visit", "free", "unplaced",  # rewritten in every round
    },
    "ledger": {"gone", "moments", "gpu", "n_gone", "gone_room", "n_moments", "moment_room", "n_gpu", "gpu_room"},
    "gauge": {
        "node_of_gpu", "shape_of_node", "totals__sut", "sample_s", "recorded",  # told
        "rows", "n_rows", "row_room",  # drained before, as the ledger is
        "change_room", "given_room",  # as much as there is to keep
    },
}  # fmt: skip
TURNS = ("turns", "stakes", "portions")
"""Modules whose one class is part of a run in ordered rounds and of no other; ``ordered_snapshot`` has their fields."""
NOT_SAVED_BY_TURNS = {
    "turns": {
        "table", "stakes", "seats", "portions", "leases", "ledger", "gauge",  # parts of their own
        "need__kr", "speedup__k", "step_s__kg", "round_s", "begin_s", "restart_s", "until_s", "starving_s",
        "admitted_gpus", "recorded", "whole", "lease_end", "gap_ends", "stale_speedup", "narrow", "sticky", "blocking",
        "first", "last",  # told
        "chosen", "n_chosen", "chosen_room", "yard",  # rewritten in every round
        "records", "n_records", "record_room",  # drained before
        "stage",  # always between two rounds
        "pending", "n_pending", "at_pending", "pending_room", "closed",  # read again
    },
    "stakes": {"terms", "term", "sign", "level_s", "spare", "keys", "room"},  # told; rewritten in every round
    "portions": {"table", "stakes", "seats", "step_s__kg", "packed__k", "mechanism", "raises", "sweeping"},
}  # fmt: skip
ADAPTIVE = {"adaptive": "run", "trainee": "job", "lessons": "lessons"}
"""Modules whose one class is part of a run of adaptive jobs, as ``adaptive/snapshot`` calls it."""
NOT_SAVED_BY_ADAPTIVE = {
    "adaptive": {
        "gauge",  # a part of its own
        "active", "gone", "pending",  # jobs are parts of their own, and told again in the order of their ids
        "owned", "used__n",  # follow from what is held
        "base__n", "round_s", "recorded",  # told
        "moments", "gpus",  # records
    },
    "trainee": {
        "course", "lessons", "batch", "gpus_asked", "tuned", "merged", "submit_s", "restart_s", "speed",  # told
        "site",  # follows from the job's place
    },
    "lessons": {"fit", "known", "room"},  # told; made from the rows; how much fits
}  # fmt: skip
ROOM = {"gangs": {"room", "couple_room"}}
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
    said = fields(module)
    assert said
    for name, heading in said.items():
        assert heading == "saved" or heading.startswith("not saved: "), f"{module}.pxd: {name}"


@pytest.mark.parametrize("module", RULED)
def test_what_is_saved_is_written_and_read(module: str) -> None:
    saved = [name for name, heading in fields(module).items() if heading == "saved"]
    for text in functions(module, "snapshot", "restore"):
        assert [name for name in saved if f"self.{name}" not in text] == []


def test_the_plain_loop_forgets_nothing() -> None:
    snapshot, restore = functions("online", "snapshot", "restore")
    for name in fields("online").keys() - NOT_SAVED_BY_ONLINE:
        assert f"self.{name}" in restore, name
        assert f"self.{name}" in snapshot or name == "at_capacity", name  # the last one by way of state()


def state_functions(suffix: str, module: str = "round_state") -> str:
    """The texts of the functions of ``rounds/snapshot``, or of its like, whose names end so."""
    text = (FOLDER / f"{HOMES.get(module, module).split()[0]}.pyx").read_text(encoding="utf-8")
    return "".join(re.findall(rf"^cdef \w+ \w+_{suffix}\(.*?(?=^cdef |^# ---|^def |\Z)", text, re.S | re.M))


@pytest.mark.parametrize("module", ROUNDS)
def test_rounds_forget_nothing(module: str) -> None:
    variable = {"rounds": "run", "gangs": "table"}.get(module, module)
    said = fields(module).keys()
    assert NOT_SAVED_BY_ROUNDS[module] <= said
    for name in said - NOT_SAVED_BY_ROUNDS[module]:
        written = rf"\b{variable}\.{name}\b"
        assert name in ROOM.get(module, ()) or re.search(written, state_functions("state")), f"{module}.{name}"
        assert re.search(written, state_functions("back")), f"{module}.{name}"


@pytest.mark.parametrize("module", TURNS)
def test_ordered_rounds_forget_nothing(module: str) -> None:
    variable = {"turns": "run", "portions": "run.portions"}.get(module, module)
    said = fields(module).keys()
    assert NOT_SAVED_BY_TURNS[module] <= said
    for name in said - NOT_SAVED_BY_TURNS[module]:
        written = rf"\b{variable}\.{name}\b"
        for suffix in ("state", "back"):
            assert re.search(written, state_functions(suffix, "turn_state")), f"{module}.{name}"


@pytest.mark.parametrize("module", ADAPTIVE)
def test_adaptive_rounds_forget_nothing(module: str) -> None:
    said = fields(module).keys()
    assert NOT_SAVED_BY_ADAPTIVE[module] <= said
    for name in said - NOT_SAVED_BY_ADAPTIVE[module]:
        for suffix in ("state", "back"):
            written = rf"\b{ADAPTIVE[module]}\.{name}\b"
            assert re.search(written, state_functions(suffix, "adaptive_state")), f"{module}.{name}"
