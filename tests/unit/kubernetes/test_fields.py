"""The table of Kubernetes' fields beside the code: each name that is looked up is told, and the reverse."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fastsim.kubernetes
from fastsim.cli.main import exit_code
from fastsim.errors import ScenarioError
from fastsim.hardware import mig, node_constraints
from fastsim.kubernetes.fields import STANDINGS, STEP, chosen, fields, fields_text
from fastsim.kubernetes.pods import HARMLESS, HONOURED
from fastsim.kubernetes.snapshot import Snapshot
from fastsim.workload.importers.kubernetes import workload_of
from tests.objects import node, pod, written

READERS = sorted(
    {one.name for one in pkgutil.walk_packages(fastsim.kubernetes.__path__, "fastsim.kubernetes.")}
    - {f"fastsim.kubernetes.{name}" for name in ("fields", "memory_step", "objects", "quantity")}
)
"""Modules that read what is in objects."""
NAME = re.compile(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(/[A-Za-z0-9_.-]*)?|[A-Z_]+")
OWN = {
    "CPU", "GPU", "GiB", "MiB", "constraints", "gang", "group", "kubernetes", "mig", "mig-", "now", "op", "owner",
    "qos", "tenant", "times", "trace", "fastsim.converter", "fastsim.params", "fastsim.source",
    "fastsim.source_sha256", "0", "1", "-", "-inf", "anti-affinity", "head", "job", "worker",
}  # fmt: skip
"""Words of the readers that are ours: columns, units, what is told."""
INNER = {
    "devmem", "health", "true", "false", "alibabacloud.com/", "aliyun.com/", "gpu-", "NVIDIA-", "NVIDIA-NVIDIA-",
    "NVIDIA-Tesla-",
}  # fmt: skip
"""Parts of annotations, of models, and beginnings of names of which the table has the whole."""


def looked_up() -> set[str]:
    """All texts of the readers that may be names, but for those in docstrings and messages."""
    found = set(node_constraints.OPERATORS)
    for name in READERS:
        module = importlib.import_module(name)
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        skipped = set(_told(tree))
        found |= {one.value for one in ast.walk(tree)
                  if isinstance(one, ast.Constant) and isinstance(one.value, str) and one not in skipped}  # fmt: skip
        for one in tree.body:
            for target in ast.walk(one) if isinstance(one, ast.Assign | ast.AnnAssign) else ():
                if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store):
                    found |= set(_texts(getattr(module, target.id, None)))  # None: a loop's
    return {text for text in found if NAME.fullmatch(text)} - OWN - INNER


def _told(tree: ast.AST) -> Iterator[Any]:
    """Docstrings, errors, parts of longer texts and types."""
    for one in ast.walk(tree):
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
            yield one.value
        elif isinstance(one, ast.JoinedStr):
            yield from one.values
        elif isinstance(one, ast.Call) and getattr(one.func, "id", "") in ("InputError", "ScenarioError"):
            yield from ast.walk(one)
        elif isinstance(one, ast.AnnAssign):
            yield from ast.walk(one.annotation)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts([*value, *value.values()])
    elif isinstance(value, tuple | list | set | frozenset):
        for one in value:
            yield from _texts(one)


def told() -> set[str]:
    """All names of the table."""
    names = {name for one in fields() for name in (*one.field.split(STEP), *one.object.split())}
    assert mig.resource_name("nvidia.com/mig-1g.5gb").startswith(mig.PREFIX)  # which `mig` looks up
    return names - {"*", "nvidia.com/mig-"}


def test_each_name_that_is_looked_up_is_told() -> None:
    assert sorted(looked_up() - told()) == []


def test_each_name_that_is_told_is_looked_up() -> None:
    assert sorted(told() - looked_up()) == []


def test_every_row_is_complete_and_told_once() -> None:
    assert {one.standing for one in fields()} == set(STANDINGS)
    assert len({one[:2] for one in fields()}) == len(fields())
    assert all(one.how for one in fields() if one.standing == "approximated")


def test_fields_of_pods_stand_as_the_reader_takes_them() -> None:
    spec = [(one.field.split(STEP)[1], one.standing) for one in fields()
            if one.object == "Pod" and one.field.startswith(f"spec{STEP}")]  # fmt: skip
    assert {name for name, standing in spec if standing == "harmless"} == set(HARMLESS)
    assert {name for name, standing in spec if standing != "harmless"} == {*HONOURED, "*"}


PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}
NAMED: list[dict[str, Any]] = [
    {"affinity": {"nodeAffinity": PREFERRED}}, {"affinity": {"podAffinity": PREFERRED}},
    {"affinity": {"podAntiAffinity": PREFERRED}}, {"preemptionPolicy": "Never"}, {"resourceClaims": []},
    {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]},
    {"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]},
]  # fmt: skip


@pytest.mark.parametrize("spec", NAMED, ids=str)
def test_what_is_said_to_be_named_is(tmp_path: Path, spec: dict[str, Any]) -> None:
    snapshot = Snapshot.read(written(tmp_path / "a.json", node("n"), pod("p", **spec)))
    workload_of(snapshot)
    assert sum(snapshot.notices.values()) == 1


def test_nothing_is_said_of_what_is_harmless(tmp_path: Path) -> None:
    spec: dict[str, Any] = dict.fromkeys(HARMLESS, 1)
    snapshot = Snapshot.read(written(tmp_path / "a.json", node("n"), pod("p", **spec)))
    workload_of(snapshot)
    assert not snapshot.notices


def test_fields_are_chosen_and_told() -> None:
    assert {one.standing for one in chosen(("taints",))} == {"honoured", "approximated", "named"}
    assert chosen() == list(fields())
    with pytest.raises(ScenarioError, match="no such field"):
        chosen(("tents",))
    (line, _, meaning) = fields_text(chosen(("PreferNoSchedule",))).splitlines()
    assert line == "Node: spec: taints: effect: PreferNoSchedule: named" and meaning == f"named: {STANDINGS['named']}"


def test_describe(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["describe", "kubernetes"]) == 0
    assert capsys.readouterr().out == f"{fields_text(chosen())}\n"
    assert exit_code(["describe", "kubernetes", "Prefer", "--json"]) == 0
    assert '"standing": "named"' in capsys.readouterr().out
    assert exit_code(["describe", "kubernetes", "--table", "jobs"]) == 2
