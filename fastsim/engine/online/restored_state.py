"""Checks of a checkpoint's values before the compiled loop, which indexes memory by them unchecked, works on them.

Each function raises ValueError naming the first wrong value. Values that follow from others are compared with them:
free resources of nodes with what their pods hold, the waiting line with the pods that wait, departures with the pods
that run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastsim.engine.checkpoints.state import SPANS
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
from fastsim.engine.online.kernel_columns import WHOLE
from fastsim.engine.online.recorder import TABLES
from fastsim.engine.tables import EVENTS, ROW

if TYPE_CHECKING:
    from fastsim.engine.online.recorder import RecordedRun

SLOT = np.dtype(
    [("seq", "i8"), ("pod_id", "i8"), ("submit", "f8"), ("duration", "f8"), ("start", "f8"), ("first_start", "f8"),
     ("began", "f8"), ("lost", "f8"), ("gpus", "u8"), ("cls", "i4"), ("node", "i4"), ("priority", "i4"),
     ("attempt", "i4"), ("preemptions", "i4"), ("turn", "i4"), ("before", "i4"), ("after", "i4")], align=True,
)  # fmt: skip
"""A pod in the system, as ``fastsim_ext/state/pod_table.pxd`` has it."""
ACCOUNT = np.dtype(
    [("ideal", "f8"), ("delay", "f8"), ("left", "f8"), ("paused", "f8"), ("held", "f8"), ("delayed", "f8"),
     ("cost", "f8"), ("tenant", "i8")], align=True,
)  # fmt: skip
"""Totals of a pod, from the same file."""
DEPARTURE = np.dtype([("t", "f8"), ("seq", "i8"), ("slot", "i4"), ("turn", "i4")], align=True)
"""A departure, as ``fastsim_ext/state/departure_queue.pxd`` has it."""
MEMBER = np.dtype(
    [("tenant", "i4"), ("group", "i4"), ("gang", "i4"), ("next_in_gang", "i4"), ("next_on_node", "i4"),
     ("previous_on_node", "i4"), ("preemptible", "i4"), ("preempts", "i4"), ("held", "i4"), ("job", "i8"),
     ("joined", "i8"), ("place", "i8"), ("est", "f8"), ("est_left", "f8"), ("restart", "f8"), ("attained", "f8")],
    align=True,
)  # fmt: skip
"""Tenant, group and gang of a pod, as ``fastsim_ext/state/pod_membership.pxd`` has them."""
GANG = np.dtype(
    [("job", "i8"), ("size", "i4"), ("count", "i4"), ("first", "i4"), ("last", "i4"), ("next_gang", "i4"),
     ("stage", "i4")], align=True,
)  # fmt: skip
"""A gang of pods, from the same file."""
GIVEN_UP = 2
"""Stage of a gang that has left without having started."""
COUNTS = ("running", "pending", "finished", "unplaced", "lost", "arrived_cpu", "arrived_gpu", "unplaced_cpu",
          "unplaced_gpu")  # fmt: skip
LOOP: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("events", "sample_k", "arrived", "change_next", "deschedule_next", "attempts"), COUNT),
    "sample_k": (-MOST, MOST), "now": TIME, "began": TIME, "freed": (0, 1), "next_sample": (-np.inf, LATEST),
    "area_from": (-np.inf, LATEST),
}  # fmt: skip
"""Ranges of the loop's numbers."""


def check_nodes(columns: Mapping[str, Any]) -> None:
    """Free resources of each node are within its capacity: node tables search and index by them."""
    check_range(columns["present"], 0, 1, "present")
    check_range(columns["gpu_left"], 0, _gpu_milli(columns), "gpu_left")
    check_range(columns["cpu_left"], 0, columns["cpu_cap"], "cpu_left")
    check_range(columns["mem_left"], 0, columns["mem_cap"], "mem_left")
    check_range(columns["pods"], 0, columns["max_pods"], "pods")
    check_range(columns["mig_used"], 0, WHOLE * columns["mig_gpus"].astype(np.int64), "mig_used")
    check_range(columns["tags"], 0, columns["pods"][:, None], "tags")


