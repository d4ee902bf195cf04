"""Many runs at once: one result for each scenario, on any number of workers; those that several callers need, once."""

from __future__ import annotations

import dataclasses
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastsim.errors import ScenarioError, kind_of
from fastsim.experiments.executors.choice import executor
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.option_texts import elements
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.run_warnings import Message, warn
from fastsim.simulation.simulate import Progress, played

if TYPE_CHECKING:
    from fastsim.engine.result import Result

SCENARIOS = "a list of scenarios, each a Scenario or a dict of its fields"


@whole_process
def simulate_many(
    scenarios: Iterable[Scenario | Mapping[str, Any]],
    workers: int = 1,
    progress: Progress | None = None,
    threads: bool = False,
) -> list[Result]:
    """One result for each scenario, in their order; the same bytes on any number of workers.

    All scenarios are checked before the first one runs. Workers are processes, or threads of this process with
    ``threads``. Threads share clusters and workloads in memory; scorers written in Python hold the GIL, so they run one
    at a time. Spawned processes need a call under ``if __name__ == "__main__":``.
    """
    checked = [_scenario(number, item) for number, item in enumerate(elements("scenarios", scenarios, SCENARIOS))]
    for scenario in checked:
        scenario.check()
    _refuse_shared_folders(checked)
    results: list[Result] = []
    shown: set[Message] = set()
    with executor(workers, len(checked), threads) as spread:
        for scenario, (result, messages) in zip(checked, spread.map(played_without_inputs, checked), strict=True):
            results.append(dataclasses.replace(result, scenario=scenario.with_(out=None, log=None)))
            warn(set(messages) - shown, depth=2)
            shown |= set(messages)
            if progress is not None:
                progress(len(results))
    return results


def played_without_inputs(scenario: Scenario) -> tuple[Result, list[Message]]:
    """As :func:`played`; the scenario, which may be large, does not travel back with the result."""
    result, messages = played(scenario)
    return dataclasses.replace(result, scenario=None), messages


def _scenario(number: int, item: Any) -> Scenario:
    if isinstance(item, Scenario):
        return item
    if not isinstance(item, Mapping):
        found = kind_of(item)
        do = "write Scenario(cluster=..., workload=..., policy=...)"
        raise ScenarioError(f"scenarios: element {number}", found, "a Scenario or a dict of its fields", do)
    return Scenario.from_dict(item)


class SharedRuns:
    """Results by the scenarios' ids, in memory; ``folder`` is the place of files that scenarios name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._result_of: dict[str, Result] = {}

    def results(
        self, scenarios: Sequence[Scenario], workers: int = 1, progress: Progress | None = None
    ) -> list[Result]:
        """One result for each scenario, in their order; those that are known already are reported first."""
        new = {key: scenario for scenario in scenarios if (key := scenario.id) not in self._result_of}
        known = len(scenarios) - len(new)
        if known and progress is not None:
            progress(known)
        later = None if progress is None else lambda count: progress(known + count)
        self._result_of.update(zip(new, simulate_many(new.values(), workers, later), strict=True))
        return [self._result_of[scenario.id] for scenario in scenarios]


@contextmanager
def sharing(shared: SharedRuns | None = None) -> Iterator[SharedRuns]:
    """``shared`` itself, or new ones, whose folder ends with the block."""
    if shared is not None:
        yield shared
        return
    with tempfile.TemporaryDirectory(prefix="fastsim-") as folder:
        yield SharedRuns(Path(folder))


def _refuse_shared_folders(scenarios: Sequence[Scenario]) -> None:
    folders = Counter(Path(scenario.out).absolute() for scenario in scenarios if scenario.out is not None)
    shared = [str(folder) for folder, count in folders.items() if count > 1]
    if shared:
        raise ScenarioError("scenarios: out", f"{shared[0]} more than once", "a folder for each run")
