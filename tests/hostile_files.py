"""Files that name code, one of each kind that a verb reads, and the words of every verb that reads them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

import fastsim as fs
from fastsim.cli.main import commands
from fastsim.engine.checkpoints.clock import Checkpoints
from fastsim.engine.checkpoints.folder import STATE, working_folder
from fastsim.engine.checkpoints.state import RunState
from fastsim.scenario.scenario import Scenario
from fastsim.simulation import simulate as simulation

MODULE, MARK = "planted", "imported"
CALL = f"(scorer='{MODULE}:points')"


def in_letters(text: str, a: int) -> str:
    """The text in the letters of another alphabet of Unicode, which has its letter a at this place."""
    return "".join(chr(ord(letter) - ord("a") + a) for letter in text)


ALPHABETS = {
    "full-width": 0xFF41, "script": 0x1D4EA, "bold": 0x1D41A, "double-struck": 0x1D552, "monospace": 0x1D68A,
    "fraktur": 0x1D51E, "circled": 0x24D0, "upper case": ord("A"),
}  # fmt: skip
"""Alphabets; Python's parser takes letters of all but the last two for those of ASCII."""
NAMES = {
    "plain": "python", "one letter": "pytho\u207f",
    **{alphabet: in_letters("python", a) for alphabet, a in ALPHABETS.items()},
}  # fmt: skip
"""Spellings of the policy's name."""
FORMS = {
    "alone": "{name}" + CALL, "first": "{name}" + CALL + " + fgd", "last": "fgd + 0.5*{name}" + CALL,
    "weighed with nothing": "fgd + 0*{name}" + CALL, "divided": "fgd + {name}" + CALL + "/3",
    "in brackets": "((fgd + 2*(({name})" + CALL + ")))", "inner": "0.5*(0.5*(fgd + {name}" + CALL + ") + pwr)",
    "blanks": " {name} ( scorer = '" + MODULE + ":points' ) ", "lines": "(fgd +\n{name} # fgd\n" + CALL + ")",
    "continued": "{name}\\\n" + CALL, "form feed": "{name}\x0c" + CALL,
    "pieces": "{name}(scorer='" + MODULE[:3] + "' '" + MODULE[3:] + ":points')",
    "escapes": "{name}(scorer='\\x70\\u006canted:points')", "triple": "{name}(scorer='''" + MODULE + ":points''')",
    "prefix": "{name}(scorer=u'" + MODULE + ":points')", "raw": "{name}(scorer=r'" + MODULE + ":points')",
    "dotted": "{name}(scorer='" + MODULE + ":points.__call__')",
    "parameters": "{name}(normalise=min_max_100, scorer='" + MODULE + ":points', gpu_pick=best)",
    "wide parameter": "{name}(" + in_letters("scorer", 0xFF41) + "='" + MODULE + ":points')",
    "attribute": "policies.{name}" + CALL, "nested": "fgd({name}" + CALL + ")", "listed": "[{name}" + CALL + "]",
}  # fmt: skip
"""Texts of policies, with a place for the name; some mean nothing, and are refused as such."""
SPELLINGS = {
    **{f"{name}, alone": FORMS["alone"].format(name=spelled) for name, spelled in NAMES.items()},
    **{f"one letter, {form}": text.format(name=NAMES["one letter"]) for form, text in FORMS.items()},
    "plain, last": FORMS["last"].format(name="python"),
    "deep": "(" * 150 + "python" + CALL + ")" * 150,
    "long": "fgd + " * 400 + "python" + CALL,
}
"""Policies that import the planted module if they are run, and texts that only look like one."""


@dataclass(frozen=True)
class Command:
    """Words of a verb beside a hostile file; ``runs`` if the verb plays the policy that the file names."""

    words: str
    runs: bool = False


