"""Prices of nodes: texts, mappings and files of tariffs, and what an addition costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastsim.errors import FastsimError, InputError
from fastsim.experiments.node_prices import TARIFF, node_prices_from, price_per_h


def test_texts_mappings_and_files(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("node_type,reserved,spot\ng2,7.5,4\nt4,0.8,\n")
    assert node_prices_from(None) == {}
    assert node_prices_from("g2=12.5& t4 =1") == node_prices_from({"g2": 12.5, "t4": 1}) == {
        TARIFF: {"g2": 12.5, "t4": 1.0}
    }  # fmt: skip
    tariffs = node_prices_from(str(path))
    assert list(tariffs) == ["reserved", "spot"] and tariffs["reserved"] == {"g2": 7.5, "t4": 0.8}
    assert price_per_h(tariffs, "2*t4+g2", {"t4": 2, "g2": 1}) == {"reserved": pytest.approx(9.1), "spot": None}


def test_an_addition_may_have_its_own_price() -> None:
    tariffs = node_prices_from({"node:n1": 3, "g2": 5, "g2+t4": 5.5, "t4": 1})
    assert price_per_h(tariffs, "node:n1", {}) == {TARIFF: 3}
    assert price_per_h(tariffs, "g2+t4", {"g2": 1, "t4": 1}) == {TARIFF: 5.5}
    assert price_per_h({}, "g2", {"g2": 1}) == {}


def test_a_file_is_priced_by_its_name_or_by_its_nodes(tmp_path: Path) -> None:
    path = tmp_path / "tmpl.json.gz"
    path.touch()
    big, small = ["big-0", "p4d.24xlarge", "A100"], ["small-0", "cpu"]
    for name in (str(path), path.name, "tmpl", *big):
        assert price_per_h(node_prices_from({name: 32, "g2": 1}), str(path), {}, [big]) == {TARIFF: 32}
    both = node_prices_from({"p4d.24xlarge": 32, "cpu": 2})
    assert price_per_h(both, str(path), {}, [big, small, small]) == {TARIFF: 36}
    assert price_per_h(node_prices_from({"tmpl": 30}), str(path), {}, [big, small]) == {TARIFF: 30}
    assert price_per_h(node_prices_from({"n1": 3}), "node:n1", {}, [["n1", "cpu"]]) == {TARIFF: 3}
    none = "none of '.*tmpl.json.gz' or 'tmpl.json.gz' or 'tmpl' or 'big-0' or 'p4d.24xlarge' or 'A100', expected"
    with pytest.raises(InputError, match=none):
        price_per_h(node_prices_from("g2=1"), str(path), {}, [big])


@pytest.mark.parametrize("what", ["g2", "=3", "g2=3&", "g2=", "g2=-1", "g2=nan", "g2=inf", {"g2": "much"}])
def test_what_is_no_price_is_refused(what: Any) -> None:
    with pytest.raises(FastsimError, match="node prices"):
        node_prices_from(what)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("node_type\ng2\n", "the column node_type alone"),
        ("kind,spot\ng2,1\n", "node_type"),
        ("node_type,spot\ng2,1\ng2,2\n", ":3: node_type: found 'g2'"),
        ("node_type,spot\ng2,cheap\n", ":2: spot: found 'cheap'"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        node_prices_from(str(path))


def test_a_type_without_a_price_is_named() -> None:
    with pytest.raises(InputError, match="node prices: found none of 'g3', expected a price of it beside g2"):
        price_per_h(node_prices_from("g2=1"), "g3", {"g3": 1})
