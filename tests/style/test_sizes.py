"""Files and functions stay small enough to be read at one sitting."""

from __future__ import annotations

from tests.style.cython_text import signatures
from tests.style.tree import functions, short, sources, tracked

FILE_LIMITS = {".pyx": 500, ".pxd": 80, ".py": 500}
TEST_FILE_LIMIT = 700
PYTHON_FUNCTION_LIMIT = 50
CYTHON_FUNCTION_LIMIT = 80


def test_files() -> None:
    findings = []
    for path in tracked():
        limit = FILE_LIMITS.get(path.suffix)
        if limit and short(path).startswith(("tests/", "bench/")):
            limit = TEST_FILE_LIMIT
        if limit and (lines := len(path.read_text(encoding="utf-8").splitlines())) > limit:
            findings.append(f"{short(path)}: {lines} lines, limit {limit}")
    assert findings == []


def test_python_functions() -> None:
    findings = []
    for path in sources("fastsim", "fastsim_ext", "tests", "bench", suffix=".py"):
        for node in functions(path):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > PYTHON_FUNCTION_LIMIT:
                findings.append(f"{short(path)}:{node.lineno} {node.name}: {lines} lines")
    assert findings == []


def test_cython_functions() -> None:
    findings = [
        f"{short(path)}:{found.line} {found.name}: {found.lines} lines"
        for path in sources("fastsim_ext", suffix=".pyx")
        for found in signatures(path)
        if found.lines > CYTHON_FUNCTION_LIMIT
    ]
    assert findings == []
