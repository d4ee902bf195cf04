"""Template of a new policy: a file with a working class, its test and a project file."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from string import Template

from fastsim.errors import ResultError, ScenarioError

NAME = re.compile(r"[a-z][a-z0-9_]*")

POLICY = Template('''"""$title: One line about its purpose."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from fastsim.engine.online.plan import ScoreTerm
from fastsim.policies.online.weighted_sum import Summand
from fastsim.policies.registry import about, policy


@policy("$name")
@dataclass(frozen=True)
class $cls(Summand):
    """Fill the node with the least free GPU, and keep some CPU for the pods to come.

    score = -free milli-GPU of the node - cpu_weight * free milli-CPU; larger is better, ties go to the first node.
    """

    citation: ClassVar[str] = ""

    cpu_weight: float = field(default=0.01, metadata=about("points that a free milli-CPU costs", unit="points"))

    def term(self) -> ScoreTerm:
        """The score of a node, with weight 1; normalised to 0..100, so that it can be mixed: 0.5*$name + 0.5*fgd."""
        return ScoreTerm("python", normalise="min_max_100", scorer=self.points)

    def own_gpu_pick(self) -> str:
        """Of the node's GPUs, the one with the least left that the pod still fits on."""
        return "best"

    def points(self, nodes: Any, pod: Any) -> Any:
        """One whole number for each node; those of nodes that cannot host the pod (nodes.feasible == 0) are ignored."""
        free_milli = nodes.gpu_free.sum(axis=1)
        return -np.rint(free_milli + self.cpu_weight * nodes.cpu_free).astype(np.int64)
''')
"""The file of a policy; ``$$name``, ``$$cls`` and ``$$title`` are filled in."""

TEST = Template('''"""$title: what it decides by hand, and a whole run."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

import fastsim as fs
from fastsim.policies import registry
from $module import $cls

PODS = "synth:openb?pods=60&seed=1&tune=1.2&tune_seed=1"


def test_the_fuller_node_comes_first() -> None:
    nodes = SimpleNamespace(gpu_free=np.array([[1000, 1000], [500, 0]]), cpu_free=np.array([8000, 8000]))
    points = $cls().points(nodes, None)
    assert points[1] > points[0]


def test_a_run_ends_and_is_the_same_each_time() -> None:
    first, again = (fs.simulate("openb:10", PODS, $cls(), record="all") for _ in range(2))
    assert first.placements.equals(again.placements)
    assert first.summary["gpu_alloc_pct"].item() > 50


def test_it_has_a_name_and_can_be_mixed() -> None:
    description = registry.describe("$name")
    assert description.title and [parameter.name for parameter in description.parameters]
    fs.simulate("openb:10", PODS, "0.5*$name + 0.5*fgd(gpu_pick=best)")
''')
"""The file of its test; ``$$module`` is where the policy is imported from."""

PROJECT = Template("""[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "$distribution"
version = "0.1"
dependencies = ["fastsim-gpu"]

# Lets "fastsim run --policy $name" find the policy, once this folder is installed: pip install -e .
[project.entry-points."fastsim.policies"]
$name = "$module:$cls"

[tool.setuptools]
py-modules = ["$module"]
""")
"""The project that makes the policy a plugin."""


def new_policy(name: str, folder: str | Path = ".") -> list[Path]:
    """Write ``NAME_policy.py``, its test and a ``pyproject.toml`` to a folder; existing files are never replaced."""
    if not NAME.fullmatch(name) or keyword.iskeyword(name):
        raise ScenarioError("name of a policy", repr(name), "small letters, digits and _, such as my_policy")
    from fastsim.policies.registry import names

    if name in names():
        raise ScenarioError("name of a policy", repr(name), "one that no policy has")
    target, module = Path(folder), f"{name}_policy"
    words = {"name": name, "module": module, "cls": name.title().replace("_", ""), "title": name.replace("_", " "),
             "distribution": f"{name.replace('_', '-')}-policy"}  # fmt: skip
    texts = {f"{module}.py": POLICY, f"test_{module}.py": TEST, "pyproject.toml": PROJECT}
    files = [target / file for file in texts]
    for path in files:
        if path.exists():
            raise ScenarioError(str(path), "a file that is there", "a folder without it")
    try:
        target.mkdir(parents=True, exist_ok=True)
        for path, text in zip(files, texts.values(), strict=True):
            path.write_text(text.substitute(words), encoding="utf-8")
    except OSError as error:
        raise ResultError(f"{target}: cannot be written: {error.strerror or error}") from error
    return files
