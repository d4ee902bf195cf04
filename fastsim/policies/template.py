"""Template of a new policy: a file with a working class, its test and a project file."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from string import Template

from fastsim.errors import ResultError, ScenarioError, suggestion

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

ORDER = Template('''"""$title: Say here in one line what it is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fastsim.policies.orders import Order
from fastsim.policies.registry import policy


@policy("$name")
@dataclass(frozen=True)
class $cls(Order):
    """Serve the job first that needs the fewest GPUs, of equal ones the one that ends soonest.

    key[j] = (GPUs[j], remaining[j], arrival[j]); the least comes first, and a minus sign before a term reverses it.
    """

    citation: ClassVar[str] = ""
    key: ClassVar[tuple[str, ...]] = ("gpus", "remaining", "arrival")
    """All terms: python -m pydoc fastsim.scenario.sort_keys"""
''')
"""The file of an order of jobs."""

ORDER_TEST = Template('''"""$title: what it decides by hand, and a whole run."""

from __future__ import annotations

import fastsim as fs
from fastsim.policies import registry
from $module import $cls

JOBS = "synth:synergy?jobs=20&rate_per_hour=40&seed=1"


def test_small_jobs_wait_less() -> None:
    waits = [fs.simulate("synergy:1", JOBS, policy).jobs for policy in ($cls(), "fcfs")]
    small = [jobs.filter(jobs["num_gpu"] == 1)["wait_s"].mean() for jobs in waits]
    assert small[0] <= small[1]


def test_a_run_ends_and_is_the_same_each_time() -> None:
    first, again = (fs.simulate("synergy:1", JOBS, $cls(), record="all") for _ in range(2))
    assert first.placements.equals(again.placements) and set(first.jobs["state"]) == {"finished"}


def test_it_has_a_name_and_takes_a_mechanism() -> None:
    assert registry.describe("$name").title
    fs.simulate("synergy:1", JOBS, "$name + tune")
''')

SHARES = Template('''"""$title: Say here in one line what it is for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from fastsim.engine.shares.plan import Allocation, RoundView, SharePlan
from fastsim.policies.allocators.equal_shares import Stateless
from fastsim.policies.registry import about, policy
from fastsim.policies.round_policy import RoundRule


class Shares(Stateless):
    """Computes the shares whenever jobs have arrived or ended."""

    def __init__(self, power: float) -> None:
        self.power = power

    def allocate(self, view: RoundView) -> Allocation | None:
        """The part of the time of each job (row) on each GPU model (column); None without jobs."""
        if not len(view):
            return None
        worth = view.weight**self.power
        gpus = np.outer(worth / worth.sum(), view.setting.gpus__g)  # each job's part of the GPUs of a model
        share = gpus / view.num_gpu[:, None]
        return Allocation.of_singles(view.job_id, share / np.maximum(share.sum(axis=1), 1.0)[:, None])


@policy("$name")
@dataclass(frozen=True)
class $cls(RoundRule):
    """Give each job a part of the cluster by its weight.

    share[j, g] = N[g] x weight[j]^power / sum of weight^power / s[j]; N[g] = GPUs of a model, s[j] = GPUs of the job.
    """

    citation: ClassVar[str] = ""

    power: float = field(default=1.0, metadata=about("0: all weights count alike; 2: heavy ones far more"))

    def begin(self, setting: Any) -> SharePlan:
        """Rounds of drawn order, as the shares favour no GPU model."""
        return SharePlan(Shares(self.power), visit="shuffled")
''')
"""The file of a policy that gives jobs shares of the time."""

SHARES_TEST = Template('''"""$title: what it decides by hand, and a whole run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fastsim as fs
from fastsim.policies import registry
from $module import $cls, Shares

JOBS = "synth:gavel?jobs=12&rate_per_hour=2&seed=1"


class View(SimpleNamespace):
    """Two jobs of one GPU, one of them three times as important, on a model with one GPU."""

    def __len__(self) -> int:
        return 2


def test_shares_follow_weights() -> None:
    view: Any = View(weight=np.array([1.0, 3.0]), num_gpu=np.array([1, 1]), job_id=np.array([0, 1]),
                     setting=SimpleNamespace(gpus__g=np.array([1])))
    allocation = Shares(1.0).allocate(view)
    assert allocation is not None and allocation.share__rg.ravel() == pytest.approx([0.25, 0.75])


def test_a_run_ends_and_is_the_same_each_time() -> None:
    first, again = (fs.simulate("gavel:2:2:2", JOBS, $cls(), record="all") for _ in range(2))
    assert first.placements.equals(again.placements) and set(first.jobs["state"]) == {"finished"}


