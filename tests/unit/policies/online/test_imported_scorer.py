"""Scorers of the current folder: found last, only while they are imported or run, and by the modules they import."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import fastsim as fs
from fastsim.policies.online.imported_scorer import importable, imported_scorer

SMALL: dict[str, Any] = {"cluster": "openb:4", "workload": "synth:openb?pods=4&seed=1"}
OF_FOLDER = ("own_scorer", "own_helper", "own_later", "own_package")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder with modules of the user's, which is no place for modules."""
    monkeypatch.chdir(tmp_path)
    here = (str(tmp_path), "")
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in here])
    (tmp_path / "own_helper.py").write_text("import sys\nPATH = list(sys.path)\n")
    (tmp_path / "own_later.py").write_text("SCALE = 3\n")
    (tmp_path / "own_scorer.py").write_text(
        "import own_helper\nPATH = own_helper.PATH\n"
        "def points(nodes, pod):\n    from own_later import SCALE\n    return SCALE * nodes.cpu_free\n"
        "points.sees_telemetry = True\nnumber = 5\n"
    )
    (tmp_path / "own_package").mkdir()
    (tmp_path / "own_package" / "__init__.py").write_text("")
    (tmp_path / "own_package" / "inner.py").write_text("from own_scorer import points\n")
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] in OF_FOLDER]:
        del sys.modules[name]


def test_a_scorer_of_the_folder_is_found_with_what_it_imports_then_and_later(folder: Path) -> None:
    before = list(sys.path)
    result = fs.simulate(**SMALL, policy="python(scorer='own_scorer:points')")
    assert result.summary["pods_unplaced"][0] == 0 and sys.path == before
    assert [*before, str(folder)] == sys.modules["own_scorer"].PATH
    assert {"own_helper", "own_later"} <= sys.modules.keys()
    again = fs.simulate(**SMALL, policy="python(scorer='own_scorer:points')")
    assert again.placements.equals(result.placements) and sys.path == before


def test_a_scorer_looks_like_the_function_that_it_is(folder: Path) -> None:
    scorer = imported_scorer("own_package.inner:points")
    points = sys.modules["own_scorer"].points
    assert repr(scorer) == repr(points)
    assert scorer.sees_telemetry is True and scorer.__name__ == "points"  # type: ignore[attr-defined]
    assert imported_scorer("own_scorer:number") == 5


def test_what_python_finds_elsewhere_is_imported_from_there_alone(folder: Path) -> None:
    (folder / "colorsys.py").write_text("raise SystemExit\n")
    sys.modules.pop("colorsys", None)
    assert not str(imported_scorer("colorsys:rgb_to_hsv").__module__).startswith("own")
    assert sys.modules["colorsys"].__file__ != str(folder / "colorsys.py")


def test_a_path_of_the_users_stays_as_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for before in ([str(folder), *sys.path], ["", *sys.path]):
        monkeypatch.setattr(sys, "path", list(before))
        for name in OF_FOLDER:
            sys.modules.pop(name, None)
        scorer = imported_scorer("own_scorer:points")
        assert scorer is sys.modules["own_scorer"].points and sys.path == before
        assert before == sys.modules["own_scorer"].PATH


def test_the_folder_leaves_when_its_last_user_does(folder: Path) -> None:
    here, before = str(folder), list(sys.path)
    with pytest.raises(ZeroDivisionError), importable(here):
        with importable(here):
            assert sys.path == [*before, here]
        thread = Thread(target=lambda: imported_scorer("own_scorer:points"))
        thread.start()
        thread.join()
        assert sys.path == [*before, here]
        raise ZeroDivisionError
    assert sys.path == before
    with importable(here):
        sys.path.remove(here)
    assert sys.path == before


def test_an_import_that_fails_leaves_nothing_behind(folder: Path) -> None:
    before = list(sys.path)
    (folder / "own_later.py").write_text("1 / 0\n")
    for place in ("own_later:points", "absent:points", "own_scorer:absent"):
        with pytest.raises(fs.PolicyError, match=place.replace(":", ".")):
            fs.simulate(**SMALL, policy=f"python(scorer='{place}')")
        assert sys.path == before


def test_a_folder_that_is_gone_is_no_place(folder: Path) -> None:
    gone = folder / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    with pytest.raises(ModuleNotFoundError):
        imported_scorer("own_scorer:points")
