"""The dashboard: every expression is made of names that an exporter has, and nothing is left unfilled."""

from __future__ import annotations

import json
import re

import pytest

from fastsim.telemetry.grafana import dashboard_json
from fastsim.telemetry.metric_names import PROFILES, metrics


@pytest.mark.parametrize("profile", PROFILES)
def test_expressions_name_series_of_the_exporter(profile: str) -> None:
    content = json.loads(dashboard_json(profile))
    known = {metric.name for metric in metrics(profile)}
    expressions = [target["expr"] for panel in content["panels"] for target in panel["targets"]]
    assert len(expressions) == len(content["panels"]) == 10
    for expression in expressions:
        names = re.findall(r"(\w+)\{", expression)
        assert names and set(names) <= known and "{{" not in expression and "[[" not in expression
    variable = content["templating"]["list"][1]["query"]["query"]
    assert re.fullmatch(r"label_values\(\w+, [Hh]ostname\)", variable)
    assert "{{hostname}} GPU {{gpu}}" in dashboard_json("dcgm4.9")


def test_units_are_ours() -> None:
    dashboard = dashboard_json("dcgm4.9")
    assert "/ 1048576.0)" in dashboard and "/ 0.01)" in dashboard and "/ 1048576" not in dashboard_json()


def test_panels_do_not_lie_on_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(dashboard_json())["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {(place["x"] + i, place["y"] + j) for i in range(place["w"]) for j in range(place["h"])}
        assert not cells & taken
        taken |= cells
