"""Where things stand: packages and their order, folders of a readable size, tests beside what they test."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from pathlib import Path, PurePosixPath

import pytest

from tests.style import imports
from tests.style.imports import ORDER, Import
from tests.style.imports import imports as all_imports
from tests.style.tree import ROOT, parsed, short, sources, tracked

ENTRIES = 15
"""Modules and folders that a folder has at most."""
OTHERWISE = {"fastsim": 18, "fastsim_ext": 12}
"""Two folders have limits of their own."""
LEVELS = 3
"""Folders below each other, both packages included."""
LISTED_LINES, SHORT_LINES = 350, 25
"""Files longer than the one are printed, those shorter than the other are candidates for joining."""
PACKAGES = ("fastsim", "fastsim_ext")
SIGNED_IN = {"fastsim.policies.registry": "policies are loaded by name, and sign in there when they are"}
"""Modules that name those by which they are imported, and why: an importer by name may then be imported itself."""
SUFFIXES = (".py", ".pyx", ".pxd", ".pyi")
UNNAMED = {"__init__", "__main__"}
"""Modules that have no test of their own: what they hand out is tested where it stands."""
CLASS = re.compile(r"^(?:cdef )?class (\w+)", re.MULTILINE)
"""Classes of a compiled module."""
TESTS = ("tests/unit", "tests/differential", "tests")
"""Where the folders of the tests begin; those of the command line are ``tests/cli``."""


def folders() -> dict[str, set[str]]:
    """Each folder of the two packages with its modules and its folders."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in tracked():
        name = PurePosixPath(short(path))
        if name.parts[0] in PACKAGES:
            for parent, inner in zip(name.parents, (name, *name.parents), strict=False):
                if parent.parts and not (inner is name and (name.stem == "__init__" or name.suffix not in SUFFIXES)):
                    found[parent.as_posix()].add(inner.stem)
    return found


def homes(module: str) -> list[str]:
    """The tests that the path of a module promises: ``a/b.py`` has ``a/test_b.py``, or shares ``a/test_a.py``."""
    package, *inner, file = PurePosixPath(module).parts
    below = ["ext", *inner] if package == "fastsim_ext" else inner
    names = [PurePosixPath(file).stem, *below[-1:]]
    return ["/".join((top, *below, f"test_{name}.py")) for top in TESTS for name in names]


def modules() -> list[str]:
    """Every source file that does something, Python or compiled."""
    found = sources(*PACKAGES, suffix=".py") + sources("fastsim_ext", suffix=".pyx")
    return [short(path) for path in found if path.stem not in UNNAMED]


def test_every_package_has_its_place() -> None:
    known = {name for row in ORDER for name in row}
    assert {imports.package_of(name) for name in imports.modules()} - {"", "fastsim_ext"} == known


def test_every_folder_of_modules_is_shipped() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    folders_of_modules = {short(path.parent).replace("/", ".") for path in sources(*PACKAGES, suffix=".py")}
    assert folders_of_modules <= set(settings["tool"]["setuptools"]["packages"])


def test_imports_only_go_down() -> None:
    assert [str(one) for one in imports.upward(all_imports())] == []


def test_imports_between_folders_of_a_package_only_go_down() -> None:
    assert [str(one) for one in imports.sideways(all_imports())] == []


def test_no_circle_at_load_time() -> None:
    for suffixes in ((".py",), (".pyx", ".pxd")):
        loaded = [one for one in all_imports() if one.path.suffix in suffixes and one.at_load]
        assert imports.circles(imports.edges_of(loaded)) == []


def test_no_circle_of_lazy_imports_and_of_types() -> None:
    """Who makes objects of a class is below it and hands over parts, or above it."""
    assert imports.circles(imports.edges_of(all_imports())) == []


def test_no_circle_of_imports_by_name() -> None:
    named = imports.named_imports()
    assert {one.importer for one in named} >= SIGNED_IN.keys()
    found = [one for one in named if one.importer not in SIGNED_IN]
    assert any(one.importer == "fastsim.workload.texts" for one in found)
    assert imports.circles(imports.edges_of([*all_imports(), *found])) == []


def test_circles_and_imports_upwards_are_found() -> None:
    def line(importer: str, imported: str) -> Import:
        return Import(importer, imported, ROOT / "fastsim" / "errors.py", 1, True)

    up, down = line("fastsim.cluster.cluster", "fastsim.cli.main"), line("fastsim.cli.main", "fastsim.cluster.cluster")
    assert imports.upward([up, down]) == [up]
    over = line("fastsim.engine.rounds.tables", "fastsim.engine.shares.run")
    assert imports.sideways([over, up]) == [over]
    assert imports.circles(imports.edges_of([up, down, over])) == [["fastsim.cli.main", "fastsim.cluster.cluster"]]


def test_nothing_that_is_shipped_imports_the_tests() -> None:
    assert [short(p) for p in sources(*PACKAGES, suffix=".py") if "tests" in _packages(p)] == []


def _packages(path: Path) -> set[str]:
    """First parts of the names that a file imports."""
    return {name.split(".")[0] for name, *_ in imports.python_imports(path)}


def test_the_picture_of_packages_is_the_one_in_contributing() -> None:
    assert imports.picture() in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", sorted(folders()))
def test_a_folder_can_be_read_at_a_glance(folder: str) -> None:
    assert len(folder.split("/")) <= LEVELS
    assert len(folders()[folder]) <= OTHERWISE.get(folder, ENTRIES), sorted(folders()[folder])


def test_every_module_has_the_test_that_its_path_promises() -> None:
    findings = [name for name in modules() if not any((ROOT / home).is_file() for home in homes(name))]
    assert findings == []


def test_every_unit_test_names_a_module_or_its_folder() -> None:
    promised = {home for name in modules() for home in homes(name)}
    found = [short(path) for path in sources("tests", suffix=".py") if path.name.startswith("test_")]
    found = [name for name in found if name.startswith("tests/unit/") and not name.startswith("tests/unit/reference/")]
    whole = {name for name in found if name.count("/") == 2}  # of the package as a whole, or of the traces beside it
    assert sorted(set(found) - whole - promised) == []


def test_lengths_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    lines = {short(p): len(p.read_text(encoding="utf-8").splitlines()) for p in sources("fastsim", suffix=".py")}
    long = sorted(name for name, count in lines.items() if count > LISTED_LINES)
    brief = sorted(n for n, count in lines.items() if count < SHORT_LINES and PurePosixPath(n).stem not in UNNAMED)
    with capsys.disabled():
        print(f"\nlonger than {LISTED_LINES} lines: {', '.join(long) or 'none'}")
        print(f"shorter than {SHORT_LINES} lines, could be joined: {', '.join(brief) or 'none'}")


def test_no_public_class_has_two_homes() -> None:
    homes: Counter[str] = Counter()
    for path in sources("fastsim", suffix=".py"):
        homes.update(node.name for node in parsed(path).body if isinstance(node, ast.ClassDef))
    for path in sources("fastsim_ext", suffix=".pyx"):
        homes.update(CLASS.findall(path.read_text(encoding="utf-8")))
    several = sorted(name for name, count in homes.items() if count > 1 and not name.startswith("_"))
    assert several == []


def test_listing_policies_loads_no_numpy() -> None:
    code = (
        "import sys\nfrom fastsim.policies import registry\n"
        "assert [registry.describe(name) for name in registry.names()]\n"
        "sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
