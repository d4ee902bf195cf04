"""Files whose policies import a module, in any spelling, through every reader of a scenario: nothing is imported."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import io
import json
import os
import random
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import fastsim as fs
from fastsim.cli.main import exit_code
from fastsim.decisions.explain import explain
from fastsim.engine.checkpoints.folder import STATE, working_folder
from fastsim.engine.checkpoints.state import RunState
from fastsim.errors import FastsimError
from fastsim.experiments.isolated_runs import saved_run_ratios
from fastsim.experiments.load_limit import knees
from fastsim.experiments.sweep.sweep import sweep_from_toml
from fastsim.foundation.nested_text import toml_value
from fastsim.policies import registry
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.simulate import played
from tests.fuzz import policy_spellings, trial
from tests.fuzz.trial import Trial
from tests.hostile_files import MODULE, write_runs

PODS = {"cluster": "openb:2", "workload": "synth:openb?pods=2"}
JOBS = {"cluster": "gavel:1:1:1", "workload": "synth:gavel", "jobs": 1, "until_s": 100.0}
SEEMING = ("this", "antigravity", "fastsim.points")
"""Modules besides the planted one that texts name."""


class Watch(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Has the planted module, and notes when it is looked for."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        """The planted module."""
        if name.partition(".")[0] == MODULE or name in SEEMING:
            self.seen.append(name)
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its scorer."""
        vars(module)["points"] = lambda nodes, pod: nodes.cpu_free


@contextlib.contextmanager
def watched() -> Iterator[Watch]:
    """Inside, modules that policies name can be imported, and are noted."""
    watch = Watch()
    kept = {name: sys.modules.pop(name) for name in (MODULE, *SEEMING) if name in sys.modules}
    sys.meta_path.insert(0, watch)
    try:
        yield watch
    finally:
        sys.meta_path.remove(watch)
        for name in watch.seen:
            sys.modules.pop(name, None)
        sys.modules.update(kept)


def scenario_toml(policy: str, folder: Path, draw: random.Random) -> None:
    """Run a scenario's file."""
    played(Scenario.from_toml(_toml_file(folder, PODS, policy, draw)))


def _toml_file(folder: Path, values: dict[str, Any], policy: str, draw: random.Random) -> Path:
    key, text = policy_spellings.toml_key("policy", draw), policy_spellings.toml(policy, draw)
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    lines.insert(draw.randint(0, len(lines)), f"{key} = {text}")
    path = folder / "file.toml"
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    return path


def scenario_json(policy: str, folder: Path, draw: random.Random) -> None:
    """Run a scenario in JSON."""
    members = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in PODS.items()]
    members.append(f"{policy_spellings.json_text('policy', draw)}: {policy_spellings.json_text(policy, draw)}")
    played(Scenario.from_json("{" + ", ".join(members) + "}"))


def provenance(policy: str, folder: Path, draw: random.Random) -> None:
    """Run the scenario of a saved run."""
    played(Scenario.from_provenance({"scenario": PODS | {"policy": policy}}, "run"))


def sweep(policy: str, folder: Path, draw: random.Random) -> None:
    """Run the first and the last run of a sweep's file."""
    text = policy_spellings.toml(policy, draw)
    form = draw.choice(("policy = {p}", "policy = ['fgd', {p}]", "zip = [{{policy = [{p}], seed = [1]}}]",
                        "policy = '{{x}}'\nvars = {{x = [{p}]}}", "policy = '{{x}}'\nvars = {{x = {p}}}",
                        "policy = [{p}, {p}]\nseed = [1, 2]"))  # fmt: skip
    lines = [f"{name} = {json.dumps(value)}" for name, value in PODS.items()]
    path = folder / "file.toml"
    path.write_bytes("\n".join([*lines, form.format(p=text)]).encode("utf-8", "surrogatepass"))
    runs = sweep_from_toml(path)
    for run in (runs[0], runs[-1]):
        played(run.scenario)


def knee(policy: str, folder: Path, draw: random.Random) -> None:
    """Search for the largest load of a policy."""
    values = toml_value(_toml_file(folder, JOBS, policy, draw).read_text(encoding="utf-8"))
    knees(values, 1.0, 2.0, tolerance=0.9, allow_code=False)


def saved_run(name: str, use: Callable[[Path], object], policy: str, folder: Path, draw: random.Random) -> None:
    """Use a saved run whose record has the policy."""
    path = folder / "runs" / name / "run.json"
    whole = path.read_text()
    record = json.loads(whole)
    record["provenance"]["scenario"]["policy"] = "PLACE"
    record["provenance"]["policy"] = draw.choice(("fgd", "PLACE"))
    changed = json.dumps(record).replace('"PLACE"', policy_spellings.json_text(policy, draw))
    try:
        path.write_bytes(changed.encode("utf-8", "surrogatepass"))
        use(path.parent)
    finally:
        path.write_text(whole)


