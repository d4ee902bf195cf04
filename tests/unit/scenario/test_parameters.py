"""The help of a run: one line for every parameter, in their order, with every value of the choices."""

from __future__ import annotations

import dataclasses
import inspect
import re

import pytest

import fastsim as fs
from fastsim.engine.online.plan import GPU_PICKS, QUEUES
from fastsim.scenario.compat import SYSTEMS
from fastsim.scenario.fields import FIELDS, GROUPS
from fastsim.scenario.parameters import PARAMETERS
from fastsim.scenario.run_rules import NODE_LOSS, PREEMPT
from fastsim.scenario.scenario import RECORDS


def test_every_field_of_a_scenario_is_described() -> None:
    assert [field.name for field in dataclasses.fields(fs.Scenario)] == list(PARAMETERS)
    assert {field.group for field in FIELDS} == {*GROUPS}


def test_help_of_simulate_has_a_line_for_every_parameter() -> None:
    text = inspect.getdoc(fs.simulate) or ""
    named = re.findall(r"^    (\w+): ", text.partition("Args:\n")[2], re.MULTILINE)
    assert named == list(inspect.signature(fs.simulate).parameters)
    assert ">>> simulate(" in text and max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("queue", [value for value in QUEUES if not value.endswith("_skip")]), ("gpu_pick", GPU_PICKS),
        ("record", RECORDS), ("preempt", PREEMPT), ("on_node_loss", NODE_LOSS), ("compat", SYSTEMS),
    ],
)  # fmt: skip
def test_choices_are_listed(name: str, values: list[str]) -> None:
    words = set(re.findall(r"[\w-]+", PARAMETERS[name]))
    assert set(values) <= words
    choices = {field.name: field.choices for field in FIELDS}[name]
    assert not choices or choices == tuple(values)
