"""Looks of series: stable per policy, distinct in grey and for the colour-blind."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from fastsim.policies import registry
from fastsim.reports.charts.series_looks import COLOURS, FAMILIES, LOOKS, channels, look, looks

SEEN = {
    "all": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
"""What is seen of linear red, green and blue by all cones or without a kind (Machado, Oliveira, Fernandes 2009)."""
LEAST = 12.0
"""Distances in CIELAB from about 2.3 on can just be seen; lines need several times that."""
PAPERS = ("#ffffff", "#12161d")
"""Backgrounds of charts in light and in dark pages, the latter as in web/report.css."""


def lab(colour: str, seen: list[list[float]]) -> np.ndarray:
    """A colour as somebody with such cones sees it, in CIELAB."""
    value = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    scaled = xyz @ np.clip(np.array(seen) @ linear, 0, 1) / [0.9505, 1.0, 1.089]
    x, y, z = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("kind", SEEN)
def test_colours_differ_for_everybody(kind: str) -> None:
    assert len(COLOURS) >= 24
    for one, other in combinations(COLOURS, 2):
        least = LEAST * (2 if kind == "all" else 1)
        assert np.linalg.norm(lab(one, SEEN[kind]) - lab(other, SEEN[kind])) > least, (one, other)


@pytest.mark.parametrize("paper", PAPERS)
def test_colours_are_seen_on_white_and_on_black(paper: str) -> None:
    background = light(paper)
    for colour in COLOURS:
        low, high = sorted((background, light(colour)))
        assert (high + 0.05) / (low + 0.05) > 2, colour  # the ratio of WCAG; letters need 4.5, thin lines less


def light(colour: str) -> float:
    """Relative luminance, from CIELAB's lightness."""
    lightness = float(lab(colour, SEEN["all"])[0])
    return float(((lightness + 16) / 116) ** 3) if lightness > 8 else lightness / 903.3


def test_looks_differ_without_colours() -> None:
    every = [look(place) for place in range(LOOKS)]
    assert len({(one.dash, one.mark) for one in every}) == LOOKS
    assert len({(one.colour, one.mark) for one in every}) == LOOKS
    assert len({one.mark for one in every[:6]}) == 6


def test_a_policy_has_one_look() -> None:
    alone = looks(["fgd"])[0]
    assert looks(["random", "best_fit", "fgd"])[2] == alone == looks(["0.9*fgd + 0.1*pwr", "fgd"])[1]
    for family in FAMILIES:
        assert looks(family) == [looks([name])[0] for name in family] == looks(family[::-1])[::-1]
        assert set(family) <= set(registry.names())
    assert looks(["mine"]) == looks(["mine"])


def test_colours_are_assigned_and_not_drawn_by_lot() -> None:
    """Two policies of other families and some of the user are as different as can be."""
    names = ["fifo", "srtf", "max_min_fairness", "gandiva", "sia", "my_order", "mine", "Δ", "a policy of mine"]
    for count in range(1, len(names) + 1):
        for shown in (names[:count], names[-count:]):
            assert len({one.colour for one in looks(shown)}) == count, shown
    assert [one.colour for one in looks(["mine", "another", "third"])] == list(COLOURS[:3])
    many = [f"policy {chr(97 + place)}" for place in range(len(COLOURS))]
    assert len({one.colour for one in looks(many)}) == len(COLOURS)


def test_a_series_keeps_its_look_between_the_charts_of_a_report() -> None:
    every = ["mine", "max_min_fairness", "sia", "other"]
    whole = {name: one.colour for name, one in zip(every, looks(every), strict=True)}
    some = ["sia", "other"]
    assert looks(some)[0].colour != whole["sia"]  # alone it would have another one
    assert channels(some, "run", among=every)["color"]["scale"]["range"] == [whole[name] for name in some]


def test_series_of_one_chart_have_different_looks() -> None:
    names = [f"fgd, n={k}" for k in range(LOOKS)]
    assert len(set(looks(names))) == LOOKS and len(looks([*names, "another"])) == LOOKS + 1
    found = channels(["a", "b"], "run")
    assert set(found) == {"color", "strokeDash", "shape"} and found["shape"]["scale"]["domain"] == ["a", "b"]
