"""Sweeps: the product of the lists in a TOML file, one folder for each run, one table of all.

A key is a field of :class:`fastsim.scenario.scenario.Scenario` (not ``out``, ``log`` and ``name``), an option of
generated pods or jobs, or one of ``vars``, ``zip``, ``policy_names`` and ``cutoff_rates``. A list, or ``{from, to,
points}`` for equal steps without a leading 0, stands for one run for each of its values, the last key varying fastest.
Lists in a table ``[[zip]]`` go together: the first value of each, then the second. ``{name}`` in a text stands for
another value of the run, a key or one of ``[vars]``, which are names of your own, as in ``workload =
"openb:{trace}.csv?tune=1.3&tune_seed={seed}"``. This is the load sweep of the Gavel paper, small::

    cluster = ["gavel:4:4:4"]
    policy_names = "gavel"
    policy = ["fifo", "max_min_fairness_perf"]
    seed = [0, 1]
    rate_per_hour = { from = 0, to = 0.4, points = 3 }
    window = "5:15"
    compat = "gavel"

    [cutoff_rates."gavel:4:4:4"]
    fifo = 0.3

Flags of the original's ``run_sweep_continuous.py`` and ``run_sweep_static.py`` and what stands for them here:

==========================================  ====================================================================
flag                                        key
==========================================  ====================================================================
``-c``, ``--num_gpus_per_server``           ``cluster = ["gavel:36:36:36?per_server=4:4:4"]``
``-p``                                      ``policy``, with ``policy_names = "gavel"`` by the original's names;
                                            ``allox_alpha=A`` is ``allox(alpha=A)``
``--seeds``                                 ``seed``: of the jobs and of the policy
``-a -b -n`` of a load sweep                ``rate_per_hour = { from = A, to = B, points = N }``
``-a -b -n`` of a static sweep              ``jobs = { from = A, to = B, points = N }``, rounded up; all at 0 s
``-s -e``                                   ``window = "S:E"``
``-i``                                      ``round_s``
``-f``                                      ``durations``, seconds of every job
``-m``, ``--generate-multi-gpu-jobs``       ``multi_gpu = true``
``--generate-multi-priority-jobs``          ``priorities = true``
``--assign_SLOs``                           ``slos = true``
``--simulate-steady-state``                 ``warm_start = true``
``--throughputs-file``                      ``rates = "simulation_throughputs.json"``, for jobs and for runs
``--cutoff-throughputs-file``               ``cutoff_rates``: a table, or the JSON file; rates from there on are
                                            left out
``--per_instance_type_prices_dir``,         ``prices = "DIR?clouds=aws,gcp"``
``--available_clouds``
``--enable_global_queue``                   ``global_queue = true``
``--profiling_percentages``,                ``profiling``, ``references``
``--num_reference_models``
``--ideal``                                 ``ideal = true``
``-l``, ``-j``                              ``--out``, ``--workers``
``-t``                                      ``--timeout``; ``until_s`` ends a run at a simulated time instead
``-u``                                      ``fastsim sweep knee``
``--checkpoint-threshold``                  none: ``fastsim run --checkpoint``, ``fastsim fork``
``--solver``                                none: linear programs have solvers of fastsim's own
``-v``                                      ``record = "all"``, the default of sweeps
==========================================  ====================================================================

A folder is named after the values of the listed keys, as in ``policy=fifo/rate_per_hour=0.2/seed=0``
(:mod:`fastsim.experiments.sweep.store`). A complete run is not repeated; another run in a folder of that name is an
error.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastsim.errors import ScenarioError, kind_of, suggestion
from fastsim.experiments.sweep.axes import Cutoffs, Mistakes, axes_of, choices_of, cutoffs_of, is_cut
from fastsim.experiments.sweep.named_run import Run
from fastsim.experiments.sweep.run import (
    FAILED,
    PLAN,
    TABLE,
    State,
    SweepFailed,
    Watch,
    Where,
    refuse_mismatches,
    swept,
)
from fastsim.experiments.sweep.scenario_builder import FIELDS, JOB_KEYS, Builder
from fastsim.foundation.displays import html_table
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.limits.knobs import RUNS
from fastsim.foundation.nested_text import toml_value

if TYPE_CHECKING:
    import polars as pl

    from fastsim.scenario.scenario import Scenario
from fastsim.scenario.user_code import refuse_user_code

OWN_KEYS = ("policy_names", "cutoff_rates", "zip", "vars")
KEYS = ("cluster", "policy", *JOB_KEYS, *(name for name in FIELDS if name not in ("cluster", "policy", "seed")), "seed")
"""Keys that may be lists, in the order of the runs; names of ``vars`` come before them."""
LONGEST = 150
"""Most characters of a folder's name."""
NAME = re.compile(r"[A-Za-z_]\w*")