TABLE = "-o x.parquet"
COMMANDS: dict[str, tuple[Command, ...]] = {
    "run": (Command("--scenario s.toml", True), Command("--scenario s.toml --strict --seed 2 -o new --force", True)),
    "resume": (Command("stopped", True), Command("stopped_jobs", True)),
    "fork": (Command("stopped -o f", True), Command("stopped_jobs -o f", True), Command("stopped --at 1 -o f", True),
             Command("stopped --policy fgd --at 1 -o f", True)),
    "sweep run": (Command("w.toml -o o --on serial", True), Command("w.toml -o o --dry-run", True),
                  Command("listed.toml -o o --on threads", True)),
    "sweep init": (Command("fgd -o init.toml --force"),),
    "sweep stats": (Command("swept --metric gpu_alloc_pct"),),
    "sweep knee": (Command("jobs.toml --low 1 --high 2", True),),
    "reproduce": (Command("pollux --list"),),
    "demo": (Command("--nodes 4 --pods 9 --workers 1 -o d --force"),),
    "compare": (Command("runs/pods runs/more --html x.html"),),
    "report": (Command("runs --html x.html --markdown x.md"),),
    "plot": (Command("jct_cdf runs/jobs -o x.html"),),
    "explain": (Command("runs/pods 0", True), Command("runs/pods --sample 1 --strict", True),
                Command("runs/jobs --at 1h", True)),
    "audit": (Command("runs/pods"),),
    "fairness": (Command("runs/jobs", True),),
    "tenants": (Command("runs/pods"),),
    **{f"import {name}": (Command(f"table.csv {TABLE}"),) for name in (
        "openb", "gavel", "gavel-rates", "sia", "pollux", "synergy", "philly", "kubernetes", "csv", "helios", "acme",
        "pai", "swf", "slurm", "alibaba", "tiresias", "opendc")},
    "import simon": (Command("table.csv -o simon.toml"),),
    "synth openb": (Command(f"--pods 3 {TABLE}"),),
    "synth kubernetes": (Command("--nodes 1 --pods 3 -o x.json"),),
    **{f"synth {name}": (Command(f"--jobs 3 {TABLE}"),) for name in ("gavel", "sia", "synergy")},
    "trace lint": (Command("synth:openb?pods=3"),),
    "trace stats": (Command("synth:openb?pods=3 -o x.html"),),
    "profile synergy": (Command("table.csv --workload lm --dataset-gb 9 --disk-mb-s 5 --samples 9 --batch-size 2 -o x"),
                        ),
    "profile gavel": (Command(f"table.csv {TABLE}"),),
    "monitor serve": (Command("runs/none"),),
    "monitor export": (Command("runs/seen -o readings"),),
    "monitor import": (Command(f"table.csv {TABLE}"),),
    "monitor plot": (Command("runs/seen -o x.html"),),
    "monitor jobs": (Command(f"runs/seen {TABLE}"),),
    "monitor dashboard": (Command("-o x.json"),),
    "plan": (Command("--scenario s.toml --add g2 --workers 1", True),
             Command("--scenario s.toml --strict --add g2 --queue fifo --p95-wait-s 9", True)),
    "consolidate": (Command("--cluster kubernetes:none.json"),),
    "mig": (Command("--cluster kubernetes:none.json"),),
    "export kubernetes": (Command("runs/pods -o x.yaml"),),
    "export sia-log": (Command("runs/jobs -o x.log"),),
    "export table": (Command("runs summary -o x.csv"),),
    "serve-extender": (Command("--snapshot none.json"),),
    "list": (Command("policies"),),
    "describe": (Command("fgd"),),
    "new-policy": (Command("mine -o mine"),),
    "guide": (Command("pods"),),
}  # fmt: skip
"""By verb: commands that read every kind of file the verb reads; services name what is not there, and end."""


def verbs(group: click.Group = commands, above: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every verb that is no group, by its full name."""
    for name, verb in group.commands.items():
        if isinstance(verb, click.Group):
            yield from verbs(verb, f"{above}{name} ")
        else:
            yield f"{above}{name}", verb


PODS: dict[str, Any] = {"cluster": "openb:5", "workload": "synth:openb?pods=9&seed=1&rate_per_hour=20"}
JOBS: dict[str, Any] = {"cluster": "gavel:2:2:2", "workload": "synth:gavel?jobs=6&rate_per_hour=8&seed=3"}


def plant(folder: Path) -> Path:
    """Write the module, which leaves a mark when it is imported; the mark."""
    mark = folder / MARK
    (folder / f"{MODULE}.py").write_text(
        f"import numpy\nopen({str(mark)!r}, 'w').close()\n"
        "def points(nodes, pod):\n    return numpy.zeros(len(nodes.cpu_free), numpy.int64)\n"
    )
    return mark


def write_runs(folder: Path) -> None:
    """Saved runs and checkpoints of every engine that reads a policy's text, all with harmless policies."""
    fs.simulate(**PODS, out=folder / "runs" / "pods")
    fs.simulate(**PODS, policy="best_fit", out=folder / "runs" / "more", record="all")
    fs.simulate(**PODS, out=folder / "runs" / "seen", telemetry=600.0)
    fs.simulate(**JOBS, policy="fifo", out=folder / "runs" / "jobs")
    stopped = (("stopped", PODS | {"policy": "fgd"}, 5), ("stopped_jobs", JOBS | {"policy": "fifo"}, 3))
    for name, fields, pods in stopped:
        scenario = Scenario.from_dict(fields | {"out": str(folder / name)})
        simulation.run(scenario, None, False, Checkpoints(pods, keep=True))
        shutil.rmtree(folder / name)
    sweep = {**PODS, "policy": ["fgd", "best_fit"], "seed": [0, 1]}
    fs.Sweep(sweep).run(folder / "swept", on="serial")


def write_files(folder: Path, policy: Any) -> None:
    """Put the policy into every file that :data:`COMMANDS` read."""
    (folder / "s.toml").write_text(toml(PODS | {"policy": policy}))
    (folder / "w.toml").write_text(toml(PODS | {"policy": policy, "seed": [0, 1]}))
    (folder / "listed.toml").write_text(toml(PODS | {"policy": ["fgd", policy]}))
    jobs = {"cluster": "gavel:2:2:2", "policy": ["fifo", policy], "jobs": 6, "workload": "synth:gavel"}
    (folder / "jobs.toml").write_text(toml(jobs))
    (folder / "table.csv").write_text(f"pod_id,policy\n1,{json.dumps(policy)}\n")
    for record in folder.rglob("run.json"):
        content = json.loads(record.read_text())
        content["provenance"]["scenario"]["policy"] = policy
        content["provenance"]["policy"] = str(policy)
        record.write_text(json.dumps(content))
    for name in ("stopped", "stopped_jobs"):
        path = working_folder(folder / name) / STATE
        state = RunState.read(path)
        stored = state.note["scenario"]
        state.noted(scenario=stored | {"fields": stored["fields"] | {"policy": policy}}).write(path)


def toml(values: dict[str, Any]) -> str:
    """A flat TOML file; a DEL is the one character that JSON leaves as it is."""
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())
