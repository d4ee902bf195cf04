"""Parameters of the estimator."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from fastsim.errors import PolicyError
from fastsim.policies.shares.pair_rate_estimator import Estimator
from tests.views import setting


def test_all_workloads_are_references_unless_fewer_are_asked_for() -> None:
    where = setting([1], [[1], [1], [1]], sizes=[1, 2, 1])
    assert Estimator().begin(where).names == ("w0", "w2")
    assert Estimator().begin(where).reference == [0, 1]
    assert len(Estimator(references=1).begin(where).reference) == 1
    assert Estimator(workloads=("w2", "w0")).begin(where).names == ("w2", "w0")
    assert str(Estimator(profiled=0.5, references=16)) == "estimator(profiled=0.5, references=16)"


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"profiled": 1.5}, "policy estimator, parameter profiled: found 1.5, expected a number from 0 to 1"),
        ({"profiled": "all"}, "parameter profiled: found 'all'"),
        ({"references": -1}, "parameter references: found -1, expected an integer of 0 or more"),
        ({"references": 2.0}, "parameter references: found 2.0"),
        ({"estimator_column_bug": 1}, "parameter estimator_column_bug: found 1, expected True or False"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        Estimator(**parameters)


def test_what_does_not_fit_the_rates_is_refused_before_the_run() -> None:
    where = setting([1], [[1], [1]], sizes=[1, 2])
    with pytest.raises(PolicyError, match="parameter references: found 2, expected at most 1"):
        Estimator(references=2).begin(where)
    with pytest.raises(PolicyError, match="parameter workloads: found 'w1', expected workloads with rates on 1 GPU"):
        Estimator(workloads=("w0", "w1")).begin(where)


def test_describing_it_imports_no_tables() -> None:
    code = (
        "import sys; import fastsim.policies.shares.pair_rate_estimator;"
        "assert not {'numpy', 'scipy', 'polars', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
