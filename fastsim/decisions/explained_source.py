"""The source of an explanation: a result, a scenario or the folder of a saved run; and its pods or jobs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastsim.engine.result import Result
from fastsim.errors import InputError, ScenarioError
from fastsim.foundation.option_texts import elements, path_of
from fastsim.scenario.scenario import Scenario

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.workload import Workload

Source = Result | Scenario | str | os.PathLike[str]
Names = Sequence[int | str] | int | str
SOURCE = "a result, a Scenario or the folder of a saved run"


def origin_of(source: Source, allow_code: bool, objects: dict[str, Any]) -> tuple[Scenario, Result | None]:
    """The scenario to repeat, and its saved result if there is one."""
    if isinstance(source, Scenario):
        return source.with_(**objects), None
    folder = source if isinstance(source, Result) else path_of("explain", source, SOURCE)
    result = folder if isinstance(folder, Result) else Result.load(folder)
    where = "result" if isinstance(source, Result) else str(Path(source))
    return result.origin(where, allow_code, **objects), result


def refuse_other_inputs(
    scenario: Scenario, cluster: Cluster, workload: Workload, provenance: Mapping[str, Any]
) -> None:
    """InputError if the cluster or the workload is another one than that of the saved run."""
    for field, content in (("cluster", cluster), ("workload", workload)):
        now, then = content.checksum(), provenance[field]["sha256"]
        if now != then:
            found, expected = f"content with checksum {now[:12]}", f"{then[:12]} as when the run was made"
            raise InputError(f"{field} {getattr(scenario, field)!r}", found, expected, "run it again")


def names_of(pods: Names, jobs: Names = ()) -> list[int | str]:
    """Ids and names of pods, or of jobs by their own word."""
    names = elements("explain: pods", pods, "ids or names of pods", alone=(int, str))
    other = elements("explain: jobs", jobs, "ids or names of jobs", alone=(int, str))
    if names and other:
        raise ScenarioError("explain", f"{len(names)} pods and {len(other)} jobs", "one of both words")
    return [*names, *other]


def names_or_sample(pods: Names, sample: int, jobs: Names = ()) -> list[int | str]:
    """The names; ScenarioError unless there are either names or the size of a sample."""
    names = names_of(pods, jobs)
    if bool(names) == bool(sample) or sample < 0:
        raise ScenarioError("explain", f"{len(names)} pods and sample={sample}", "either pods or a sample of them")
    return names