def check_header(meta: Mapping[str, Any]) -> None:
    """The plain values of a state have their names and types; those of the loop are within their ranges."""
    kinds: dict[str, Any] = {
        "decided": dict, "loop": dict, "line": dict, "tables": dict, "waits": dict, "checksums": dict, "stages": list,
        "sha256": str, "scheduled": int,
    }  # fmt: skip
    for name, kind in kinds.items():
        if name not in meta or not isinstance(meta[name], kind):
            raise ValueError(f"{name} of type {type(meta.get(name)).__name__}")
    check_numbers(meta["loop"], LOOP, "loop")
    if (meta["now_s"], meta["arrived"]) != (meta["loop"]["now"], meta["loop"]["arrived"]):
        raise ValueError("time and arrivals of the header, other than those of the loop")
    check_numbers(meta["loop"].get("counts"), dict.fromkeys(COUNTS, COUNT), "loop.counts")
    check_numbers(meta["waits"], dict.fromkeys((*SPANS, "preemptions", "restarts"), COUNT), "waits")
    area = meta["loop"].get("area")
    if not isinstance(area, list) or len(area) != 8 or not all(isinstance(part, int | float) for part in area):
        raise ValueError("loop.area, no list of eight numbers")
    check_range(np.array(area, float), 0.0, LATEST, "loop.area")
    for name, segments in meta["tables"].items():
        if name not in TABLES or not all(_is_segment(name, segment) for segment in segments):
            raise ValueError(f"tables.{name}: other files than a run writes")
    for tag, row, count in meta["stages"]:
        _check_row(row, "stages")
        if not isinstance(tag, str) or not 0 < count < MOST:
            raise ValueError("stages, no rows of stages")


def _check_row(text: Any, name: str) -> None:
    """One row of a timeline as hexadecimal text; its pod has an id of the user's."""
    if not isinstance(text, str) or len(bytes.fromhex(text)) != ROW.itemsize:
        raise ValueError(f"{name}, no row of a timeline")
    check_rows(np.frombuffer(bytes.fromhex(text), ROW), len(EVENTS), None, name)


def _is_segment(table: str, segment: Any) -> bool:
    name, size = segment
    return bool(re.fullmatch(rf"{table}\.\d{{1,6}}\.arrows", name)) and isinstance(size, int) and 0 <= size < MOST


