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
"""The library counts in 64 bits: what it says of a larger amount is an overflow, not an amount."""


@pytest.mark.parametrize("row", kubernetes.quantities(), ids=lambda row: repr(row["input"]))
def test_a_quantity_is_read_as_there(row: dict[str, str]) -> None:
    text = row["input"]
    if row["ok"] == "false":
        with pytest.raises(InputError):
            quantity(text)
        return
    amount = whole(text)
    # An amount that does not fit is cut off or goes round.
    there = (amount,) if abs(amount) <= LARGEST else (LARGEST, (amount + LARGEST + 1) % 2**64 - LARGEST - 1)
    assert int(row["value"]) in there
    if abs(amount) <= LARGEST // 1000:
        assert milli(text) == int(row["milli_value"])
    if abs(amount) <= LARGEST:
        assert quantity(row["canonical"]) == quantity(text)
