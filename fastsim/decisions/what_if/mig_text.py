"""Layouts of boards as a table for the terminal, as JSON, and as objects for the MIG manager of NVIDIA's GPU operator.

The manager reads named configurations from a ConfigMap, and the name of each node's from the label
``nvidia.com/mig.config``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import polars as pl

from fastsim.decisions.what_if.mig_layouts import MigPlan, NodeLayout
from fastsim.hardware import mig
from fastsim.reports.text_tables import text_table

LABEL = "nvidia.com/mig.config"
"""Label of a node with the name of its configuration."""
CONFIG_MAP = "fastsim-mig-parted-config"
"""Name of the ConfigMap."""
COLUMNS = (("node", "node"), ("gpu_model", "model"), ("gpus", "GPUs"), ("before", "now"), ("after", "layout"))
LISTED = 40
"""Rows of the table in the terminal."""


def mig_text(plan: MigPlan) -> str:
    """The boards that change, node by node, and the pods that run with them."""
    rows = [row for node in plan.nodes for row in _rows(node)]
    names = ("node", "gpu_model", "gpus", "before", "after")
    table = text_table(pl.DataFrame(rows[:LISTED]), COLUMNS, names) if rows else ""
    more = f"… {len(rows) - LISTED:,} more rows\n" if len(rows) > LISTED else ""
    best = "no layouts host more" if plan.optimal else f"no layouts host more than {plan.bound:,}"
    others = f"{plan.hosted_now:,} with the layouts of now, {plan.greedy:,} with layouts chosen board by board"
    return f"{table}{more}{plan.hosted:,} of {plan.waiting:,} waiting pods run, {others}; {best}\n"


def mig_json(plan: MigPlan) -> str:
    """The same as JSON, with the layout of every GPU of the nodes that change."""
    nodes = [
        {"node": one.node, "gpu_model": one.gpu_model, "before": list(one.before), "after": list(one.after)}
        for one in plan.nodes
    ]
    return json.dumps(
        {"nodes": nodes, "waiting": plan.waiting, "hosted_now": plan.hosted_now, "greedy": plan.greedy,
         "hosted": plan.hosted, "bound": plan.bound, "optimal": plan.optimal}, indent=2,
    )  # fmt: skip


def manager_objects(plan: MigPlan) -> Iterator[dict[str, Any]]:
    """A ConfigMap with a configuration for each set of layouts, and the nodes with their labels."""
    names: dict[tuple[str, ...], str] = {}
    for node in plan.nodes:
        names.setdefault(node.after, f"fastsim-{len(names)}")
    configs = {name: _config(layouts) for layouts, name in names.items()}
    text = json.dumps({"version": "v1", "mig-configs": configs}, indent=1)
    head = {"apiVersion": "v1", "kind": "ConfigMap"}
    yield {**head, "metadata": {"name": CONFIG_MAP}, "data": {"config.yaml": text}}
    for node in plan.nodes:
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": node.node, "labels": {LABEL: names[node.after]}},
        }


def _config(layouts: Sequence[str]) -> list[dict[str, Any]]:
    """The layouts of a node's GPUs as entries of one configuration, equal ones together."""
    gpus: dict[str, list[int]] = {}
    for g, layout in enumerate(layouts):
        gpus.setdefault(layout, []).append(g)
    return [
        {"devices": devices, "mig-enabled": bool(layout), "mig-devices": dict(mig.counted(layout)) if layout else {}}
        for layout, devices in gpus.items()
    ]


def _rows(node: NodeLayout) -> list[dict[str, Any]]:
    """A row for each range of GPUs whose layouts change alike."""
    changed = [(g, pair) for g, pair in enumerate(zip(node.before, node.after, strict=True)) if pair[0] != pair[1]]
    rows = []
    for (before, after), found in groupby(changed, key=lambda one: one[1]):
        gpus = [g for g, _ in found]
        rows.append({"node": node.node, "gpu_model": node.gpu_model, "gpus": ",".join(map(str, gpus)),
                     "before": before or "whole", "after": after or "whole"})  # fmt: skip
    return rows