def checkpoint(name: str, policy: str, folder: Path, draw: random.Random) -> None:
    """Resume or fork a run whose checkpoint has the policy."""
    state = _state(folder / name)
    stored = state.note["scenario"]
    changed = stored | {"fields": stored["fields"] | {"policy": policy}}
    _resumed(folder, name, lambda path: state.noted(scenario=changed).write(path / STATE), draw)


@cache
def _state(run: Path) -> RunState:
    return RunState.read(working_folder(run) / STATE)


def _resumed(folder: Path, name: str, write: Callable[[Path], object], draw: random.Random) -> None:
    place = folder / "again"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(working_folder(folder / name), working_folder(place / name))
    write(working_folder(place / name))
    if draw.random() < 0.5:
        fs.resume(place / name)
    else:
        fs.fork(place / name, place / "forked")


class Refused(Exception):
    """A verb that ended with code 2 and its message."""


def verb(words: Sequence[str], policy: str, folder: Path, draw: random.Random) -> None:
    """Run a verb that reads a file with the policy."""
    _toml_file(folder, PODS, policy, draw)
    _called([word.format(folder=folder) for word in words])


def defaults(policy: str, folder: Path, draw: random.Random) -> None:
    """Run a verb whose options are in a file of defaults, with the policy as the value of any option of its own."""
    name, words = draw.choice((
        ("run", ("--cluster", "openb:2", "--workload", "synth:openb?pods=2")),
        ("plan", ("--cluster", "openb:2", "--workload", "synth:openb?pods=2", "--add", "g2", "--workers", "1")),
    ))  # fmt: skip
    path = folder / "defaults.toml"
    line = f"{policy_spellings.toml_key('policy', draw)} = {policy_spellings.toml(policy, draw)}"
    path.write_bytes(f"[{policy_spellings.toml_key(name, draw)}]\n{line}\n".encode("utf-8", "surrogatepass"))
    with patch.dict(os.environ, {"FASTSIM_DEFAULTS": str(path)}):
        _called([name, *words])


def _called(words: list[str]) -> None:
    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        code = exit_code(words)
    if code:
        lines = [line for line in err.getvalue().splitlines() if "warning:" not in line]
        assert code == 2 and len(lines) == 1, (code, lines)
        raise Refused(lines[0])


Read = Callable[[str, Path, random.Random], None]
READERS: dict[str, Read] = {
    "a scenario in TOML": scenario_toml, "a scenario in JSON": scenario_json, "a provenance": provenance,
    "a sweep": sweep, "a search of loads": knee, "a checkpoint": partial(checkpoint, "stopped"),
    "a checkpoint of jobs": partial(checkpoint, "stopped_jobs"), "defaults of options": defaults,
    "explain": partial(saved_run, "pods", lambda run: explain(run, sample=1)),
    "fairness": partial(saved_run, "jobs", saved_run_ratios),
    "run": partial(verb, ("run", "--scenario", "{folder}/file.toml")),
    "plan": partial(verb, ("plan", "--scenario", "{folder}/file.toml", "--add", "g2", "--workers", "1")),
    "sweep run": partial(verb, ("sweep", "run", "{folder}/file.toml", "-o", "{folder}/swept", "--dry-run")),
}  # fmt: skip
"""Everything that reads a policy from a file."""
OF_RUNS = ("a checkpoint", "a checkpoint of jobs", "explain", "fairness")
"""Readers of saved runs and checkpoints."""


def _is_code(policy: str) -> bool:
    """Whether the policy imports a module where that is allowed."""
    with watched() as watch:
        with contextlib.suppress(FastsimError):
            registry.placing(policy).plan(*_INPUTS)
        return bool(watch.seen)


_INPUTS: Any = (fs.Cluster.preset("openb"), fs.Workload.synth("openb", pods=1))


def tried(name: str, folder: Path, seed: int) -> str:
    """Read one file with one reader."""
    draw, read = random.Random(f"{name} {seed}"), READERS[name]
    policy = policy_spellings.policy(draw)
    with warnings.catch_warnings(), watched() as watch:
        warnings.simplefilter("ignore")
        try:
            read(policy, folder, draw)
            refused = ""
        except (FastsimError, Refused) as error:
            refused = str(error)
            trial.refuse_unclear(refused)
    assert not watch.seen, f"{policy!r} looked for {watch.seen}"
    is_code = _is_code(policy)
    assert refused or not is_code, f"{policy!r} was taken"
    return "valid" if is_code else f"refused: {refused}"


def prepare(name: str) -> Trial:
    """A trial of one reader."""
    folder = trial.folder("code")
    if name in OF_RUNS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            write_runs(folder)
    return partial(tried, name, folder)


TARGETS: dict[str, Callable[[], Trial]] = {f"code in {name}": partial(prepare, name) for name in READERS}
"""Trials by name; a case is valid if the policy would run if that were allowed."""
