"""Quantities as Kubernetes' own library reads them, every recorded case."""

from __future__ import annotations

import pytest

from fastsim.errors import InputError
from fastsim.kubernetes.quantity import milli, quantity, whole
from tests.golden.k8s_gpu import kubernetes

pytestmark = pytest.mark.skipif(
    not kubernetes.KUBERNETES.exists(), reason="reference data not found (set FASTSIM_SHARED)"
)
LARGEST = 2**63 - 1
"""The library counts in 64 bits, and what it says of larger amounts is an overflow, not an amount."""


@pytest.mark.parametrize("row", kubernetes.quantities(), ids=lambda row: repr(row["input"]))
def test_a_quantity_is_read_as_there(row: dict[str, str]) -> None:
    text = row["input"]
    if row["ok"] == "false":
        with pytest.raises(InputError):
            quantity(text)
        return
    for found, recorded in ((whole(text), row["value"]), (milli(text), row["milli_value"])):
        assert found == int(recorded) or abs(found) > LARGEST
    if whole(text) <= LARGEST:
        assert quantity(row["canonical"]) == quantity(text)


def test_few_cases_overflow() -> None:
    good = [row["input"] for row in kubernetes.quantities() if row["ok"] == "true"]
    assert 0 < sum(milli(text) > LARGEST for text in good) < len(good) / 10
