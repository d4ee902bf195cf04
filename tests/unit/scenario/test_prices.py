"""Prices by hand: zones, clouds, times of change, quirks, refusals."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from fastsim.errors import InputError, ScenarioError
from fastsim.scenario.prices import Prices
from tests.conftest import SHARED

HOUR = 3600.0
GOLDEN = SHARED / "golden/gavel/prices"


def record(instance: str, zone: str, time: str, price: Any) -> dict[str, Any]:
    return {"InstanceType": instance, "AvailabilityZone": zone, "Timestamp": time, "SpotPrice": price}


def folder(path: Path, records: list[dict[str, Any]], **zones: str) -> Path:
    """A folder of prices; `zones` are Azure's files."""
    (path / "aws/logs/us-east-1").mkdir(parents=True)
    (path / "azure/logs").mkdir(parents=True)
    (path / "aws/logs/us-east-1/a.json").write_text(json.dumps({"SpotPriceHistory": records}))
    for zone, text in zones.items():
        (path / f"azure/logs/{zone}.csv").write_text(text)
    return path


RECORDS = [  # newest first, as AWS answers
    record("p2.xlarge", "a", "2020-01-01T12:00:00.000Z", "0.10"),
    record("p2.xlarge", "b", "2020-01-01T05:00:00.000Z", "0.15"),
    record("p2.xlarge", "a", "2020-01-01T04:00:00.000Z", "0.20"),
    record("p3.2xlarge", "a", "2020-03-01T00:00:00.000Z", "0.90"),
]
EAST = "Date,NC6,NC6s v2,NC6s v3\n01/01/2020,$0.30,,$0.95\n01/03/2020,$0.05,$0.50,\n"
WEST = "Date,NC6,NC6s v2,NC6s v3\n01/02/2020,$0.18,$0.60,$0.80\n"


def test_fixed_prices() -> None:
    prices = Prices.fixed({"v100": 2.48, "k80": 0.45})
    assert prices.at(0).tolist() == prices.at(1e9).tolist() == [2.48, 0.45]
    assert prices.next_change_s(-1) == prices.next_change_s(0) == math.inf
    assert prices.restricted(["k80"]).at(5).tolist() == [0.45]
    with pytest.raises(ValueError, match="read-only"):
        prices.at(0)[0] = 1


def test_each_instance_type_has_its_own_beginning_and_zones_their_first_price_before(tmp_path: Path) -> None:
    prices = Prices.from_folder(folder(tmp_path, RECORDS), clouds=["aws"])
    # From 04:00 on zone b costs 0.15 already, though its record is of 05:00.
    assert prices.at(0).tolist() == pytest.approx([0.15, 0.225, 0.90])
    assert prices.next_change_s(0) == 8 * HOUR
    assert prices.at(8 * HOUR - 1e-6).tolist() == prices.at(-5).tolist() == prices.at(0).tolist()
    assert prices.at(8 * HOUR).tolist() == pytest.approx([0.10, 0.15, 0.90])
    assert prices.next_change_s(8 * HOUR) == math.inf


def test_the_cheapest_zone_or_the_last_one(tmp_path: Path) -> None:
    path = folder(tmp_path, RECORDS, east=EAST, west=WEST)
    prices = Prices.from_folder(path, clouds=["azure"])
    assert prices.at(0).tolist() == [0.18, 0.50, 0.80]
    assert prices.next_change_s(0) == 48 * HOUR and prices.at(48 * HOUR).tolist() == [0.05, 0.50, 0.80]
    last = Prices.from_folder(path, clouds=["azure"], azure_last_zone=True)
    assert last.at(1e9).tolist() == [0.18, 0.60, 0.80] and last.next_change_s(0) == math.inf


