"""Mutants: what of a source is changed and what is left, and that the copy is as before after each of them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.style.tree import ROOT


@pytest.fixture
def mutants(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The functions of the script."""
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    return runpy.run_path(str(ROOT / ".ci" / "mutants.py"))


PYTHON = '''"""Adds 1 + 1."""
from a import b  # 1 < 2
def f(x: int = 1, *rest, scale=2.5) -> bool:
    y = max(x - 1, *rest)
    return not y <= 1e-9 or x is True
'''
COMPILED = """cimport numpy as np
cdef double f(const double[::1] x, int n = 1) noexcept nogil:
    cdef int i, k = <int> x[0] * 2
    cdef Pod* pod
    for i in range(n):
        if x[i] < x[k] and <const char*> x == NULL:
            return <double> -x[i]
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (PYTHON, "4:max>min 4:->+ 4:1>2 5:not> 5:<=>< 5:1e-9>1.000000001 5:or>and 5:True>False"),
        (COMPILED, "3:0>1 3:*>/ 3:2>3 6:<><= 6:and>or 6:==>!= 7:->+"),
    ],
)
def test_words_that_are_changed(mutants: dict[str, Any], text: str, found: str) -> None:
    changes = mutants["mutants_of"]("a.py", text)
    assert [f"{one.line}:{one.before}>{one.after}" for one in changes] == found.split()


def test_a_change_is_of_one_word(mutants: dict[str, Any]) -> None:
    for one in mutants["mutants_of"]("a.py", PYTHON):
        before, after = PYTHON.splitlines(), one.applied(PYTHON).splitlines()
        assert [k for k in range(len(before)) if before[k] != after[k]] == [one.line - 1]


def test_every_group_has_its_files(mutants: dict[str, Any]) -> None:
    for group in mutants["GROUPS"].values():
        assert all(list(ROOT.glob(form)) for form in group.sources)
        assert all((ROOT / path).is_dir() for path in group.tests)


@pytest.mark.parametrize(
    ("outcomes", "noticed"),
    [([False], "no mutant"), ([True, False], "tests of the group"), ([True, True, True], "all pass")],
)
def test_the_copy_is_as_before(
    mutants: dict[str, Any], tmp_path: Path, outcomes: list[bool], noticed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.py").write_text(PYTHON)
    before, seen = (tmp_path / "a.py").stat().st_mtime_ns, []
    copy = mutants["Copy"].__new__(mutants["Copy"])
    copy.folder, copy.group = tmp_path, mutants["Group"](("a.py",), ("tests",))

    def passes(words: list[str], **environment: str) -> bool:
        seen.append((tmp_path / "a.py").read_text())
        return outcomes[len(seen) - 1]

    monkeypatch.setattr(copy, "passes", passes)
    one = mutants["mutants_of"]("a.py", PYTHON)[0]
    assert copy.noticed_by(one) == noticed
    assert seen == [one.applied(PYTHON)] * len(outcomes)
    assert (tmp_path / "a.py").read_text() == PYTHON and (tmp_path / "a.py").stat().st_mtime_ns == before


def test_nothing_compiled_of_a_mutant_stays(
    mutants: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ["ext/a.cp.so", "build/x/ext/a.c", "build/x/lib/ext/a.cp.so", "build/x/temp/build/x/ext/a.o"]
    files = [tmp_path / name for name in ("ext/a.pyx", *made)]
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(COMPILED)
    before = [path.stat().st_mtime_ns for path in files]
    copy = mutants["Copy"].__new__(mutants["Copy"])
    copy.folder, copy.group = tmp_path, mutants["Group"](("ext/*.pyx",), ("tests",))

    def passes(words: list[str], **environment: str) -> bool:
        for path in files[1:]:
            path.write_text("of the mutant")
        return words[0] == "setup.py"

    monkeypatch.setattr(copy, "passes", passes)
    assert copy.noticed_by(mutants["mutants_of"]("ext/a.pyx", COMPILED)[0]) == "tests of the group"
    assert [(path.read_text(), path.stat().st_mtime_ns) for path in files] == [(COMPILED, time) for time in before]
