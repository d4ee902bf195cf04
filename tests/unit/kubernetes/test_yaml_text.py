"""YAML is measured before anything is built of it: depth, values, and what aliases repeat."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastsim.errors import InputError
from fastsim.kubernetes import yaml_text
from fastsim.kubernetes.objects import manifests
from fastsim.kubernetes.snapshot import Snapshot
from fastsim.kubernetes.yaml_text import yaml_documents

pytest.importorskip("yaml")

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


def test_documents_are_those_of_the_safe_loader() -> None:
    text = "a: &x [1, {b: null}]\nc: *x\n---\nwhen: 2024-01-01T00:00:00Z\n---\n"
    assert yaml_documents("here", text) == [
        {"a": [1, {"b": None}], "c": [1, {"b": None}]}, {"when": "2024-01-01T00:00:00Z"}, None,
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["[" * 200_000, "- " * 100_000, "{a: " * 50_000, "? " * 50_000, "[" * 101 + "]" * 101])
def test_what_is_too_deep_is_refused_before_it_is_built(text: str) -> None:
    with pytest.raises(ValueError, match=r"nested more than 100 deep|maximum nesting depth"):
        yaml_documents("here", text)


def test_aliases_count_what_they_stand_for() -> None:
    with pytest.raises(ValueError, match="aliases that stand for more than 1,000,000 values"):
        yaml_documents("here", BOMB)
    with pytest.raises(ValueError, match=r"the alias \*a inside what it stands for"):
        yaml_documents("here", "&a [1, *a]")
    with pytest.raises(ValueError, match="undefined alias"):
        yaml_documents("here", "[*a]")
    few = "".join(BOMB.splitlines(keepends=True)[:5])
    assert len(yaml_documents("here", few)[0]["a4"]) == 10


def test_values_and_numbers_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="a number to base 60"):
        yaml_documents("here", "a: 1" + ":1" * 1_000_000)
    with pytest.raises(ValueError, match="Exceeds the limit"):
        yaml_documents("here", "a: " + "1" * 5000)
    monkeypatch.setattr(yaml_text, "MOST_NODES", 10)
    assert yaml_documents("here", "[1, 2, 3, 4, 5, 6, 7, 8, 9]")
    with pytest.raises(ValueError, match="more than 10 values"):
        yaml_documents("here", "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]")


@pytest.mark.parametrize("text", ["[" * 200_000, BOMB, "&a [*a]", "kind: " + "[1," * 90 + "]" * 90])
def test_a_file_of_it_is_one_clear_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "pods.yaml").write_text(text)
    with pytest.raises(InputError, match=r"pods\.yaml: found") as raised:
        manifests(tmp_path / "pods.yaml")
    assert len(str(raised.value)) < 500


def test_names_in_mappings_are_the_texts_that_they_are_in_json() -> None:
    read = yaml_documents("here", "{7: a, true: b, 1.5: c, x: {false: [{2: d}]}, 'on': e}")
    assert read == [{"7": "a", "true": "b", "1.5": "c", "x": {"false": [{"2": "d"}]}, "on": "e"}]
    for text in ("null: 1", "!!binary aGk=: 1"):
        with pytest.raises(ValueError, match="as a name in a mapping"):
            yaml_documents("here", text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("1: a\ntrue: b", r"'1' \(line 1\) and 'true' \(line 2\)"),
        ("1: a\nx: 0\n1.0: b", r"'1' \(line 1\) and '1.0' \(line 3\)"),
        ("off: a\n0: b", r"'false' \(line 1\) and '0' \(line 2\)"),
        ("1: a\n'1': b", r"'1' \(line 1\) and '1' \(line 2\)"),
        ("x: {a: 1,\n a: 2}", r"'a' \(line 1\) and 'a' \(line 2\)"),
        ("b: &x {a: 1}\nc: {<<: *x, a: 2,\n a: 3}", r"'a' \(line 2\) and 'a' \(line 3\)"),
    ],
)
def test_no_value_is_lost_to_another_of_the_same_name(text: str, names: str) -> None:
    with pytest.raises(ValueError, match=f"names {names} in one mapping"):
        yaml_documents("here", text)


def test_a_mapping_may_replace_what_it_merges() -> None:
    assert yaml_documents("here", "b: &x {a: 1, z: 0}\nc: {<<: *x, a: 2}") == [
        {"b": {"a": 1, "z": 0}, "c": {"a": 2, "z": 0}}
    ]
    # The mapping x is merged by another one before its own values are read.
    nested = "b: {q: {x: &x {a: 1, <<: {a: 2}}}}\nc: {<<: *x, a: 2}"
    assert yaml_documents("here", nested) == [{"b": {"q": {"x": {"a": 1}}}, "c": {"a": 2}}]


def test_a_file_with_a_name_twice_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "pods.yaml").write_text("kind: Node\nmetadata:\n  labels: {1: a,\n    true: b}\n")
    with pytest.raises(InputError, match=r"pods\.yaml: found names '1' \(line 3\) and 'true' \(line 4\)"):
        manifests(tmp_path / "pods.yaml")


def test_a_snapshot_with_names_that_are_numbers_is_summed_up(tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text("kind: Node\nmetadata: {name: n, labels: {1: a, zone: b}}\nstatus: {capacity: {cpu: 1}}\n")
    assert Snapshot.read(path).checksum


def test_half_a_pair_of_surrogates_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nodes.json"
    path.write_text(r'{"kind": "Node", "metadata": {"name": "\ud800"}}')
    with pytest.raises(InputError, match=r"nodes\.json: found half a character"):
        Snapshot.read(path)
    with pytest.raises(ValueError):
        yaml_documents("here", r'name: "\ud800"')
