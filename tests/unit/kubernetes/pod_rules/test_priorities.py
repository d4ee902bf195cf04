"""Priorities of pods by number, by class and by default; pods that never preempt."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fastsim.errors import InputError
from fastsim.kubernetes.pod_rules.priorities import priorities_of
from fastsim.kubernetes.snapshot import Snapshot
from tests.objects import manifest, pod, workload_of, written


def class_of(name: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"kind": "PriorityClass", "metadata": {"name": name}, "value": value, **more}


def read(path: Path, *objects: dict[str, Any]) -> tuple[dict[str, int | None], Counter[str]]:
    snapshot = Snapshot.read(written(path / "a.json", *objects))
    frame = pl.DataFrame(workload_of(snapshot).table())
    priorities = frame["priority"].to_list() if "priority" in frame.columns else [None] * len(frame)
    return dict(
        zip(frame["native_id"].str.strip_prefix("default/").to_list(), priorities, strict=True)
    ), snapshot.notices


def test_built_in_classes_need_no_objects(tmp_path: Path) -> None:
    pods = [pod("a", priorityClassName="system-cluster-critical"), pod("b", priorityClassName="system-node-critical")]
    assert read(tmp_path, *pods) == ({"a": 2_000_000_000, "b": 2_000_001_000}, Counter())


def test_the_default_class_is_that_of_pods_without_one(tmp_path: Path) -> None:
    classes = [class_of("usual", 10, globalDefault=True), class_of("more", 20, globalDefault=True), class_of("low", 1)]
    pods = [pod("a"), pod("b", priority=0), pod("c", priorityClassName="low"), pod("d", priorityClassName="gone")]
    priorities, notices = read(tmp_path, *classes, *pods)
    assert priorities == {"a": 10, "b": 0, "c": 1, "d": None}
    assert notices == {"pods: a priority class that is not among the objects": 1}


def test_pods_that_never_preempt_are_marked(tmp_path: Path) -> None:
    classes = [class_of("calm", 5, preemptionPolicy="Never"), class_of("usual", 5)]
    pods = [
        pod("a", priorityClassName="calm"), pod("b", preemptionPolicy="Never"), pod("c", priorityClassName="usual"),
        pod("d", preemptionPolicy="PreemptLowerPriority"), pod("there", priorityClassName="calm", nodeName="n1"),
    ]  # fmt: skip
    workload = workload_of(Snapshot.read(written(tmp_path / "b.json", *classes, *pods)))
    marks = {row["native_id"].removeprefix("default/"): row["preempts"] for row in workload.table().to_pylist()}
    assert marks == {"a": False, "b": False, "c": None, "d": None, "there": False}
    assert read(tmp_path, *classes, *pods)[1] == {}


@pytest.mark.parametrize("value", ["high", True, 1 << 31, None])
def test_bad_values_are_named(value: Any) -> None:
    with pytest.raises(InputError, match="PriorityClass x: value: found"):
        priorities_of([manifest(class_of("x", value))])