def test_it_has_a_name_and_parameters() -> None:
    assert [parameter.name for parameter in registry.describe("$name").parameters] == ["power"]
    fs.simulate("gavel:2:2:2", JOBS, "$name(power=0)")
''')

ADAPTIVE = Template('''"""$title: Say here in one line what it is for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fastsim.engine.adaptive.plan import AdaptivePlan, AdaptiveSetting, AdaptiveView
from fastsim.policies.deciders.fixed_size_decider import FixedSizeDecider
from fastsim.policies.registry import policy
from fastsim.policies.round_policy import RoundRule


class LeastServed(FixedSizeDecider):
    """Chooses the jobs that run in the next round, and their GPU models; jobs keep their GPUs where they can."""

    def chosen(self, view: AdaptiveView) -> Mapping[int, int]:
        """The group of nodes of each job that runs: the jobs with the fewest GPU seconds choose first."""
        free = [group.gpus for group in self.setting.groups]
        group_of: dict[int, int] = {}
        for job in sorted(view.jobs, key=lambda job: (job.service_s, job.id)):
            rates = self.rates_of(job)
            for group in sorted(range(len(free)), key=lambda group: -rates[group]):
                if job.job.num_gpu <= free[group]:
                    group_of[job.id] = group
                    free[group] -= job.job.num_gpu
                    break
        return group_of


@policy("$name")
@dataclass(frozen=True)
class $cls(RoundRule):
    """Serve the jobs with the fewest GPU seconds, each on its requested GPUs of the fastest model that is free.

    A decider that changes sizes implements decide() itself: python -m pydoc fastsim.engine.adaptive.plan
    """

    citation: ClassVar[str] = ""
    engine: ClassVar[str] = "adaptive"

    def begin(self, setting: AdaptiveSetting) -> AdaptivePlan:
        """Rounds in which jobs keep their sizes and batch sizes."""
        return AdaptivePlan(LeastServed(setting), tuned=False)
''')
"""The file of a policy for adaptive jobs."""

ADAPTIVE_TEST = Template('''"""$title: a whole run."""

from __future__ import annotations

import fastsim as fs
from fastsim.policies import registry
from $module import $cls

JOBS = "synth:sia?jobs=5&seed=1"


def test_jobs_run_on_what_they_request() -> None:
    run = fs.simulate("sia:6:2:3", JOBS, $cls(), record="all")
    requested = dict(run.jobs.select("pod_id", "num_gpu").iter_rows())
    for job, gpus in run.placements.select("pod_id", "gpu_ids").iter_rows():
        assert len(gpus) <= requested[job]


def test_a_run_ends_and_is_the_same_each_time() -> None:
    first, again = (fs.simulate("sia:6:2:3", JOBS, $cls(), record="all") for _ in range(2))
    assert first.placements.equals(again.placements) and set(first.jobs["state"]) == {"finished"}


def test_it_has_a_name() -> None:
    assert registry.describe("$name").title
''')

KINDS = {
    "placement": (POLICY, TEST), "order": (ORDER, ORDER_TEST), "shares": (SHARES, SHARES_TEST),
    "adaptive": (ADAPTIVE, ADAPTIVE_TEST),
}  # fmt: skip
"""Kinds of policies, each with its file and its test: for pods, an order of jobs, shares of time, adaptive jobs."""

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


def new_policy(name: str, folder: str | Path = ".", kind: str = "placement") -> list[Path]:
    """Write ``NAME_policy.py``, its test and a ``pyproject.toml`` to a folder; existing files are never replaced.

    ``kind`` is one of ``KINDS``.
    """
    if kind not in KINDS:
        raise ScenarioError(
            "kind of a policy", repr(kind), f"one of {', '.join(KINDS)}", suggestion(kind, tuple(KINDS))
        )
    if not NAME.fullmatch(name) or keyword.iskeyword(name):
        raise ScenarioError("name of a policy", repr(name), "small letters, digits and _, such as my_policy")
    from fastsim.policies.registry import names

    if name in names():
        raise ScenarioError("name of a policy", repr(name), "one that no policy has")
    target, module = Path(folder), f"{name}_policy"
    words = {"name": name, "module": module, "cls": name.title().replace("_", ""), "title": name.replace("_", " "),
             "distribution": f"{name.replace('_', '-')}-policy"}  # fmt: skip
    own, test = KINDS[kind]
    texts = {f"{module}.py": own, f"test_{module}.py": test, "pyproject.toml": PROJECT}
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
