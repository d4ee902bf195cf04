"""The compiled floors round every operation on its own."""

from __future__ import annotations

import sys
from fractions import Fraction

from fastsim_ext import build


def test_no_fused_multiply_add() -> None:
    a, b, c = 1 + 2**-30, 1 - 2**-30, -1.0
    once_rounded = float(Fraction(a) * Fraction(b) + Fraction(c))
    assert once_rounded == -(2**-60)  # what a fused multiply-add would answer
    assert build.product_sum(a, b, c) == 0.0


def test_the_compiler_was_told() -> None:
    expected = "/fp:precise" if sys.platform == "win32" else "-ffp-contract=off"
    assert expected in build.FLAGS.split()


def test_the_build_knows_whether_it_checks() -> None:
    assert isinstance(build.CHECKED, bool)
