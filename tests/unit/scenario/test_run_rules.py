"""The rules of a run: their texts, their tables, and what has no meaning together."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fastsim.errors import ScenarioError
from fastsim.scenario.run_rules import NO_RULES, Rules, quotas_from, quotas_text, weights_from, weights_text


def test_quotas_from_a_text_and_from_a_table_are_the_same() -> None:
    table = {"anna": {"cpu_milli": 64_000, "gpu_milli": 8000}, "*": {"gpu_milli": 500}}
    assert quotas_from("anna:gpu_milli=8000, cpu_milli=64000; *:gpu_milli=500") == table == quotas_from(table)
    assert quotas_from("") == {}


def test_texts_survive_any_name() -> None:
    quotas = {"a;b:c,d=e%": {"memory_mib": 2**53 - 1}, "": {"gpu_milli": 0}, "*": {}}
    assert quotas_from(quotas_text(quotas)) == quotas
    weights = {"a=1,b": 0.1, "": 2.0}
    assert weights_from(weights_text(weights)) == weights


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("anna", "quotas: found 'anna'"),
        ("anna:gpu=3", "quotas: anna: found a limit of 'gpu', expected limits of cpu_milli"),
        ("anna:gpu_milli=-1", "quotas: anna: gpu_milli: found -1.0"),
        ("anna:gpu_milli=1.5", "quotas: anna: gpu_milli: found 1.5"),
        ("anna:gpu_milli=x", "quotas: anna: found 'gpu_milli=x'"),
        ({"anna": {"gpu_milli": True}}, "quotas: anna: gpu_milli: found True"),
        ({"anna": 3}, "quotas: anna: found 3, expected names and numbers, such as {'gpu_milli': 8000} for 8 GPUs"),
        (3, "quotas: found int"),
    ],
)
def test_quotas_that_mean_nothing(given: Any, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        quotas_from(given)


@pytest.mark.parametrize("given", ["anna=0", "anna=-1", "anna=inf", "anna", {"anna": "2"}, {"anna": math.nan}])
def test_weights_that_mean_nothing(given: Any) -> None:
    with pytest.raises(ScenarioError, match="weights"):
        weights_from(given)


def test_limits_of_a_tenant_are_its_own_or_everybodys() -> None:
    rules = Rules(quotas={"anna": {"gpu_milli": 5}, "*": {"cpu_milli": 7}})
    assert rules.limits("anna") == (math.inf, math.inf, 5)
    assert rules.limits("bert") == rules.limits(None) == (7, math.inf, math.inf)
    assert NO_RULES.limits("anna") == (math.inf, math.inf, math.inf)
    assert (Rules(weights={"": 3.0}).weight(None), NO_RULES.weight("anna")) == (3.0, 1.0)


@pytest.mark.parametrize(("every_s", "kept_s"), [(None, 0.0), (0.0, 7.5), (2.0, 6.0), (8.0, 0.0), (7.5, 7.5)])
def test_work_that_is_kept(every_s: float | None, kept_s: float) -> None:
    assert Rules(checkpoint_every_s=every_s).kept_s(7.5) == kept_s


def test_no_more_is_kept_than_was_worked() -> None:
    every_s, worked_s = 4.89, math.nextafter(618 * 4.89, 0)
    assert math.floor(worked_s / every_s) * every_s > worked_s
    assert Rules(checkpoint_every_s=every_s).kept_s(worked_s) == worked_s


@pytest.mark.parametrize(
    ("rules", "queue", "columns", "deschedules", "said"),
    [
        (Rules(preempt="priority"), "easy", (), False, "preempt: found 'priority' with queue='easy'"),
        (NO_RULES, "conservative", ("gang_size",), False, "queue: found 'conservative' with a gang_size column"),
        (NO_RULES, "fifo", ("gang_size",), True, "deschedule: found a workload with a gang_size column"),
        (Rules(on_node_loss="requeue"), "drop", (), False, "on_node_loss: found 'requeue' with queue='drop'"),
    ],
)
def test_what_has_no_meaning_together(
    rules: Rules, queue: str, columns: tuple[str, ...], deschedules: bool, said: str
) -> None:
    with pytest.raises(ScenarioError, match=said):
        rules.refuse(queue, columns, deschedules)
    NO_RULES.refuse("fifo", columns)


@pytest.mark.parametrize("weight", [0.0, 1e-10, 1e10, 1e308])
def test_weights_have_limits(weight: float) -> None:
    with pytest.raises(ScenarioError, match=r"weights: anna: found .*, expected a number from 1e-09 to 1e\+09"):
        weights_from({"anna": weight})
    assert weights_from({"anna": 1e9, "ben": 1e-9}) == {"anna": 1e9, "ben": 1e-9}


def test_quotas_have_a_stated_limit() -> None:
    with pytest.raises(ScenarioError, match=r"quotas: anna: gpu_milli: found .*, expected a whole .* below 2\*\*53"):
        quotas_from({"anna": {"gpu_milli": 2**53}})