__all__ = [
    "FAILED", "JOB_KEYS", "KEYS", "OWN_KEYS", "PLAN", "TABLE", "Run", "State", "Sweep", "SweepFailed", "Watch", "Where",
    "refuse_mismatches", "sweep_from_toml", "sweep_of", "swept",
]  # fmt: skip


@whole_process
@dataclass(frozen=True, repr=False)
class Sweep:
    """Many scenarios: the keys of a sweep file, and the runs they stand for; no sweep has a hash.

    >>> sweep = Sweep({"cluster": "gavel:2:2:2", "policy": ["fifo", "isolated"], "jobs": 6, "seed": [0, 1]})
    >>> [run.name for run in sweep.runs][:2]
    ['policy=fifo/seed=0', 'policy=fifo/seed=1']
    """

    values: Mapping[str, Any]
    where: str = "sweep"
    runs: tuple[Run, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.values, Mapping):
            do = "write Sweep.from_toml(path) for a file"
            raise ScenarioError(self.where, kind_of(self.values), "a dict of the keys of a sweep", do)
        object.__setattr__(self, "runs", tuple(sweep_of(self.values, self.where)))

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str], allow_code: bool = False) -> Sweep:
        """The sweep of a file; one error lists all mistakes in it. ``allow_code`` lets policies import functions."""
        sweep = cls(_toml(path), os.fspath(path))
        refuse_sweep_code(sweep.runs, os.fspath(path), allow_code)
        return sweep

    def __repr__(self) -> str:
        return f"Sweep({self.where!r}: {len(self.runs):,} runs over {', '.join(self._axes) or 'nothing'})"

    def _repr_html_(self) -> str:
        """The first runs and their values of the listed keys, for notebooks."""
        rows = ([run.listed.get(name) for name in self._axes] for run in self.runs)
        return html_table(repr(self), self._axes, rows)

    @property
    def _axes(self) -> list[str]:
        """The listed keys."""
        return list(dict.fromkeys(name for run in self.runs for name in run.listed))

    def check(self) -> None:
        """ScenarioError that lists the runs whose policy, workload and cluster do not go together; runs nothing."""
        refuse_mismatches(self.runs, self.where)

    def run(
        self, out: str | os.PathLike[str], *, workers: int = 1, on: str = "processes", address: str | None = None,
        timeout_s: float | None = None, storage_options: Mapping[str, Any] | None = None, watch: Watch | None = None,
    ) -> pl.DataFrame:  # fmt: skip
        """Run what is not complete in this folder or URL; a row for each run.

        ``on`` is one of ``processes``, ``threads``, ``serial``, ``ray`` and ``dask``, the same bytes from each;
        ``address`` is that of a cluster of Ray or Dask. A run that takes more than ``timeout_s`` seconds fails;
        SweepFailed lists failed runs when all others are done; none begins if `check` refuses one. Processes need a
        call under ``if __name__ == "__main__":``.
        """
        where = Where(on, workers, address, timeout_s)
        return swept(self.runs, out, where=where, watch=watch, storage_options=storage_options, name=self.where)


def sweep_from_toml(path: str | Path, allow_code: bool = False) -> list[Run]:
    """The runs of a file; mistakes name the key. With ``allow_code`` policies may import functions of the user's."""
    runs = sweep_of(_toml(path), str(path))
    refuse_sweep_code(runs, str(path), allow_code)
    return runs


