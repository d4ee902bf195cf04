"""A dashboard for Grafana over the readings of GPUs, under the names of any exporter.

The layout is the table ``telemetry/tables/grafana_dashboard.json``. In it ``{{util_pct}}`` stands for the series of a
quantity, narrowed to the nodes that are chosen on the page and turned into our units, ``{{node}}`` for the label of a
node, and ``[[node]]`` for its value in a legend.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from fastsim.telemetry.metric_names import LABELS, Labels, Metric, metrics

TABLES = Path(__file__).parent / "tables"


def dashboard_json(profile: str = "dcgm2", names: str | os.PathLike[str] | None = None) -> str:
    """The dashboard as JSON, to be imported by Grafana, for readings under these names."""
    known = {metric.quantity: metric for metric in metrics(profile, names)}
    labels = LABELS[profile]
    layout = json.loads((TABLES / "grafana_dashboard.json").read_text(encoding="utf-8"))
    return json.dumps(_filled(layout, known, labels), indent=2) + "\n"


def _filled(part: Any, known: dict[str, Metric], labels: Labels) -> Any:
    if isinstance(part, dict):
        return {key: _filled(value, known, labels) for key, value in part.items()}
    if isinstance(part, list):
        return [_filled(value, known, labels) for value in part]
    if not isinstance(part, str):
        return part
    legend = re.sub(r"\[\[(\w+)\]\]", lambda name: f"{{{{{_replacement(name[1], known, labels)}}}}}", part)
    return (
        legend if legend != part else re.sub(r"\{\{(\w+)\}\}", lambda name: _replacement(name[1], known, labels), part)
    )


def _replacement(word: str, known: dict[str, Metric], labels: Labels) -> str:
    if word in Labels._fields:
        return str(getattr(labels, word)) or labels.gpu_uuid
    if word.startswith("name_of_"):
        return known[word.removeprefix("name_of_")].name
    metric = known[word]
    series = f'{metric.name}{{{labels.node}=~"$node"}}'
    return series if metric.per == 1 else f"({series} / {metric.per!r})"
