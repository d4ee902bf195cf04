"""Which tests failed, read from what pytest printed, and the commands that repeat them."""

from __future__ import annotations

import runpy

from tests.style.tree import ROOT

FAILED = runpy.run_path(str(ROOT / ".ci" / "failed.py"))
LOG = """
FAILED tests/unit/test_a.py::test_x - ValueError: no number
FAILED tests/unit/test_a.py::test_y[fifo - two] - AssertionError: x[1] - y
FAILED tests/unit/test_a.py::test_z[a]
\x1b[31mFAILED\x1b[0m tests/unit/test_c.py::\x1b[1mtest_w\x1b[0m - boom
ERROR tests/unit/test_b.py - ImportError: no module
ERROR tests/unit/test_b.py::test_v - fixture
ERROR: usage
FAILED to do something
FAILED tests/unit/test_a.py::test_x - ValueError: no number
"""


def test_names_of_failed_tests() -> None:
    assert FAILED["failed_tests"](LOG.splitlines()) == [
        "tests/unit/test_a.py::test_x",
        "tests/unit/test_a.py::test_y[fifo - two]",
        "tests/unit/test_a.py::test_z[a]",
        "tests/unit/test_c.py::test_w",
        "tests/unit/test_b.py",
        "tests/unit/test_b.py::test_v",
    ]


def test_commands_that_repeat_them() -> None:
    assert FAILED["repeating"]("a.py::b", "FASTSIM_LONG=1") == "FASTSIM_LONG=1 python -m pytest a.py::b -n 0"
    assert FAILED["repeating"]("a.py::b[c d]") == "python -m pytest 'a.py::b[c d]' -n 0"
