"""One run of a sweep: from one combination of values to a checked scenario."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import fastsim.simulation.simulate  # noqa: F401  registers the checks of a scenario's texts
from fastsim.errors import FastsimError, ScenarioError, short, suggestion
from fastsim.experiments.sweep.axes import Combination, Mistakes, located
from fastsim.foundation.option_texts import parted
from fastsim.scenario.round_texts import refuse_beyond, window_from
from fastsim.scenario.run_inputs import workload_from
from fastsim.scenario.scenario import UNDECIDED, Scenario

JOB_KEYS = (
    "rate_per_hour", "jobs", "pods", "style", "split", "durations", "multi_gpu", "priorities", "slos", "warm_start",
)  # fmt: skip
"""Options of generated pods or jobs that are keys of their own."""
WINDOWED = ("synth:gavel", "synth:synergy")
"""Generators whose jobs go on arriving after a window."""
FIELDS = tuple(item.name for item in dataclasses.fields(Scenario) if item.name not in UNDECIDED)
PLACEHOLDER = re.compile(r"\{(\w+)\}")
"""A placeholder in a text, replaced by another value of the run."""


class Builder:
    """Builds the scenarios of one sweep; checks of a value are shared by all of them."""

    def __init__(self, where: str, policy_names: str | None, mistakes: Mistakes) -> None:
        self.where, self.policy_names, self.mistakes = where, policy_names, mistakes
        self._checked: dict[tuple[str, str], FastsimError | None] = {}

    def scenario(self, fixed: Mapping[str, Any], choice: Combination) -> Scenario | None:
        """The scenario of these values; None if it is invalid, with the errors added to ``mistakes``."""
        try:
            scenario = self._unchecked(_filled(dict(fixed) | choice.values, self.where))
        except FastsimError as error:
            self.mistakes.add(error)
            return None
        problems = scenario.problems(self._checked)
        for problem in problems:
            path = choice.paths.get(problem.path, problem.path)
            mistake = problem.error or ScenarioError(problem.path, problem.text, "nothing wrong")
            self.mistakes.add(located(mistake, self.where, path, problem.path))
        if problems:
            return None
        try:
            _refuse_mismatch(scenario)
        except FastsimError as error:
            name = str(getattr(error, "where", ""))
            self.mistakes.add(located(error, self.where, choice.paths.get(name, name), name))
            return None
        return scenario

    def _unchecked(self, chosen: dict[str, Any]) -> Scenario:
        fields = {name: value for name, value in chosen.items() if name in FIELDS}
        if self.policy_names is not None:
            fields["policy"] = _original(fields.get("policy"), self.where)
        fields["workload"] = workload_text(chosen, self.where)
        return Scenario.from_dict(fields, self.where)


def _filled(chosen: dict[str, Any], where: str) -> dict[str, Any]:
    """The values, with ``{name}`` in texts replaced by the value of that name."""

    def value(match: re.Match[str]) -> str:
        if match[1] not in chosen or match[1] == name:
            names = ", ".join(key for key in chosen if key != name)
            raise ScenarioError(f"{where}: {name}", match[0], f"a name among {names}", suggestion(match[1], chosen))
        replacement = chosen[match[1]]
        return f"{replacement:g}" if isinstance(replacement, float) else str(replacement)

    filled = dict(chosen)
    for name, text in chosen.items():
        if isinstance(text, str):
            filled[name] = PLACEHOLDER.sub(value, text)
    return filled


@lru_cache(maxsize=256)
def _policy(text: str) -> Any:
    from fastsim.policies import registry

    return registry.parse(text)


def _refuse_mismatch(scenario: Scenario) -> None:
    """Refuse options that have no effect in the engine of this policy."""
    from fastsim.policies import registry
    from fastsim.simulation.uses.options import refuse_options

    policy = _policy(scenario.policy) if isinstance(scenario.policy, str) else scenario.policy
    refuse_options(scenario, registry.engine_of(policy))
    if scenario.window is not None and parted(str(scenario.workload))[0] in WINDOWED:
        refuse_beyond(window_from(scenario.window), workload_from(scenario.workload)[0])


def _original(name: Any, where: str) -> str:
    from fastsim.policies.registry import ORIGINAL_NAMES

    if not isinstance(name, str) or name not in ORIGINAL_NAMES:
        hint = suggestion(str(name), list(ORIGINAL_NAMES))
        raise ScenarioError(f"{where}: policy", short(name), f"one of {', '.join(ORIGINAL_NAMES)}", hint)
    policy: str = ORIGINAL_NAMES[name]
    return policy


def workload_text(chosen: Mapping[str, Any], where: str) -> Any:
    """The text of the workload: options of generated ones are keys of the sweep."""
    text = chosen.get("workload", "synth:gavel")
    options = {name: chosen[name] for name in JOB_KEYS if name in chosen}
    if not isinstance(text, str) or not text.startswith("synth:"):
        if options:
            expected = f"no such key: workload {text!r} is not generated"
            raise ScenarioError(f"{where}: {next(iter(options))}", repr(next(iter(options.values()))), expected)
        return text
    kind, words = parted(text)
    given = {word.partition("=")[0] for word in words}
    if kind in WINDOWED and "jobs" not in {*options, *given}:
        if chosen.get("window") is None:
            raise ScenarioError(f"{where}: jobs", "nothing", "a number, or a window of jobs that count")
        first_last = window_from(chosen["window"])
        assert first_last is not None
        options["jobs"] = first_last[1]  # after a window, jobs go on arriving
    for name in ("jobs", "pods"):
        if name in options:
            options[name] = _count(options[name], f"{where}: {name}")
    more = {"seed": chosen.get("seed"), "rates": chosen.get("rates") if kind == "synth:gavel" else None}
    options |= {name: value for name, value in more.items() if value is not None and name not in given}
    query = text.strip().removeprefix(kind).removeprefix("?")  # as it stands there, escapes and all
    words = [f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in options.items()]
    return f"{kind}?{'&'.join([*filter(None, [query]), *words])}"


def _count(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ScenarioError(where, repr(value), f"a number of {where.rpartition(' ')[2]} above 0")
    return math.ceil(value)


EFFORT = re.compile(r"(?:^|[?&])(pods|jobs|rate_per_hour|tune|load)=([0-9.e+-]+)")


def effort(scenario: Scenario) -> tuple[float, float]:
    """Relative size of a run: its number of jobs or pods, and its load (jobs per hour)."""
    options: dict[str, float] = {}
    for name, number in EFFORT.findall(str(scenario.workload)):
        try:
            options[name] = float(number)
        except ValueError:
            continue
    window = str(scenario.window or "").partition(":")[2]
    jobs = float(window) if window.isdecimal() else options.get("jobs", options.get("pods", 0.0))
    return jobs * options.get("tune", 1.0), options.get("rate_per_hour", options.get("load", 0.0))
