"""The table of Kubernetes' fields beside the code: each name that is looked up is listed, and the reverse."""

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
from fastsim.kubernetes.arrival_order import NO_ROOM
from fastsim.kubernetes.fields import STANDINGS, STEP, chosen, fields, fields_text, unread_fields
from fastsim.kubernetes.pods import HARMLESS, HONOURED
from fastsim.kubernetes.snapshot import Snapshot
from tests.objects import node, pod, workload_of, written

READERS = sorted(
    {item.name for item in pkgutil.walk_packages(fastsim.kubernetes.__path__, "fastsim.kubernetes.")}
    - {f"fastsim.kubernetes.{name}" for name in ("fields", "memory_step", "objects", "pod_rules.kept_parts",
                                                "quantity", "yaml_text")}
)  # fmt: skip
"""Modules that read what is in objects."""
NAME = re.compile(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(/[A-Za-z0-9_.-]*)?|[A-Z_]+")
OWN = {
    "CPU", "GPU", "GiB", "MiB", "counted", "group", "kubernetes", "mig", "mig-", "now", "op",
    "owner", "peer", "qos", "spread", "tenant", "times", "topology", "trace", "fastsim.converter", "fastsim.params",
    "fastsim.source", "fastsim.source_sha256", "0", "1", "-", "-inf", "anti-affinity", "head", "job", "worker",
    "-worker", "OneOf", "all", "True", "true", "Eviction", "policy/v1", "local-storage", "not-safe", "ownerless",
    "after_gang", "apart", "beside", "near", "budgets", "preempts", "least", "amounts", "nodes", "request",
    "snapshot", "Known", "preferences", "preferring", "requiring",
    "sign", "number", "n", "r", "rR", "t", "container", "__",
}  # fmt: skip
"""Words of the readers that are fastsim's own: columns, units, words of messages."""
INNER = {
    "devmem", "health", "id", "true", "false", "True", "alibabacloud.com/", "aliyun.com/", "gpu-", "NVIDIA-",
    "NVIDIA-NVIDIA-", "NVIDIA-Tesla-",
}  # fmt: skip
"""Parts of annotations and of models, and beginnings of names that are complete in the table."""


def looked_up() -> set[str]:
    """All texts of the readers that may be names, but for those in docstrings and messages."""
    texts = set(node_constraints.OPERATORS)
    for name in READERS:
        module = importlib.import_module(name)
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        skipped = set(_not_looked_up(tree))
        constants = [item for item in ast.walk(tree) if isinstance(item, ast.Constant) and item not in skipped]
        texts |= {item.value for item in constants if isinstance(item.value, str)}
        for item in tree.body:
            for target in ast.walk(item) if isinstance(item, ast.Assign | ast.AnnAssign) else ():
                if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store):
                    texts |= set(_texts(getattr(module, target.id, None)))  # None: a loop's
    return {text for text in texts if NAME.fullmatch(text)} - OWN - INNER


def _not_looked_up(tree: ast.AST) -> Iterator[Any]:
    """Docstrings, errors, parts of longer texts and types."""
    for item in ast.walk(tree):
        if isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant):
            yield item.value
        elif isinstance(item, ast.JoinedStr):
            yield from item.values
        elif isinstance(item, ast.Call) and getattr(item.func, "id", "") in ("InputError", "ScenarioError"):
            yield from ast.walk(item)
        elif isinstance(item, ast.AnnAssign):
            yield from ast.walk(item.annotation)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts([*value, *value.values()])
    elif isinstance(value, tuple | list | set | frozenset):
        for item in value:
            yield from _texts(item)


def listed() -> set[str]:
    """All names of the table."""
    names = {name for item in fields() for name in (*item.field.split(STEP), *item.object.split())}
    assert mig.resource_name("nvidia.com/mig-1g.5gb").startswith(mig.PREFIX)  # which `mig` looks up
    return names - {"*", "nvidia.com/mig-"}


def test_each_name_that_is_looked_up_is_listed() -> None:
    assert sorted(looked_up() - listed()) == []


def test_each_name_that_is_listed_is_looked_up() -> None:
    assert sorted(listed() - looked_up()) == []


def test_every_row_is_complete_and_listed_once() -> None:
    every = (*fields(), *unread_fields())
    assert {item.standing for item in fields()} == set(STANDINGS)
    assert len({item[:2] for item in every}) == len(every)
    assert all(item.how for item in every if item.standing == "approximated")


API = Path(__file__).with_name("api_fields.txt")
"""Fields of version 1.37, as ``.ci/kubernetes_api.py`` prints them."""


