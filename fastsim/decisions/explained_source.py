"""What is explained: a result, a scenario or the folder of a saved run; and the pods or jobs of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastsim.engine.result import Result
from fastsim.errors import ScenarioError
from fastsim.foundation.option_texts import elements, path_of
from fastsim.scenario.scenario import Scenario

Source = Result | Scenario | str | os.PathLike[str]
SOURCE = "a result, a Scenario or the folder of a saved run"


def origin_of(source: Source, allow_code: bool, objects: dict[str, Any]) -> tuple[Scenario, Result | None]:
    """The scenario to repeat, and its saved result if there is one."""
    if isinstance(source, Scenario):
        return source.with_(**objects), None
    folder = source if isinstance(source, Result) else path_of("explain", source, SOURCE)
    result = folder if isinstance(folder, Result) else Result.load(folder)
    where = "result" if isinstance(source, Result) else str(Path(source))
    return result.origin(where, allow_code, **objects), result


def names_or_sample(pods: Sequence[int | str] | int | str, sample: int) -> list[int | str]:
    """The names; ScenarioError unless there are either names or the size of a sample."""
    names = elements("explain: pods", pods, "ids or names of pods", alone=(int, str))
    if bool(names) == bool(sample) or sample < 0:
        raise ScenarioError("explain", f"{len(names)} pods and sample={sample}", "either pods or a sample of them")
    return list(names)
