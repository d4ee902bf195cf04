"""The compiled floors keep their contract: cheap signatures, no macros, no Python object without the GIL."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.needs import needed
from tests.style.cython_text import nogil_lines, signatures
from tests.style.tree import ROOT, short, sources

ENDING = re.compile(r"\) (noexcept|except -[12]|except NULL) nogil:?$")
INTEGER = re.compile(r"(cdef|cpdef)( inline)? (int|bint|int32_t|int64_t) \w+\(")
ANNOTATED = re.compile(r'<pre class="cython line score-(\d+)"[^>]*>\S*?<span class="">0*(\d+)</span>')
FLAGS = [
    "-X",
    "boundscheck=False,wraparound=False,initializedcheck=False,cdivision=True",
    "--shared",
    "fastsim_ext._shared",
]


def test_every_nogil_signature_is_cheap() -> None:
    findings = []
    for path in sources("fastsim_ext", suffix=".pyx") + sources("fastsim_ext", suffix=".pxd"):
        for found in signatures(path):
            where = f"{short(path)}:{found.line} {found.text.strip()}"
            ending = ENDING.search(found.text)
            if found.nogil and ending is None:
                findings.append(f"{where}: ends neither in 'noexcept nogil' nor in 'except -1 nogil' (-2, NULL)")
            elif found.nogil and "except NULL" in found.text and "* " not in found.text.split("(")[0]:
                findings.append(f"{where}: only a pointer can be NULL")
            elif ending and ending[1].startswith("except -") and not INTEGER.match(found.text.strip()):
                findings.append(f"{where}: only an integer answer can be negative")
            elif found.kind == "cdef" and " void " in found.text and "noexcept" not in found.text:
                findings.append(f"{where}: a void function that looks for an exception after every call")
    assert findings == []


def test_the_reader_sees_what_it_should(tmp_path: Path) -> None:
    path = tmp_path / "sample.pyx"
    path.write_text(
        "cdef void bare(int a,\n               int b) nogil:\n    a = b\n\n"
        "def outer():\n    with nogil:\n        x = 1\n        with gil:\n            y = 2\n    return 3\n"
    )
    bare, outer = signatures(path)
    assert (bare.name, bare.nogil, ENDING.search(bare.text)) == ("bare", True, None)
    assert (outer.name, outer.nogil, outer.lines) == ("outer", False, 6)
    assert nogil_lines(path) == {3, 6 + 1}


def test_no_clever_macros() -> None:
    findings = [
        f"{short(path)}:{number} {line.strip()}"
        for suffix in (".pyx", ".pxd")
        for path in sources("fastsim_ext", suffix=suffix)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.match(r"\s*(DEF|IF|include)\s", line)
    ]
    assert findings == []


def test_array_arguments_are_contiguous() -> None:
    findings = []
    for path in sources("fastsim_ext", suffix=".pyx"):
        for found in signatures(path):
            for view in re.findall(r"[\w ]+\[[:,1 ]*:[:,1 ]*\] \w+", found.text.split("(", 1)[1]):
                if "::1" not in view:
                    findings.append(f"{short(path)}:{found.line} {view.strip()}")
    assert findings == []


def page_of(path: Path) -> Path:
    """Where the build leaves the annotation page of a module."""
    return ROOT / "build" / "release" / path.relative_to(ROOT).with_suffix(".html")


def stale(path: Path) -> bool:
    """Whether the module was changed, or never built, since its page was written."""
    page = page_of(path)
    return not page.exists() or page.stat().st_mtime < path.stat().st_mtime


def annotated(modules: list[Path], folder: Path) -> dict[Path, Path]:
    """Fresh pages of these modules, made in a folder of their own."""
    if not modules:
        return {}
    needed("Cython")
    for suffix in (".pyx", ".pxd", ".py"):
        for path in sources("fastsim_ext", suffix=suffix):
            copy = folder / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    names = [short(path) for path in modules]
    # One process for all, because each would read the same contracts again.
    subprocess.run(
        [sys.executable, "-m", "cython", "-3", "-a", *FLAGS, *names], cwd=folder, check=True, capture_output=True
    )
    return {path: folder / path.relative_to(ROOT).with_suffix(".html") for path in modules}


def test_no_python_object_without_the_gil(tmp_path: Path) -> None:
    modules, findings, seen = sources("fastsim_ext", suffix=".pyx"), [], 0
    fresh = annotated([path for path in modules if stale(path)], tmp_path)
    for path in modules:
        inside, page = nogil_lines(path), fresh.get(path, page_of(path))
        for score, line in ANNOTATED.findall(page.read_text(encoding="utf-8")):
            seen += int(line) in inside
            if int(score) and int(line) in inside:
                findings.append(f"{short(path)}:{line} score {score}")
    assert seen > 0
    assert findings == []
