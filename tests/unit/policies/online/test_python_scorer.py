"""A scorer of one's own: where it may come from, how it is written again, and what goes wrong on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastsim as fs
from fastsim.errors import PolicyError
from fastsim.policies import PythonScorer, parse
from fastsim.simulation.run_warnings import PointsRounded


def last_first(nodes: Any, pod: Any) -> Any:
    """Prefer large positions."""
    return np.arange(len(nodes.cpu_free))


class Lab:
    """A namespace, so that a scorer's name has a dot."""

    @staticmethod
    def score(nodes: Any, pod: Any) -> Any:
        """Prefer nothing."""
        return np.zeros(len(nodes.cpu_free), int)


def test_a_function_stands_for_itself() -> None:
    term = PythonScorer(last_first, normalise="min_max_100").term()
    assert (term.kernel, term.normalise, term.scorer) == ("python", "min_max_100", last_first)
    assert str(PythonScorer(Lab.score)) == f"python(scorer='{__name__}:Lab.score')"


def test_a_text_is_imported_and_reads_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lab_scorer.py").write_text("def points(nodes, pod):\n    return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    policy = PythonScorer("lab_scorer:points", normalise="min_max_0", gpu_pick="worst")
    scorer: Any = policy.term().scorer
    assert scorer(None, None) == 1
    assert str(policy) == "python(gpu_pick=worst, scorer='lab_scorer:points', normalise=min_max_0)"
    again: Any = parse(str(policy))
    assert again == policy
    # The function itself is written as the place it comes from.
    assert str(PythonScorer(scorer, normalise="min_max_0", gpu_pick="worst")) == str(policy)


class Compiled:
    """A callable object that is no function, as compilers of functions make them."""

    def __call__(self, nodes: Any, pod: Any) -> Any:
        """Points with halves."""
        return nodes.cpu_free * 0.5


def test_a_callable_object_of_a_compiler_is_a_scorer() -> None:
    runs = [fs.simulate("openb:5", "synth:openb?pods=9&seed=1", PythonScorer(scorer), record="all")
            for scorer in (Compiled(), lambda nodes, pod: nodes.cpu_free * 0.5)]  # fmt: skip
    assert runs[0].placements.equals(runs[1].placements)


@pytest.mark.parametrize(
    ("scorer", "found"),
    [
        ("", "''"),
        (None, "None"),
        (3, "3"),
        ("math", "'math'"),
        ("math:", "'math:'"),
        ("math:nothing", "'math:nothing' (module 'math' has no 'nothing')"),
        ("math:pi", "'math:pi', which is 3.14159"),
        ("no_such_lab:f", "'no_such_lab:f' (no module 'no_such_lab')"),
        ("collections.abc.no:f", "'collections.abc.no:f' (no module 'collections.abc.no'"),
        ("..math:f", "'..math:f' (its import failed"),
        ("collections:Counter", "'collections:Counter', which is the class Counter"),
        (int, "the class int"),
        (":f", "':f'"),
    ],
)
def test_what_is_no_scorer_is_refused_before_anything_is_placed(scorer: Any, found: str) -> None:
    with pytest.raises(PolicyError) as error:
        PythonScorer(scorer).term()
    assert error.value.where == "policy python, parameter scorer"
    assert str(error.value.found).startswith(found)
    assert error.value.expected.startswith("a function or its place as 'module:function'")


BROKEN = {
    "x = 1\nraise RuntimeError('no lab today')\n": r"its import failed at .*lab_0.py:2: RuntimeError: no lab today",
    "import nowhere_else\n": r"its import failed at .*lab_1.py:1: ModuleNotFoundError: No module named 'nowhere_else'",
    "def f(:\n": r"its import failed: SyntaxError: .*lab_2.py, line 1",
    "raise SystemExit(3)\n": r"its import failed at .*lab_3.py:1: SystemExit: 3",
    "import math\nmath.nothing\n": r"its import failed at .*lab_4.py:2: AttributeError: module 'math' has no",
}  # fmt: skip


def test_a_module_that_fails_in_its_own_way_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for number, (code, message) in enumerate(BROKEN.items()):
        (tmp_path / f"lab_{number}.py").write_text(code)
        with pytest.raises(PolicyError, match=message) as caught:
            PythonScorer(f"lab_{number}:f").term()
        assert caught.value.exit_code == 2 and "\n" not in str(caught.value)


def played(scorer: Any) -> Any:
    return fs.simulate("openb:6?seed=1", "synth:openb?pods=10&seed=2", PythonScorer(scorer), seed=1).placements


def test_floats_are_rounded_halves_to_the_even_number() -> None:
    def whole(nodes: Any, pod: Any) -> Any:
        return np.array([0, 2, 2, 1, 2, 2])

    def floats(nodes: Any, pod: Any) -> Any:
        return np.where(nodes.feasible != 0, np.array([0.4, 1.5, 2.5, 1.4, 2.4, 1.6]), np.nan)

    with pytest.warns(PointsRounded):
        assert played(floats).equals(played(whole))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_points_without_a_whole_number_are_refused(value: float) -> None:
    with pytest.raises(PolicyError, match="for the node at position 0, expected numbers between"):
        played(lambda nodes, pod: np.full(len(nodes.cpu_free), value))