def refuse_sweep_code(runs: Sequence[Run], where: str, allowed: bool) -> None:
    """ScenarioError if the policy of one of these runs imports code of the user's and that is not ``allowed``."""
    if allowed:
        return
    first = {run.scenario.policy: run for run in reversed(runs)}  # policies of a file that was checked: texts
    for run in reversed(first.values()):
        refuse_user_code(run.scenario.policy, f"{where}: {run.name}", allowed)


def sweep_of(values: Mapping[str, Any], where: str = "sweep") -> list[Run]:
    """The runs of these keys, without those at or above their cutoff rates.

    ``where`` begins every error message, and one error lists all mistakes.
    """
    mistakes = Mistakes()
    names = _own_names(values.get("vars", {}), where, mistakes)
    _note_unknown(values, where, mistakes)
    flat = {**{name: values["vars"][name] for name in names}, **values}
    axes, fixed = axes_of(flat, (*names, *KEYS), where, mistakes)
    cutoffs: Cutoffs = {}
    try:
        cutoffs = cutoffs_of(values.get("cutoff_rates", {}), f"{where}: cutoff_rates")
    except ScenarioError as error:
        mistakes.add(error)
    RUNS.refuse(math.prod(len(axis.choices) for axis in axes), name=where)
    builder, scenarios = Builder(where, values.get("policy_names"), mistakes), []
    for choice in choices_of(axes):
        if not is_cut(fixed | choice.values, cutoffs):
            scenario = builder.scenario(fixed, choice)
            if scenario is not None:
                scenarios.append((choice.values, scenario))
    mistakes.check(where)
    if not scenarios:
        raise ScenarioError(where, "no run below the cutoff rates", "at least one")
    return [Run(name, *run) for name, run in zip(_names(scenarios), scenarios, strict=True)]


def _toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        return toml_value(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(str(path), error.strerror or str(error), "a readable file") from None
    except ValueError as error:
        raise ScenarioError(str(path), str(error), "a TOML file") from None


def _own_names(variables: Any, where: str, mistakes: Mistakes) -> list[str]:
    if not isinstance(variables, Mapping):
        mistakes.add(ScenarioError(f"{where}: vars", repr(variables), "a table of names of your own"))
        return []
    refused = [name for name in variables if name in (*KEYS, *OWN_KEYS) or not NAME.fullmatch(name)]
    for name in refused:
        mistakes.add(ScenarioError(f"{where}: vars.{name}", repr(name), "a name that no key has"))
    return [name for name in variables if name not in refused]


def _note_unknown(values: Mapping[str, Any], where: str, mistakes: Mistakes) -> None:
    for name in values:
        if name not in (*KEYS, *OWN_KEYS):
            expected = f"keys among {', '.join((*KEYS, *OWN_KEYS))}"
            hint = suggestion(name, [*KEYS, *OWN_KEYS])
            mistakes.add(ScenarioError(f"{where}: {name}", "an unknown key", expected, hint))
    if values.get("policy_names") not in (None, "gavel"):
        value = repr(values["policy_names"])
        mistakes.add(ScenarioError(f"{where}: policy_names", value, "'gavel', or no such key"))


def _names(scenarios: Sequence[tuple[dict[str, Any], Scenario]]) -> Iterator[str]:
    """A path for each run; one that is not unique or too long ends with the scenario's id, or with that of its values.

    Runs of one scenario may differ in values that nothing uses.
    """
    plain = [_path(chosen) for chosen, _ in scenarios]
    count = Counter(name.lower() for name in plain)  # some file systems ignore case
    longer = {name: "/".join(part[:LONGEST] for part in name.split("/")) for name in plain}
    with_id = [
        name if longer[name] == name and count[name.lower()] == 1 else f"{longer[name]}~{scenario.id[:8]}"
        for name, (_, scenario) in zip(plain, scenarios, strict=True)
    ]
    count = Counter(name.lower() for name in with_id)
    for name, path in zip(plain, with_id, strict=True):
        yield path if count[path.lower()] == 1 else f"{longer[name]}~{sha256(name.encode()).hexdigest()[:8]}"


def _path(chosen: Mapping[str, Any]) -> str:
    """One folder for each key, ``key=value`` as in hive-style datasets."""
    return "/".join(f"{name}={quote(_value_text(value), safe='()+,')}" for name, value in chosen.items()) or "run"


def _value_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(map(_value_text, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value) or "none"