def test_the_cheapest_cloud_and_chosen_models(tmp_path: Path) -> None:
    path = folder(tmp_path, RECORDS, east=EAST, west=WEST)
    prices = Prices.from_folder(path, gpu_models=["v100", "k80"])
    assert prices.gpu_models == ("v100", "k80") and prices.at(0).tolist() == [0.74, 0.135]
    assert prices.next_change_s(0) == 8 * HOUR and prices.at(8 * HOUR).tolist() == [0.74, 0.10]
    only = Prices.from_folder(tmp_path / "none", clouds=["gcp"])
    assert only.at(0).tolist() == [0.135, 0.43, 0.74] and only.next_change_s(0) == math.inf


@pytest.mark.skipif(not GOLDEN.exists(), reason="reference data not found (set FASTSIM_SHARED)")
def test_the_recorded_folder_by_hand() -> None:
    prices = Prices.from_folder(GOLDEN)
    assert prices.at(0).tolist() == pytest.approx([0.135, 1.5 * 0.27, 0.61])
    assert prices.next_change_s(0) == 12 * HOUR
    assert prices.at(12 * HOUR).tolist() == pytest.approx([0.08, 1.5 * 0.08, 0.61])
    assert prices.next_change_s(12 * HOUR) == 24 * HOUR
    assert prices.at(24 * HOUR).tolist() == pytest.approx([0.08, 1.5 * 0.08, 0.50])
    aws = Prices.from_folder(GOLDEN, clouds=["aws"], gpu_models=["v100"])
    assert [aws.at(hour * HOUR)[0] for hour in (0, 2, 6, 24)] == [0.918, 0.918, 0.7, 0.65]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clouds": ["ibm"]}, "found 'ibm', expected some of: aws, gcp, azure"),
        ({"clouds": []}, "k80: found no price at no cloud"),
        ({"gpu_models": ["t4"]}, "found 't4', expected some of: k80"),
        ({"clouds": ["azure"]}, "azure/logs: found no files"),
    ],
)
def test_odd_choices_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises((InputError, ScenarioError), match=message):
        Prices.from_folder(folder(tmp_path, RECORDS), **options)


@pytest.mark.parametrize(
    ("records", "east", "message"),
    [
        ([record("p2.xlarge", "a", "yesterday", 1)], EAST, r"SpotPriceHistory\[0\]: found .*yesterday"),
        ([{"InstanceType": "p2.xlarge"}], EAST, r"SpotPriceHistory\[0\]: found 'Timestamp'"),
        ([record("p2.xlarge", "a", "2020-01-01T00:00:00.000Z", "-1")], EAST, "found price -1"),
        (RECORDS, "Day,NC6\n", "east.csv:1: found Day,NC6"),
        (RECORDS, "Date,NC6\n31/01/2020,$1\n", "east.csv:2: found .*31/01/2020"),
        (RECORDS, "Date,NC6\n01/31/2020,free\n", "east.csv:2: found .*free"),
        (RECORDS, "Date,NC6\n01/31/2020\n", "east.csv:2: found 1 fields, expected 2"),
    ],
)
def test_records_that_cannot_be_read(tmp_path: Path, records: list[dict[str, Any]], east: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Prices.from_folder(folder(tmp_path, records, east=east))


def test_files_that_are_no_prices(tmp_path: Path) -> None:
    path = folder(tmp_path, RECORDS, east=EAST)
    (path / "azure/logs/east.csv").write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"east\.csv: found .*expected text"):
        Prices.from_folder(path)
    (path / "aws/logs/us-east-1/a.json").write_text("[]")
    with pytest.raises(InputError, match="expected JSON with a list SpotPriceHistory"):
        Prices.from_folder(path)
    with pytest.raises(InputError, match="found no such folder"):
        Prices.from_folder(tmp_path / "none")


def test_odd_prices_are_refused() -> None:
    for price in (-1.0, 1e7, 1e300, float("inf"), float("nan")):
        with pytest.raises(InputError, match=r"prices: found \S+ \$/h, expected 0 to 1,000,000 \$/h of one GPU"):
            Prices.fixed({"k80": price})
    assert Prices.fixed({"k80": 1e6}).at(0.0) == [1e6]
    with pytest.raises(InputError, match="none of v100, expected one of every GPU model of the cluster, as of k80"):
        Prices.fixed({"k80": 1.0}).restricted(["v100"])
