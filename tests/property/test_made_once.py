"""A run makes its cluster, workload and policy once, in every engine, with telemetry and without."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import fastsim as fs
from fastsim.cluster import texts as clusters
from fastsim.policies import expression
from fastsim.workload import texts as workloads
from tests.engines import RUNS

MAKERS = ((clusters, "_cluster_of"), (workloads, "_opened_pods"), (expression, "policy_from_text"))
"""Functions that make an object of a text."""


@pytest.mark.parametrize("telemetry", [None, 600.0])
@pytest.mark.parametrize("engine", RUNS)
def test_each_object_is_made_once(engine: str, telemetry: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()

    def counted(module: Any, name: str) -> None:
        make = getattr(module, name)

        def one_more(*arguments: Any, **options: Any) -> Any:
            calls[name] += 1
            return make(*arguments, **options)

        monkeypatch.setattr(module, name, one_more)

    for module, name in MAKERS:
        counted(module, name)
    fs.simulate(**RUNS[engine], telemetry=telemetry)
    assert calls == {name: 1 for _, name in MAKERS}
