"""Sweeps: the product of the lists in a TOML file, one folder for each run, one table of them all.

A key is a field of :class:`fastsim.spec.Scenario` (not ``out``, ``log`` and ``name``), an option of generated jobs, or
one of ``policy_names`` and ``cutoff_rates``. A list, or ``{from, to, points}`` for equal steps without a leading 0,
stands for one run for each of its values; runs come in the order of the keys below, the last key varying fastest. This
is the load sweep of the Gavel paper, small::

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
``-t``                                      ``until_s``, simulated: no result depends on how fast a machine is
``--solver``                                none: every linear program is solved by HiGHS
``-v``                                      ``record = "all"`` keeps tasks and timeline
==========================================  ====================================================================

A folder has the name of what was listed, as in ``policy=fifo,rate_per_hour=0.2,seed=0``. A run that is complete is not
run again; a folder of that name with another run in it is an error.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fastsim.errors import ResultError, ScenarioError
from fastsim.simulation import simulate_many
from fastsim.spec import UNDECIDED, Scenario
from fastsim.spelling import suggestion

if TYPE_CHECKING:
    import polars as pl

    from fastsim.simulation import Progress

JOB_KEYS = ("rate_per_hour", "jobs", "split", "durations", "multi_gpu", "priorities", "slos", "warm_start")
"""Options of generated jobs that are keys of their own."""
WINDOWED = ("synth:gavel", "synth:synergy")
"""Generators whose jobs go on arriving as long as a window needs them."""
OWN_KEYS = ("policy_names", "cutoff_rates")
FIELDS = tuple(item.name for item in dataclasses.fields(Scenario) if item.name not in UNDECIDED)
KEYS = ("cluster", "policy", *JOB_KEYS, *(name for name in FIELDS if name not in ("cluster", "policy", "seed")), "seed")
"""What may be listed, in the order of the runs."""
LISTED = ("deschedule",)
"""Fields whose one value is a list."""
TABLE = "sweep.parquet"
"""The table of all runs, in the folder of the sweep."""
LONGEST = 150
"""Characters of a folder's name."""


class Run(NamedTuple):
    """One run of a sweep: its folder's name, what was listed for it, and the scenario."""

    name: str
    listed: dict[str, Any]
    scenario: Scenario


