"""Texts of a consolidation."""

from __future__ import annotations

import json

from fastsim.decisions.what_if.consolidation import Consolidation, Emptied, Move
from fastsim.decisions.what_if.consolidation_text import plan_json, plan_text

PLAN = Consolidation(
    (Emptied("n3", (), 15.0, 0.5), Emptied("n1", (Move("default/a", "n1", "n2", (0, 1), 1),), 35.0, 5.0)),
    {f"s{n}": "it runs the control plane" for n in range(12)}, 1, True,
)  # fmt: skip


def test_moves_sums_and_what_stays_are_told() -> None:
    text = plan_text(PLAN)
    assert "2 of 14 nodes can be emptied by 1 moves in 1 batches, which saves 50 W and 5.5 $ an hour; no set" in text
    assert (
        "default/a n2 0,1 1 35 5" in " ".join(text.split())
        and "stays: s9: it runs" in text
        and "stays: 2 more nodes" in text
    )
    assert "$" not in plan_text(Consolidation((Emptied("n", (), 1.0, None),), {}, 1, False))


def test_json_has_every_node() -> None:
    record = json.loads(plan_json(PLAN))
    [move] = record["nodes"][1]["moves"]
    assert move == {"pod": "default/a", "source": "n1", "target": "n2", "gpus": [0, 1], "batch": 1}
    assert record["price_per_h"] == 5.5 and record["power_w"] == 50 and len(record["stay"]) == 12
