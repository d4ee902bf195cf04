"""Reading Kubernetes objects: YAML, JSON, lists, folders, snapshots, and files that are none."""

from __future__ import annotations

import json
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from fastsim.errors import InputError, ScenarioError
from fastsim.kubernetes.objects import Notices, counted_about, manifests
from tests.needs import needed
from tests.objects import node, pod

needed("yaml")
TWO = """\
kind: Node
metadata: {name: a, creationTimestamp: 2024-01-01T00:00:00Z}
---
---
kind: PodList
items:
- metadata: {name: p}
- metadata: {name: q}
"""


def test_documents_and_typed_lists(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(TWO)
    objects = manifests(tmp_path / "a.yaml")
    assert [(item.kind, item.name) for item in objects] == [("Node", "a"), ("Pod", "p"), ("Pod", "q")]
    assert objects[0].part("metadata")["creationTimestamp"] == "2024-01-01T00:00:00Z"  # a text, as in JSON
    assert objects[1].where == f"{tmp_path}/a.yaml: document 3: item 1: Pod p"


def test_folders_are_read_with_their_folders_and_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.json").write_text(json.dumps({"kind": "List", "items": [node("n1"), pod("p1")]}))
    (tmp_path / "a.yml").write_text("kind: Node\nmetadata:\n  name: n0\n")
    (tmp_path / "README.md").write_text("no object")
    assert [item.name for item in manifests(tmp_path)] == ["n0", "n1", "p1"]


def test_a_snapshot_of_kai(tmp_path: Path) -> None:
    raw = {"nodes": [node("n1")], "pods": [pod("p1")], "queues": [{"metadata": {"name": "q"}}], "configMaps": None}
    del raw["nodes"][0]["kind"]  # type: ignore[index]
    with zipfile.ZipFile(tmp_path / "snapshot.gzip", "w") as archive:
        archive.writestr("snapshot.json", json.dumps({"config": {}, "rawObjects": raw}))
    assert [(item.kind, item.name) for item in manifests(tmp_path)] == [("Node", "n1"), ("Pod", "p1"), ("Queue", "q")]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yaml", "kind: [", "YAML"),
        ("a.json", '{"kind": "Pod"', "JSON"),
        ("a.json", "[1]", "a mapping with kind and metadata"),
        ("a.yaml", "metadata: {name: p}", "a mapping with kind and metadata"),
        ("a.yaml", "kind: List\nitems: 3", "a list of mappings"),
        ("a.yaml", "", "found no objects"),
        ("a.yaml", "kind: Pod\nmetadata: 3", "metadata: found 3, expected a mapping"),
        ("a.yaml", "kind: Pod\nmetadata: !!python/object:os.x {}", "YAML"),
    ],
)
def test_faults_are_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=r"a\.(yaml|json)") as caught:
        manifests(tmp_path / name)
    assert message in str(caught.value)


def test_binary_files_and_broken_archives(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        manifests(tmp_path)
    with zipfile.ZipFile(tmp_path / "a.json", "w") as archive:
        archive.writestr("other.json", "{}")
    with pytest.raises(InputError, match=r"snapshot\.json"):
        manifests(tmp_path)


def test_without_a_reader_of_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.yaml").write_text("kind: Node")
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ScenarioError, match="pip install"):
        manifests(tmp_path)


def test_several_files_in_one_text_unless_one_has_that_name(tmp_path: Path) -> None:
    for name in ("a.json", "b.json", "a.json,c.json"):
        (tmp_path / name).write_text(json.dumps(node(name)))
    assert [item.name for item in manifests(f"{tmp_path}/a.json, {tmp_path}/b.json")] == ["a.json", "b.json"]
    assert [item.name for item in manifests(f"{tmp_path}/a.json,c.json")] == ["a.json,c.json"]
    with pytest.raises(InputError, match=f"^{tmp_path}/z.json: found no such file"):
        manifests(f"{tmp_path}/a.json,{tmp_path}/z.json")


def test_a_snapshot_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTSIM_UNPACKED_MIB", "1")
    with zipfile.ZipFile(tmp_path / "snapshot.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("snapshot.json", " " * (2 << 20))
    with pytest.raises(InputError, match=r"snapshot\.json: found more than 1 MiB when unpacked"):
        manifests(tmp_path / "snapshot.zip")


def test_objects_one_after_another_are_documents(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f"\n{json.dumps(node('a'))}\n{json.dumps(pod('p'))} \n")
    assert [item.name for item in manifests(tmp_path / "a.json")] == ["a", "p"]
    (tmp_path / "a.json").write_text(f"{json.dumps(node('a'))}\n{{")
    with pytest.raises(InputError, match="expected JSON"):
        manifests(tmp_path / "a.json")


def test_the_last_state_of_a_watched_object_counts(tmp_path: Path) -> None:
    states = [("ADDED", node("a")), ("ADDED", pod("p")), ("ADDED", pod("q")), ("MODIFIED", pod("p", nodeName="a")),
              ("DELETED", pod("q")), ("BOOKMARK", {"kind": "Pod", "metadata": {}})]  # fmt: skip
    events = [{"type": kind, "object": body} for kind, body in states]
    (tmp_path / "a.json").write_text("".join(map(json.dumps, events)))
    found = manifests(tmp_path / "a.json")
    assert [(item.name, item.part("spec").get("nodeName")) for item in found] == [("a", None), ("p", "a")]
    (tmp_path / "a.json").write_text(json.dumps({"type": "ERROR", "object": {"kind": "Status", "message": "too old"}}))
    with pytest.raises(InputError, match="found 'too old', expected objects"):
        manifests(tmp_path / "a.json")


def test_answers_without_objects_are_refused_with_their_words(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("Error from server (Forbidden): nodes is forbidden\nmore\n")
    with pytest.raises(
        InputError, match=r"found 'Error from server \(Forbidden\): nodes is forbidden', expected Kubern"
    ):
        manifests(tmp_path / "a.json")
    (tmp_path / "a.json").write_text(
        json.dumps({"kind": "Status", "status": "Failure", "message": "nodes is forbidden"})
    )
    with pytest.raises(InputError, match="found 'nodes is forbidden', expected objects"):
        manifests(tmp_path / "a.json")


def test_notices_have_the_first_object_as_example() -> None:
    notices = Notices({"old": 1})
    for name in ("a/p", "a/q"):
        counted_about(notices, name)
        notices["seen"] += 1
        notices.update(["seen", "listed"])
    counted_about(notices, "")
    notices["old"] += 1
    assert notices.lines == ["listed: 2, such as a/p", "old: 2", "seen: 4, such as a/p"]
    assert Notices(notices).lines == notices.lines and notices == {"old": 2, "seen": 4, "listed": 2}
    counted_about(Counter(), "a/p")
