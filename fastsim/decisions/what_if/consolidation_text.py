"""A consolidation as a table for the terminal, and as JSON."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from fastsim.decisions.what_if.consolidation import Consolidation
from fastsim.reports.text_tables import text_table

COLUMNS = (("node", "node"), ("pod", "pod"), ("target", "to"), ("gpus", "devices"), ("batch", "batch"),
           ("power_w", "W saved"), ("price_per_h", "$/h saved"))  # fmt: skip
NAMED = 10
"""Nodes that stay, of which the text has the reason."""


def plan_text(plan: Consolidation) -> str:
    """The moves in their order, what they save together, and nodes that stay."""
    rows = [row for node in plan.nodes for row in _rows(node)]
    columns = [column for column in COLUMNS if column[0] != "price_per_h" or _saved(plan)["price_per_h"] is not None]
    table = text_table(pl.DataFrame(rows, infer_schema_length=None), columns, ("node", "pod", "target")) if rows else ""
    stay = [f"stays: {name}: {why}\n" for name, why in list(plan.stay.items())[:NAMED]]
    more = len(plan.stay) - NAMED
    return table + _sum(plan) + "".join(stay) + (f"stays: {more:,} more nodes\n" if more > 0 else "")


def plan_json(plan: Consolidation) -> str:
    """The same as JSON, with the reasons of all nodes that stay."""
    nodes = [
        {"node": node.node, "power_w": node.power_w, "price_per_h": node.price_per_h,
         "moves": [move._asdict() for move in node.moves]} for node in plan.nodes
    ]  # fmt: skip
    record = {"nodes": nodes, "stay": dict(plan.stay), **_saved(plan), "greedy_nodes": plan.greedy,
              "optimal": plan.optimal}  # fmt: skip
    return json.dumps(record, indent=2)


def _saved(plan: Consolidation) -> dict[str, float | None]:
    prices = [node.price_per_h for node in plan.nodes if node.price_per_h is not None]
    return {"power_w": sum(node.power_w for node in plan.nodes), "price_per_h": sum(prices) if prices else None}


def _sum(plan: Consolidation) -> str:
    saved, moves = _saved(plan), plan.moves
    price = "" if saved["price_per_h"] is None else f" and {saved['price_per_h']:,.5g} $ an hour"
    batches = max((move.batch for move in moves), default=0)
    best = "; no set of nodes is worth more" if plan.optimal else ""
    count, total = len(plan.nodes), len(plan.nodes) + len(plan.stay)
    return (f"{count:,} of {total:,} nodes can be emptied by {len(moves):,} moves in {batches:,} batches, "
            f"which saves {saved['power_w']:,.5g} W{price}{best}\n")  # fmt: skip


def _rows(node: Any) -> list[dict[str, Any]]:
    """A row for each move, the first with what the node saves; one row for a node without any."""
    saved = {"power_w": node.power_w, "price_per_h": node.price_per_h}
    moves = [
        {"pod": move.pod, "target": move.target, "gpus": ",".join(map(str, move.gpus)) or None, "batch": move.batch}
        for move in node.moves
    ] or [dict.fromkeys(("pod", "target", "gpus", "batch"))]
    return [{"node": node.node, **move, **(saved if n == 0 else dict.fromkeys(saved))} for n, move in enumerate(moves)]
