"""Layouts in words: equal neighbours in one row, and one configuration for nodes with the same layouts."""

from __future__ import annotations

import json

import fastsim as fs
from fastsim.decisions.what_if.mig_layouts import MigPlan, NodeLayout
from fastsim.decisions.what_if.mig_text import LISTED, manager_objects, mig_json, mig_text


def plan_of(*nodes: NodeLayout, bound: int = 9) -> MigPlan:
    return MigPlan(nodes, fs.Cluster.mix(t4=1), 12, 2, 5, 9, bound)


def layouts_of(name: str) -> NodeLayout:
    return NodeLayout(name, "A100-80GB", ("", "", "7*1g.10gb"), ("2*3g.40gb", "2*3g.40gb", ""))


def test_equal_changes_of_neighbours_are_one_row() -> None:
    text = mig_text(plan_of(layouts_of("n1"), bound=11))
    assert "n1    A100-80GB  0,1   whole      2*3g.40gb" in text and "2     7*1g.10gb  whole" in text
    assert "9 of 12 waiting pods run, 2 with the layouts of now, 5 with layouts chosen board by board" in text
    assert text.endswith("no layouts host more than 11\n")


def test_a_plan_without_changes_has_no_table_and_a_long_one_is_cut() -> None:
    assert mig_text(plan_of()).startswith("9 of 12 waiting pods run")
    assert f"… {2 * LISTED - LISTED:,} more rows" in mig_text(plan_of(*(layouts_of(f"n{n}") for n in range(LISTED))))


def test_nodes_with_the_same_layouts_share_a_configuration() -> None:
    config, first, second = manager_objects(plan_of(layouts_of("n1"), layouts_of("n2")))
    configs = json.loads(config["data"]["config.yaml"])["mig-configs"]
    assert list(configs) == [first["metadata"]["labels"]["nvidia.com/mig.config"]]
    assert first["metadata"]["labels"] == second["metadata"]["labels"]
    assert [entry["devices"] for entry in configs["fastsim-0"]] == [[0, 1], [2]]
    assert json.loads(mig_json(plan_of(layouts_of("n1"))))["optimal"] is True
