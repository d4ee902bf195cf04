"""Public entries in processes that were forked before and after a run, and after polars had begun to work."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module

import fastsim as fs
from fastsim.workload import importers
from tests.cli.terminal import environment

WORDS = "words and numbers, and whatever else it is made of is an entry itself"
HARMLESS = {
    **dict.fromkeys((name for name in fs.__all__ if name.endswith("Error")), "what is raised"),
    **dict.fromkeys(("ColumnIgnored", "PodTooLarge", "NeverTried"), "warnings"),
    **dict.fromkeys(("Deschedule", "Scenario", "Telemetry", "policies", "__version__"), WORDS),
}
"""Public names that begin no work, and why."""
BESIDE = {
    "fastsim.cluster.importers": ("import_nodes",), "fastsim.cluster.published_nodes": ("import_nodes",),
    "fastsim.decisions.replay": ("replayed",),
    "fastsim.experiments.load_limit": ("knees",), "fastsim.experiments.capacity_plan": ("smallest_additions",),
    "fastsim.decisions.agents.environment": ("SchedulingEnv", "SchedulingVectorEnv"),
    "fastsim.decisions.agents.queue_environment": ("QueueEnv", "QueueVectorEnv"),
}  # fmt: skip
"""Entries in modules of their own."""
FORKED = """
import json, os, sys
from importlib import import_module
import fastsim as fs, fastsim.simulation.simulate

def entered(module, name):
    entry = getattr(import_module(module), name)
    public = [own for own in vars(entry) if not own.startswith("_")] if isinstance(entry, type) else []
    calls = {name: entry} | {f"{name}.{own}": getattr(entry, own) for own in public}
    return {own: told(call) for own, call in calls.items() if callable(call)}

def told(call, *arguments):
    try:
        return str(call(*arguments))
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def run():
    return fs.simulate("openb:4", "synth:openb?pods=5").summary["pods"].item()

def child(of):
    reading, writing = os.pipe()
    if not os.fork():
        with open(writing, "w") as file:
            json.dump(of(), file)
        os._exit(0)
    os.close(writing)
    with open(reading) as file:
        answer = json.load(file)
    os.wait()
    return answer

entries = json.load(sys.stdin)
for module, name in entries:
    getattr(import_module(module), name)
answers = [child(lambda: told(run))]
if sys.platform == "linux":
    import polars
    polars.DataFrame({"a": [1, 2]}).group_by("a").len()
    answers.append(child(lambda: told(run)))
run()
answers += [child(lambda: told(run)), child(lambda: [entered(*entry) for entry in entries])]
json.dump(answers, sys.stdout)
"""


def entries() -> Iterator[tuple[str, str]]:
    """Module and name of everything with which work begins."""
    yield from (("fastsim", name) for name in fs.__all__ if name not in HARMLESS and name != "simulate")
    for module, names in BESIDE.items():
        if "rl_" not in module or import_module("importlib.util").find_spec("gymnasium"):
            yield from ((module, name) for name in names)
    for found in pkgutil.iter_modules(importers.__path__, f"{importers.__name__}."):
        names_ = vars(import_module(found.name))
        yield from ((found.name, name) for name in names_ if name.startswith("import_"))


def test_every_entry_refuses_a_process_that_was_forked_after_a_run() -> None:
    names = [*entries()]
    done = subprocess.run(
        [sys.executable, "-c", FORKED], input=json.dumps(names), capture_output=True, text=True, timeout=120,
        env=environment(), check=True,
    )  # fmt: skip
    before, *after, told = json.loads(done.stdout)
    assert HARMLESS.keys() <= set(fs.__all__)
    assert before == "5" and len(after) == 1 + (sys.platform == "linux")
    assert all("found one that was forked after a run" in text and "'spawn'" in text for text in after)
    answers = {name: text for entry in told for name, text in entry.items()}
    assert len(answers) > 100
    assert {name for name, text in answers.items() if text != after[0]} == set()
