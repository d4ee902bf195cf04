"""Specifications of charts: plain JSON, with marks that tell lines apart."""

from __future__ import annotations

import json

from fastsim.reports.charts.vega import NodeQuantity, heat, heat_at, lines


def test_lines_have_marks_that_tell_them_apart() -> None:
    spec = lines(["fgd", "random"], "x", "y")
    assert json.loads(json.dumps(spec)) == spec
    marks = [layer["encoding"]["shape"]["scale"]["range"] for layer in spec["layer"] if "shape" in layer["encoding"]]
    assert marks == [["circle", "square"]]


def test_nodes_have_a_moment() -> None:
    watts = NodeQuantity("power", "power (W)", 100.0, 800.0)
    for spec in (heat("time (h)", watts), heat_at(watts)):
        assert json.loads(json.dumps(spec)) == spec
        assert [param["name"] for param in spec["params"]] == ["chosen", "moment"]