def check_pods(run: RecordedRun, meta: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Pods, their departures and the waiting line; for a run whose classes of pods are known."""
    slots = slots_of(arrays)
    part, count = arrays["slots"], len(slots)
    accounts = records_of({"accounts": part[count * SLOT.itemsize :]}, "accounts", ACCOUNT, count)
    loop, line = meta["loop"], meta["line"]
    check_numbers(line, {**dict.fromkeys(("free", "head", "tail"), (-1, count - 1)), "waiting": (0, count),
                         "cost": SPAN}, "line")  # fmt: skip
    held = np.array(line["tenant_held"], np.float64)
    check_range(held, 0.0, LATEST, "tenant_held")
    here = slots["seq"] != -1
    check_records(slots, {"before": (-1, count - 1), "after": (-1, count - 1), "turn": COUNT}, "slots")
    _check_present(run, loop, slots[here], accounts[here], len(held))
    running = here & (slots["node"] >= 0)
    _check_held(run.columns, run, slots[running])
    if sorted(slots["seq"][here].tolist()) != arrays["in_system"].tolist():
        raise ValueError("other arrival numbers in the slots than in in_system")
    free = followed(slots["after"], line["free"], "free slots")
    if sorted(free) != np.flatnonzero(~here).tolist():
        raise ValueError("free slots that are not free")
    waiting = followed(slots["after"], line["head"], "the waiting line")
    expected = _entries(run, meta, arrays, slots, here & ~running)
    if sorted(waiting) != expected or len(waiting) != line["waiting"]:
        raise ValueError(f"{len(waiting)} pods in the waiting line, expected {len(expected)}")
    ends_s = slots["began"] + (slots["duration"] + accounts["delay"])
    _check_departures(
        records_of(arrays, "departures", DEPARTURE), meta, slots["turn"], np.where(running, ends_s, np.nan)
    )
    _check_counts(run, loop, int(running.sum()), int((here & ~running).sum()))


def slots_of(arrays: Mapping[str, Any]) -> Any:
    """The records of all slots, their accounts left out."""
    part = arrays["slots"]
    count = part.nbytes // (SLOT.itemsize + ACCOUNT.itemsize)
    return records_of({"slots": part[: count * SLOT.itemsize]}, "slots", SLOT, count)


def followed(after: npt.NDArray[Any], first: int, name: str) -> list[int]:
    """The positions of a linked list in its order; ValueError if it comes back to itself."""
    positions: list[int] = []
    at = int(first)
    while at >= 0:
        positions.append(at)
        if len(positions) > len(after):
            raise ValueError(f"{name} without end")
        at = int(after[at])
    return positions


def _gpu_milli(columns: Mapping[str, Any]) -> npt.NDArray[Any]:
    """Milli-GPU of each device of the empty nodes."""
    devices = np.arange(columns["gpu_left"].shape[1]) < columns["num_gpu"][:, None]
    return np.where(devices, WHOLE, 0)


def _check_present(run: RecordedRun, loop: Mapping[str, Any], slots: Any, accounts: Any, tenants: int) -> None:
    """Places, times and totals of the pods that wait or run are within their ranges."""
    now, nodes = loop["now"], len(run.columns["num_gpu"])
    check_records(slots, {
        "seq": (0, loop["arrived"] - 1), "cls": (0, run.work.n_classes - 1), "node": (-1, nodes - 1),
        "submit": (-LATEST, now), "duration": (*SPAN, True), "start": (-LATEST, now, True),
        "first_start": (-LATEST, now, True), "began": (-LATEST, max(now, 0.0)), "lost": SPAN, "attempt": COUNT,
        "preemptions": COUNT,
    }, "slots")  # fmt: skip
    if np.isnan(slots["start"][slots["node"] >= 0]).any():
        raise ValueError("slots.start: missing of a pod that runs")
    check_records(accounts, {
        "ideal": (*SPAN, True), **dict.fromkeys(("delay", "paused", "held", "delayed", "cost"), SPAN), "left": TIME,
        "tenant": (-1, tenants - 1),
    }, "accounts")  # fmt: skip


def _check_held(columns: Mapping[str, Any], run: RecordedRun, slots: Any) -> None:
    """Nodes have free what their pods do not hold."""
    rows, node = run.classes.rows(), slots["node"]
    mig, width = run.classes.mig_milli(rows)[slots["cls"]], columns["gpu_left"].shape[1]
    requests = rows[slots["cls"]]
    devices = (slots["gpus"][:, None] >> np.arange(width, dtype=np.uint64)) & np.uint64(1)
    if (slots["gpus"] & ~_lowest_bits(columns["num_gpu"][node])).any():
        raise ValueError("slots.gpus: devices that the node does not have")
    kind = np.where((requests["num_gpu"] == 1) & (requests["gpu_milli"] < WHOLE), 0, requests["num_gpu"])
    tagged = requests["num_gpu"] > 0
    left = {
        "cpu_left": (columns["cpu_cap"].copy(), node, requests["cpu_milli"]),
        "mem_left": (columns["mem_cap"].copy(), node, requests["memory_mib"]),
        "gpu_left": (_gpu_milli(columns), node, devices.astype(np.int64) * (requests["gpu_milli"] * tagged)[:, None]),
        "mig_used": (np.zeros(len(columns["cpu_cap"]), np.int64), node, -mig),
        "pods": (np.zeros(len(columns["cpu_cap"]), np.int64), node, np.full(len(node), -1)),
        "tags": (np.zeros(columns["tags"].shape, np.int64), (node[tagged], kind[tagged]), np.full(tagged.sum(), -1)),
    }
    for name, (amounts, places, taken) in left.items():
        np.subtract.at(amounts, places, taken)
        wrong = np.argwhere(amounts != columns[name])
        if len(wrong):
            at = tuple(int(k) for k in wrong[0])
            raise ValueError(f"{name}{list(at)} = {columns[name][at]}, its pods leave {amounts[at]}")
    if not columns["present"][node].all():
        raise ValueError("slots.node: a node that is not there")


def _lowest_bits(count: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """So many bits set, the lowest ones; 64 at most."""
    return np.array([(1 << int(bits)) - 1 for bits in count], np.uint64)


def _check_departures(departures: Any, meta: Mapping[str, Any], turns: Any, ends_s: npt.NDArray[Any]) -> None:
    """Each pod that will end, at this second by slot, has one departure then; those of earlier turns are void."""
    check_numbers(meta, {"scheduled": COUNT}, "header")
    check_records(departures, {
        "t": (meta["loop"]["now"], LATEST), "seq": (0, meta["scheduled"] - 1), "slot": (0, len(turns) - 1),
    }, "departures")  # fmt: skip
    due = departures[departures["turn"] == turns[departures["slot"]]]
    ends = np.flatnonzero(~np.isnan(ends_s))
    if sorted(due["slot"].tolist()) != ends.tolist():
        raise ValueError(f"{len(due)} departures of {len(ends)} pods that will end")
    if (due["t"] != ends_s[due["slot"]]).any():
        raise ValueError("departures.t: not when the work of a pod is done")


def _check_counts(run: RecordedRun, loop: Mapping[str, Any], running: int, pending: int) -> None:
    counts, sample_s = loop["counts"], run.options.sample_s or 0.0
    if (counts["running"], counts["pending"]) != (running, pending):
        raise ValueError(f"counts of {counts['running']} running and {counts['pending']} pending pods")
    left = counts["finished"] + counts["unplaced"] + counts["lost"] + running + pending
    if left != loop["arrived"]:
        raise ValueError(f"counts of {left} pods, {loop['arrived']} have arrived")
    next_s = loop["next_sample"]
    if next_s > -np.inf and (next_s != loop["sample_k"] * sample_s or not loop["now"] <= next_s):
        raise ValueError(f"loop.next_sample = {next_s}")
    check_numbers(loop, {"deschedule_next": (0, len(run.options.deschedule))}, "loop")
    _check_row(loop["at_capacity"], "loop.at_capacity")


def _entries(run: RecordedRun, meta: Mapping[str, Any], arrays: Mapping[str, Any], slots: Any, waits: Any) -> list[int]:
    """The slots that stand in the waiting line: every pod without a node, and of a complete gang its last one."""
    if "rules" not in meta or run.queue_loop is None or run.rule_columns is None:
        return [int(slot) for slot in np.flatnonzero(waits)]
    here = slots["seq"] != -1
    members = records_of(arrays, "members", MEMBER)
    if len(members) < len(slots):
        raise ValueError(f"{len(members)} records of members, expected {len(slots)} or more")
    members = members[: len(slots)]
    gangs = records_of(arrays, "gangs", GANG)
    ends = meta["rules"]
    last = len(gangs) - 1
    check_numbers(ends, {"free_gang": (-1, last), "forming": (-1, last), "joins": COUNT}, "rules")
    tenants, groups = run.queue_loop.tenants.count, len(run.rule_columns.groups)
    check_records(members[here], {
        "tenant": (-1, tenants - 1), "group": (-1, groups - 1), "gang": (-1, last),
        "next_in_gang": (-1, len(slots) - 1), "preemptible": (0, 1), "preempts": (0, 1), "held": (0, 1),
        "joined": (0, ends["joins"]), "place": COUNT, "est": (*TIME, True), "est_left": (*TIME, True),
        "restart": SPAN, "attained": SPAN,
    }, "members")  # fmt: skip
    if (members["next_in_gang"][here & (members["gang"] == -1)] != -1).any():
        raise ValueError("members: next_in_gang, a next pod of no gang")
    check_records(gangs, {
        "next_gang": (-1, last), "stage": (0, GIVEN_UP), "first": (-1, len(slots) - 1), "last": (-1, len(slots) - 1),
    }, "gangs")  # fmt: skip
    free, forming = (followed(gangs["next_gang"], ends[name], name) for name in ("free_gang", "forming"))
    if both := sorted(set(free) & set(forming)):
        raise ValueError(f"gangs: {both[0]} both free and forming")
    alone = waits & (members["gang"] == -1) & (members["held"] == 0)
    if (members["held"][here & ~(waits & (members["gang"] == -1))] != 0).any():
        raise ValueError("members: held, a pod of a gang, or one that runs")
    entries: list[int] = np.flatnonzero(alone).tolist()
    gone = {number for number, gang in enumerate(gangs) if gang["stage"] == GIVEN_UP and gang["count"] == 0}
    for number in set(range(len(gangs))) - set(free) - gone:
        listed = _gang(number, gangs[number], members, here)
        if waits[listed].all() and number not in forming:
            entries.append(int(gangs[number]["last"]))
        elif waits[listed].any() and number not in forming:
            raise ValueError(f"gang {number} runs in part")
    inside = here & (members["gang"] >= 0)
    if int(inside.sum()) != sum(int(gangs[k]["count"]) for k in set(range(len(gangs))) - set(free) - gone):
        raise ValueError("pods of gangs that are not there")
    return sorted(entries)


def _gang(number: int, gang: Any, members: Any, here: Any) -> list[int]:
    """The slots of a gang in use."""
    listed = followed(members["next_in_gang"], gang["first"], f"gang {number}")
    fine = here[listed].all() and (members["gang"][listed] == number).all() and len(listed) == gang["count"] > 0
    if not fine or listed[-1] != gang["last"] or not 1 <= gang["count"] <= gang["size"]:
        raise ValueError(f"gang {number} of other pods than it lists")
    return listed


def check_rules(run: RecordedRun, arrays: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
    """Nodes that are away, and how many of their changes are past."""
    assert run.rule_columns is not None
    if "rules" not in meta:
        return
    for name, column in run.rule_columns.columns.items():
        if arrays[name].dtype != column.dtype or arrays[name].shape != column.shape:
            raise ValueError(f"{name} of {arrays[name].dtype} and shape {arrays[name].shape}")
    check_range(arrays["away"], 0, 1 << 30, "away")
    check_range(arrays["spared"], 0, 1, "spared")
    if ((arrays["away"] == 0) != (run.columns["present"] == 1)).any():
        raise ValueError("away: another number of reasons than nodes that are away have")
    check_numbers(meta["loop"], {"planned": (-MOST, MOST), "failed": (-MOST, MOST), "ended": (0, 1)}, "loop")
