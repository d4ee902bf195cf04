"""Options of a run as keywords: the fields of a scenario with their types, and what notebooks complete."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

import fastsim as fs
from fastsim.errors import ScenarioError
from fastsim.simulation.uses.option_types import CHECKPOINTS, INPUTS, Options

RUN = ("openb:20", "synth:openb?pods=5")


def test_options_are_the_fields_of_a_scenario_but_its_inputs() -> None:
    fields = [item.name for item in dataclasses.fields(fs.Scenario)]
    assert [*Options.__annotations__] == [*(name for name in fields if name not in INPUTS), *CHECKPOINTS]


def test_notebooks_complete_every_option_with_its_default() -> None:
    parameters = inspect.signature(fs.simulate).parameters
    assert {*INPUTS, *Options.__annotations__} <= set(parameters)
    defaults = {item.name: item.default for item in dataclasses.fields(fs.Scenario) if item.name not in INPUTS}
    assert {name: parameters[name].default for name in defaults} == defaults
    kinds = {name: parameters[name].annotation for name in Options.__annotations__}
    assert kinds["seed"] == "int" and not {name for name, kind in kinds.items() if not isinstance(kind, str | type)}
    code = fs.simulate.__code__
    assert code.co_argcount + code.co_kwonlyargcount <= 8, "options are written as **options"


def test_an_unknown_option_is_named_with_the_nearest_one() -> None:
    with pytest.raises(
        TypeError, match=r"simulate\(\) got an unexpected keyword argument 'queu'; did you mean 'queue'"
    ):
        fs.simulate(*RUN, queu="fifo")  # type: ignore[call-arg]


def test_type_checkers_know_the_types_of_options() -> None:
    with pytest.raises(ScenarioError, match="queue: found"):
        fs.simulate(*RUN, queue=3)  # type: ignore[arg-type]