def sweep_from_toml(path: str | Path) -> list[Run]:
    """The runs of a file; mistakes name the key."""
    try:
        values = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(str(path), error.strerror or str(error), "a readable file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(str(path), str(error), "a TOML file") from None
    return sweep_of(values, str(path))


def sweep_of(values: Mapping[str, Any], where: str = "sweep") -> list[Run]:
    """The runs of these keys; ``where`` begins the text of every error."""
    _refuse_unknown(values, where)
    listed = {name: _values(values[name], f"{where}: {name}") for name in KEYS if _is_listed(name, values.get(name))}
    fixed = {name: values[name] for name in KEYS if name in values and name not in listed}
    cutoffs = _cutoffs(values.get("cutoff_rates", {}), f"{where}: cutoff_rates")
    found = []
    for choice in itertools.product(*listed.values()):
        chosen = dict(zip(listed, choice, strict=True))
        if _is_cut(fixed | chosen, cutoffs):
            continue
        found.append((chosen, _scenario(fixed | chosen, values.get("policy_names"), where)))
    if not found:
        raise ScenarioError(where, "no run below the cutoff rates", "at least one")
    names = _names(found)
    return [Run(name, chosen, scenario) for name, (chosen, scenario) in zip(names, found, strict=True)]


def swept(runs: Sequence[Run], out: str | Path, workers: int = 1, progress: Progress | None = None) -> pl.DataFrame:
    """Run what is not complete in this folder, and write the table of all runs there.

    ``progress`` is told how many runs of this sweep are complete. Stopped, the same call goes on.
    """
    import polars as pl

    from fastsim.result import Result, write_table
    from fastsim.tabular import replacing

    folder = Path(out)
    missing = [run for run in runs if not _is_complete(folder / run.name, run.scenario)]
    done = len(runs) - len(missing)

    def told(more: int) -> None:
        if progress is not None:
            progress(done + more)

    simulate_many([run.scenario.with_(out=str(folder / run.name)) for run in missing], workers, told)
    rows = []
    for run in runs:
        row = Result.load(folder / run.name).summary
        rows.append(pl.DataFrame({"run": [run.name], **{name: [value] for name, value in run.listed.items()}}))
        rows[-1] = rows[-1].hstack(row.drop(run.listed, strict=False))
    table = pl.concat(rows, how="diagonal_relaxed")
    with replacing(folder / TABLE) as partial:
        write_table(partial, "sweep", table)
    return table


def _refuse_unknown(values: Mapping[str, Any], where: str) -> None:
    for name in values:
        if name not in (*KEYS, *OWN_KEYS):
            expected = f"keys among {', '.join((*KEYS, *OWN_KEYS))}"
            raise ScenarioError(f"{where}: {name}", "an unknown key", expected, suggestion(name, [*KEYS, *OWN_KEYS]))
    if values.get("policy_names") not in (None, "gavel"):
        raise ScenarioError(f"{where}: policy_names", repr(values["policy_names"]), "'gavel', or no such key")


def _is_listed(name: str, value: Any) -> bool:
    if name in LISTED:
        return isinstance(value, list) and all(isinstance(item, list) for item in value)
    return isinstance(value, list) or (isinstance(value, dict) and name in JOB_KEYS)


def _values(value: Any, where: str) -> list[Any]:
    if isinstance(value, dict):
        return _steps(value, where)
    if not value:
        raise ScenarioError(where, "an empty list", "at least one value")
    for at, item in enumerate(value):
        if value.index(item) != at:
            raise ScenarioError(f"{where}[{at}]", f"{item!r} once more", "each value once")
    return list(value)


def _steps(table: Mapping[str, Any], where: str) -> list[Any]:
    """Equal steps from one number to another, without a 0 at the beginning."""
    numbers = [table.get(name) for name in ("from", "to")]
    points = table.get("points")
    plain = all(isinstance(item, int | float) and not isinstance(item, bool) and item >= 0 for item in numbers)
    if len(table) != 3 or not plain or not isinstance(points, int) or isinstance(points, bool) or points < 1:
        raise ScenarioError(where, str(dict(table)), "{ from = A, to = B, points = N } with 0 <= A and 0 <= B")
    low, high = (float(item) for item in numbers if item is not None)
    step = (high - low) / max(points - 1, 1)
    made = [low + k * step for k in range(points)]
    made[-1] = high if points > 1 else low
    kept = made[1:] if made[0] == 0 else made
    if not kept:
        raise ScenarioError(where, str(dict(table)), "a number besides 0")
    return list(kept)


def _cutoffs(given: Any, where: str) -> dict[str, dict[str, float]]:
    if isinstance(given, str):
        try:
            given = json.loads(Path(given).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ScenarioError(where, f"{given}: {error}", "a table, or a JSON file of one") from None
    if not isinstance(given, dict):
        raise ScenarioError(where, type(given).__name__, "a table of clusters, each with rates by policy")
    for cluster, rates in given.items():
        if not isinstance(rates, dict):
            raise ScenarioError(f"{where}.{cluster}", repr(rates), "rates by policy, jobs per hour")
        for policy, rate in rates.items():
            if not isinstance(rate, int | float) or isinstance(rate, bool):
                raise ScenarioError(f"{where}.{cluster}.{policy}", repr(rate), "jobs per hour")
    return given


def _is_cut(chosen: Mapping[str, Any], cutoffs: Mapping[str, Mapping[str, float]]) -> bool:
    cluster = str(chosen.get("cluster", ""))
    head = cluster.partition("?")[0]
    for name in (cluster, head, head.removeprefix("gavel:")):
        cutoff = cutoffs.get(name, {}).get(str(chosen.get("policy", "")))
        if cutoff is not None and chosen.get("rate_per_hour") is not None:
            return bool(chosen["rate_per_hour"] >= cutoff)
    return False


def _scenario(chosen: Mapping[str, Any], policy_names: str | None, where: str) -> Scenario:
    fields = {name: value for name, value in chosen.items() if name in FIELDS}
    fields.setdefault("record", "summary")
    if policy_names is not None:
        from fastsim.policies.rounds.names import ORIGINAL_NAMES

        name = fields.get("policy")
        if name not in ORIGINAL_NAMES:
            hint = suggestion(str(name), list(ORIGINAL_NAMES))
            raise ScenarioError(f"{where}: policy", repr(name), f"one of {', '.join(ORIGINAL_NAMES)}", hint)
        fields["policy"] = ORIGINAL_NAMES[name]
    fields["workload"] = _workload(chosen, where)
    scenario = Scenario.from_dict(fields, where)
    for problem in scenario.problems():
        error: Any = problem.error
        place = str(error.where) if str(error.where).startswith(problem.path) else f"{problem.path}: {error.where}"
        raise ScenarioError(f"{where}: {place}", error.found, error.expected, error.do)
    return scenario


def _workload(chosen: Mapping[str, Any], where: str) -> Any:
    """The text of the jobs: the options of generated ones are keys of the sweep."""
    text = chosen.get("workload", "synth:gavel")
    options = {name: chosen[name] for name in JOB_KEYS if name in chosen}
    if not isinstance(text, str) or not text.startswith("synth:"):
        if options:
            expected = f"no such key: workload {text!r} is not generated"
            raise ScenarioError(f"{where}: {next(iter(options))}", repr(next(iter(options.values()))), expected)
        return text
    kind, _, said = text.partition("?")
    known = {word.partition("=")[0] for word in said.split("&")}
    if kind in WINDOWED and "jobs" not in {*options, *known}:
        if chosen.get("window") is None:
            raise ScenarioError(f"{where}: jobs", "nothing", "a number, or a window of jobs that count")
        options["jobs"] = 1  # of a window, jobs go on arriving
    if "jobs" in options:
        options["jobs"] = _count(options["jobs"], f"{where}: jobs")
    more = {"seed": chosen.get("seed"), "rates": chosen.get("rates") if kind == "synth:gavel" else None}
    options |= {name: value for name, value in more.items() if value is not None and name not in known}
    words = [f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in options.items()]
    return f"{kind}?{'&'.join([*filter(None, [said]), *words])}"


def _count(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ScenarioError(where, repr(value), "a number of jobs above 0")
    return math.ceil(value)


def _names(found: Sequence[tuple[dict[str, Any], Scenario]]) -> Iterator[str]:
    """A name for each run; where two would be equal or one too long, it ends with the scenario's id."""
    plain = [_plain_name(chosen) for chosen, _ in found]
    count = Counter(name.lower() for name in plain)  # some file systems take capitals for the same
    for name, (_, scenario) in zip(plain, found, strict=True):
        fits = len(name) <= LONGEST and count[name.lower()] == 1
        yield name if fits else f"{name[:LONGEST]},{scenario.id[:8]}"


def _plain_name(chosen: Mapping[str, Any]) -> str:
    words = [f"{name}={_safe(value)}" for name, value in chosen.items()]
    return ",".join(words) or "run"


def _safe(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return re.sub(r"[^\w.+=-]+", "-", text, flags=re.ASCII).strip("-.") or "none"


def _is_complete(folder: Path, scenario: Scenario) -> bool:
    """Whether this very run is there; ResultError if something else is."""
    from fastsim.result import Result

    if not folder.exists():
        return False
    found = Result.load(folder).provenance.get("scenario_id")
    if found != scenario.id:
        raise ResultError(f"{folder}: found another run, expected the one of the sweep; choose another folder")
    return True
