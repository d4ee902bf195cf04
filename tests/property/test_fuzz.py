"""A short form of the fuzzers: the same cases each time, none of which may end in a traceback, a signal or no end."""

from __future__ import annotations

import pytest

from tests.fuzz.targets import TARGETS
from tests.fuzz.worker import Finding, Worker
from tests.strategies import scenarios_per_run


@pytest.mark.parametrize("target", TARGETS)
def test_no_case_ends_otherwise_than_it_may(target: str) -> None:
    worker = Worker(target, TARGETS[target])
    try:
        outcomes = [worker.outcome(seed) for seed in range(scenarios_per_run(40))]
    finally:
        worker.close()
    findings = [str(outcome) for outcome in outcomes if isinstance(outcome, Finding)]
    assert not findings, "\n".join(findings)