def paths(lines: list[str]) -> list[tuple[str, ...]]:
    """Kind and keys of each field, outer fields before the fields within them, which stand in parentheses."""
    found: list[tuple[str, ...]] = []
    above: list[str] = []
    for line in lines:
        depth = len(line) - len(line.lstrip())
        for mark, name in re.findall(r"([ (]|\)+ ?|^)(\w+)", line.lstrip()):
            depth += mark.count("(") - mark.count(")")
            above = [*above[:depth], name]
            found.append(tuple(above))
    return [path for path in found if len(path) > 1]


def covered() -> set[tuple[str, ...]]:
    """Kind and keys of each field that has a row, and of those above it; a row may have several fields."""
    found: set[tuple[str, ...]] = set()
    for item in (*fields(), *unread_fields()):
        *outer, last = item.field.split(STEP)
        for kind in item.object.split():
            found |= {(kind, *outer, name) for name in last.split(", ")}
    return found


def test_every_field_of_the_api_has_a_standing() -> None:
    """A field has a row of its own, or is within a field that has one and none for its own fields."""
    known = covered()
    outer = {path[:n] for path in known for n in range(2, len(path))}
    missing, inside = [], set[tuple[str, ...]]()
    for path in paths(API.read_text(encoding="utf-8").splitlines()):
        if path[:-1] in inside or (path in known and path not in outer):
            inside.add(path)
        elif path not in known and path not in outer:
            missing.append(STEP.join(path))
            inside.add(path)
    assert missing == []


def test_unread_fields_are_fields_of_the_api() -> None:
    there = set(paths(API.read_text(encoding="utf-8").splitlines()))
    unknown = [(kind, *outer, name) for item in unread_fields() for *outer, last in [item.field.split(STEP)]
               for kind in item.object.split() for name in last.split(", ")
               if (kind, *outer, name) not in there]  # fmt: skip
    assert unknown == []


def test_fields_of_pods_stand_as_the_reader_takes_them() -> None:
    spec = [(item.field.split(STEP)[1], item.standing) for item in fields()
            if item.object == "Pod" and item.field.startswith(f"spec{STEP}")]  # fmt: skip
    assert {name for name, standing in spec if standing == "harmless"} == set(HARMLESS)
    assert {name for name, standing in spec if standing != "harmless"} == {*HONOURED, "*"}


NAMED: list[dict[str, Any]] = [
    {"resourceClaims": [{"name": "r", "resourceClaimName": "c"}]},
    {"topologySpreadConstraints": [{"whenUnsatisfiable": "Sometimes"}]},
]


@pytest.mark.parametrize("spec", NAMED, ids=str)
def test_named_fields_are_in_the_notices(tmp_path: Path, spec: dict[str, Any]) -> None:
    snapshot = Snapshot.read(written(tmp_path / "a.json", node("n"), pod("p", **spec)))
    workload_of(snapshot)
    assert sum(snapshot.notices.values()) == 1


def test_nominated_node_is_named_where_no_room_is_kept(tmp_path: Path) -> None:
    nominated = {"phase": "Pending", "nominatedNodeName": "n"}
    waiting, bound = pod("a", status=nominated), pod("b", status=nominated, nodeName="n")
    for nodes, notices in (([], {NO_ROOM: 1}), ([node("n")], {})):
        snapshot = Snapshot.read(written(tmp_path / f"{len(nodes)}.json", *nodes, waiting, bound))
        workload_of(snapshot)
        assert snapshot.notices == notices


def test_harmless_fields_are_not_in_the_notices(tmp_path: Path) -> None:
    spec: dict[str, Any] = dict.fromkeys(HARMLESS, 1)
    snapshot = Snapshot.read(written(tmp_path / "a.json", node("n"), pod("p", **spec)))
    workload_of(snapshot)
    assert not snapshot.notices


def test_fields_are_chosen_and_printed() -> None:
    assert {item.standing for item in chosen(("Pod",))} == set(STANDINGS) - {"refused"}
    assert chosen() == [*fields(), *unread_fields()]
    with pytest.raises(ScenarioError, match="no such field"):
        chosen(("tents",))
    (line, _, meaning) = fields_text(chosen(("scopeSelector",))).splitlines()
    assert line == "ResourceQuota: spec: scopeSelector: named" and meaning == f"named: {STANDINGS['named']}"


def test_describe(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["describe", "kubernetes"]) == 0
    assert capsys.readouterr().out == f"{fields_text(chosen())}\n"
    assert exit_code(["describe", "kubernetes", "Prefer", "--json"]) == 0
    assert '"standing": "approximated"' in capsys.readouterr().out
    assert exit_code(["describe", "kubernetes", "--table", "jobs"]) == 2
