"""Digests of the recorded runs and the published curves; ``FASTSIM_LONG=1`` runs every curve."""

from __future__ import annotations

import os

import pytest

from tests.golden.fgd.fgd import FGD
from tests.golden.fgd.published import (
    Case,
    abs_difference,
    curve_cases,
    deviations,
    digest_cases,
    digests,
    figures,
)

PRINTED = {"final_frag_gpu_milli": 1e-3, "at100_frag_gpu_milli": 1e-3}
"""Fragmentation is recorded with three decimals and summed in an unknown order; all else is exact."""
LIMITS = {"alloc_pct": 1e-9, "frag_pct": 1e-9, "frag_ratio_pct": 0.01}
"""Two decimals are printed, so two equal figures differ by float noise only; the ratio is printed per step."""

pytestmark = pytest.mark.skipif(
    bool(os.environ.get("FASTSIM_QUICK")), reason="whole runs as in test_fgd, which the checked build plays, too"
)
needs_data = pytest.mark.skipif(not digests(), reason=f"reference data not found: {FGD}")


@needs_data
@pytest.mark.parametrize("case", digest_cases(), ids=str)
def test_digest_and_totals(case: Case) -> None:
    ours, recorded = figures(case).totals, digests()[case]
    assert ours
    for name, value in ours.items():
        assert abs_difference(value, recorded[name]) <= PRINTED.get(name, 0.0), name


@needs_data
@pytest.mark.parametrize("case", curve_cases(), ids=str)
def test_published_curves(case: Case) -> None:
    found = deviations(case)
    assert {name: value for name, value in found.items() if not value <= LIMITS[name]} == {}
