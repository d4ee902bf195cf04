"""Preferences of pods that wait as columns; the rules themselves are in ``tests/documented``."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.errors import InputError
from fastsim.hardware.node_constraints import Constraint, Preference
from fastsim.kubernetes.controllers import pods
from fastsim.kubernetes.nodes import HOSTNAME, Taint
from fastsim.kubernetes.pod_rules.kept_parts import KeptParts
from fastsim.kubernetes.pod_rules.node_affinity import HARD, SOFT, Places
from fastsim.kubernetes.pod_rules.pod_affinity import Peers
from fastsim.kubernetes.pod_rules.preferences import image_labels, preference_columns, preference_items
from tests.objects import manifest, node, pod, written

WEB = {"app": "web"}


def term(labels: dict[str, str], **more: Any) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": labels}, "topologyKey": HOSTNAME, **more}


def soft(kind: str, weight: Any = 7, **more: Any) -> dict[str, Any]:
    return {"affinity": {kind: {SOFT: [{"weight": weight, "podAffinityTerm": term(WEB, **more)}]}}}


def preferences(waiting: dict[str, Any], *others: dict[str, Any], places: Places = Places()) -> Any:  # noqa: B008
    """Those of a pod among others."""
    listed = list(pods([manifest(item) for item in (waiting, *others)], Places(), Counter()))
    about_others = Peers(listed).preferences(listed[0])
    return preference_columns(listed[0], places, about_others, KeptParts())["preferences"]


def near(how: str, weight: int, rule: str = "near", *more: object) -> dict[str, Any]:
    name = json.dumps([how, [json.dumps(["default", {"matchLabels": WEB}])], *more])
    return preference_items([Preference(rule, weight, name, "name")])[0]


def test_pods_prefer_pods_in_both_directions() -> None:
    own = near("selected by any of", -7, "near", "")
    assert preferences(pod("a", **soft("podAntiAffinity"))) == [own]
    theirs = near("preferring", -7, "near", HOSTNAME, -7)
    assert preferences(pod("a", labels=WEB), pod("b", nodeName="n", **soft("podAntiAffinity"))) == [theirs]
    assert preferences(pod("a", labels=WEB, **soft("podAntiAffinity"))) == [own, theirs]
    hard = pod("b", nodeName="n", affinity={"podAffinity": {HARD: [term(WEB)]}})
    assert preferences(pod("a", labels=WEB), hard) == [near("requiring", 1, "required", HOSTNAME, 1)]
    assert preferences(pod("a"), hard) is preferences(pod("a", nodeName="n", **soft("podAffinity"))) is None


def test_equal_terms_of_a_pod_are_one() -> None:
    both: dict[str, Any] = {"affinity": {"podAffinity": {SOFT: [
        {"weight": weight, "podAffinityTerm": term(WEB)} for weight in (3, 4)]}}}  # fmt: skip
    assert preferences(pod("a", labels=WEB), pod("b", nodeName="n", **both)) == [
        near("preferring", 7, "near", HOSTNAME, 7)
    ]


def test_taints_and_images() -> None:
    places = Places((), (), (), (Taint("k", "", "PreferNoSchedule"),), frozenset({"image:a:latest"}))
    body = pod("a", containers=[{"image": "a"}, {"image": "a:latest"}, {"image": "b:1"}])
    assert preferences(body, places=places) == preference_items([
        Preference("taint", nodes=(Constraint("taint:k=:PreferNoSchedule", "Exists"),)),
        Preference("image", 2, topology="image:a:latest"), Preference("image", 1, topology="image:b:1"),
    ])  # fmt: skip
    spec = {"initContainers": [{}], "volumes": [{"image": {"reference": "r:5000/v"}}, {"emptyDir": {}}]}
    assert image_labels(spec, "p") == ["image::latest", "image:r:5000/v:latest"]


@pytest.mark.parametrize("weight", [0, 101, "7", True, None])
def test_weights_are_1_to_100(weight: Any) -> None:
    with pytest.raises(InputError, match=r"weight: found .*, expected 1 to 100"):
        preferences(pod("a", **soft("podAffinity", weight)))
    with pytest.raises(InputError, match=r"weight: found .*, expected 1 to 100"):
        preferences(pod("a", affinity={"nodeAffinity": {SOFT: [{"weight": weight, "preference": {}}]}}))


def test_tables_keep_preferences(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", node("n1"), node("n2"), pod("x", {"cpu": 1}, labels=WEB, nodeName="n2"),
                   pod("a", {"cpu": 1}, **soft("podAffinity")))  # fmt: skip
    text = f"kubernetes:{path}"
    direct = fs.simulate(text, text, "best_fit + preferred")
    fs.Workload.from_kubernetes(path).write(tmp_path / "pods.parquet")
    stored = fs.simulate(text, str(tmp_path / "pods.parquet"), "best_fit + preferred")
    assert direct.placements["node"].to_list() == stored.placements["node"].to_list() == ["n2", "n2"]


@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.DurationMissing")
def test_pods_of_any_kind_avoid_taints(tmp_path: Path) -> None:
    marked = node("a", spec={"taints": [{"key": "k", "effect": "PreferNoSchedule"}]})
    path = written(tmp_path / "a.json", marked, node("b"), pod("x", {"cpu": 1}, nodeName="b"))
    row = {"pod_id": 1, "submit_s": 0.0, "cpu_milli": 1000, "memory_mib": 1, "num_gpu": 0, "gpu_milli": 0}
    pods = fs.Workload.from_arrow(pa.table({name: [value] for name, value in row.items()}))
    with pytest.warns(fs.ColumnIgnored, match="preferences"):
        plain = fs.simulate(f"kubernetes:{path}", pods, "gpu_packing")
    scored = fs.simulate(f"kubernetes:{path}", pods, "gpu_packing + preferred")
    assert [one.placements.filter(pod_id=1)["node"].to_list() for one in (plain, scored)] == [["a"], ["b"]]


@pytest.mark.parametrize("bad", ["names", "sizeBytes"])
def test_images_of_other_forms_are_refused(tmp_path: Path, bad: str) -> None:
    image = {"names": ["a"], "sizeBytes": 5, bad: "x"}
    item = node("n")
    path = written(tmp_path / "a.json", {**item, "status": {**item["status"], "images": [image]}}, pod("p"))
    with pytest.raises(InputError, match=bad):
        fs.Cluster.from_kubernetes(path)
