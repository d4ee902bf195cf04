"""Mutation tests: python .ci/mutants.py GROUP [--count N] [--seed S]

In a copy of the checkout one constant, comparison, sign or word of a source file is changed at a time, and tests run:
those beside the file, then those of the group, then all. What none of them notices survives, and is printed. What does
not compile is no mutant; another one is drawn.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from beside import ROOT, candidates

LIMIT_S = 1800
"""Seconds of one command, after which a mutant counts as noticed: it may have made a loop without an end."""
SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "/", "/": "*",
    "+=": "-=", "-=": "+=", "and": "or", "or": "and", "not": "", "True": "False", "False": "True", "min": "max",
    "max": "min", "fmin": "fmax", "fmax": "fmin",
}  # fmt: skip
DECLARATIONS = {"import", "from", "cimport", "cdef", "cpdef", "ctypedef", "def", "class", "@", "assert", "raise"}
"""First words of statements whose words are names and types; of ``cdef`` only a value behind ``=`` is changed."""
IN_CAST = {"*", ".", "[", "]", ":", "const"}
LEFT_OUT = {".git", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", "dist", "build"}


class Group(NamedTuple):
    """Source files, and the tests that should notice what changes in them."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]


GROUPS = {
    "kernels": Group(
        ("fastsim_ext/scores/*.pyx", "fastsim_ext/select/*.pyx", "fastsim_ext/state/*.pyx", "fastsim_ext/online/*.pyx"),
        (
            "tests/unit/ext", "tests/differential", "tests/unit/engine/online", "tests/unit/decisions",
            "tests/golden/fgd", "tests/property",
        ),
    ),
    "programs": Group(
        (
            "fastsim/policies/programs/*.py", "fastsim/policies/solvers/*.py", "fastsim/policies/allocators/*.py",
            "fastsim_ext/solvers/*.pyx",
        ),
        (
            "tests/unit/policies", "tests/unit/ext/solvers", "tests/differential", "tests/golden/gavel",
            "tests/golden/sia",
        ),
    ),
    "orders": Group(
        (
            "fastsim/policies/orders.py", "fastsim/engine/orders/*.py", "fastsim_ext/rounds/ordered_*.pyx",
            "fastsim_ext/rounds/server_allocation.pyx",
        ),
        ("tests/unit/policies", "tests/unit/engine/orders", "tests/differential", "tests/golden/synergy"),
    ),
    "goodput": Group(
        (
            "fastsim/performance/goodput.py", "fastsim/performance/step_time_fit.py",
            "fastsim/performance/applications/*.py", "fastsim_ext/adaptive/*.pyx",
        ),
        (
            "tests/unit/performance", "tests/unit/ext/adaptive", "tests/unit/engine/adaptive", "tests/differential",
            "tests/golden/sia",
        ),
    ),
    "metrics": Group(
        (
            "fastsim/engine/summary.py", "fastsim/engine/totals/*.py", "fastsim/engine/rounds/job_metrics.py",
            "fastsim/engine/rounds/node_metrics.py", "fastsim/engine/rounds/tables.py",
            "fastsim_ext/rounds/cluster_metrics.pyx",
        ),
        ("tests/unit/engine", "tests/property", "tests/differential", "tests/golden"),
    ),
}  # fmt: skip


class Mutant(NamedTuple):
    """A change of one word: its file, line and column, both from 1, and the word before and after."""

    path: str
    line: int
    column: int
    before: str
    after: str

    def applied(self, text: str) -> str:
        """The file's text with the change."""
        lines = text.splitlines(keepends=True)
        line, start = lines[self.line - 1], self.column - 1
        assert line[start : start + len(self.before)] == self.before
        lines[self.line - 1] = line[:start] + self.after + line[start + len(self.before) :]
        return "".join(lines)


def mutants_of(path: str, text: str) -> list[Mutant]:
    """Every change of a file, in order."""
    found = []
    for statement in _statements(text):
        for word in _changeable(statement):
            after = _changed(word)
            if after is not None:
                (line, column), before = word.start, word.string
                found.append(Mutant(path, line, column + 1, before, after))
    return found


def _statements(text: str) -> Iterator[list[tokenize.TokenInfo]]:
    """The words of each logical line, without comments."""
    words: list[tokenize.TokenInfo] = []
    for word in tokenize.generate_tokens(io.StringIO(text).readline):
        if word.type == tokenize.NEWLINE:
            yield words
            words = []
        elif word.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING):
            words.append(word)


def _changeable(words: Sequence[tokenize.TokenInfo]) -> Iterator[tokenize.TokenInfo]:
    """Words of a statement that are no declaration, no cast and no star of an argument."""
    start, depth = 0, 0
    if words and words[0].string in DECLARATIONS:
        equals = [k for k, word in enumerate(words) if word.string == "="]
        if words[0].string != "cdef" or not equals or words[-1].string == ":":
            return
        start = equals[0] + 1
    for k in range(start, len(words)):
        text, operand = words[k].string, k > 0 and _ends_operand(words[k - 1])
        if depth or (text == "<" and not operand and _is_cast(words, k)):
            depth = 0 if text == ">" else 1
        elif not (text in ("*", "/") and not operand):
            yield words[k]


def _ends_operand(word: tokenize.TokenInfo) -> bool:
    named = word.type == tokenize.NAME and word.string not in ("return", "and", "or", "not", "in", "if", "else", "is")
    return named or word.type in (tokenize.NUMBER, tokenize.STRING) or word.string in (")", "]", "}")


def _is_cast(words: Sequence[tokenize.TokenInfo], start: int) -> bool:
    for word in words[start + 1 :]:
        if word.string == ">":
            return True
        if word.type not in (tokenize.NAME, tokenize.NUMBER) and word.string not in IN_CAST:
            return False
    return False


def _changed(word: tokenize.TokenInfo) -> str | None:
    """What a word becomes; None if it stays. A number becomes the next one."""
    if word.type != tokenize.NUMBER:
        return SWAPS.get(word.string)
    try:
        return str(int(word.string, 0) + 1)
    except ValueError:
        return repr(float(word.string) + 1.0) if word.string[-1] not in "jJ" else None


class Copy:
    """A copy of the checkout in which mutants are tried."""

    def __init__(self, folder: Path, group: Group) -> None:
        self.folder, self.group = folder, group
        shutil.copytree(ROOT, folder, ignore=lambda _, names: LEFT_OUT.intersection(names))
        self.environment = {name: value for name, value in os.environ.items() if name != "CI"}
        self.environment |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}

    def passes(self, words: Sequence[str], **environment: str) -> bool:
        """Whether a command of Python ends with exit code 0, in time."""
        process = subprocess.Popen(
            [sys.executable, *words], cwd=self.folder, env=self.environment | environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            return process.wait(LIMIT_S) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:  # with workers that a mutant keeps in a loop
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def tested(self, *paths: str, **environment: str) -> bool:
        """Whether these tests pass."""
        words = ["-x", "-q", "-n", "2", "-p", "no:cacheprovider", "--hypothesis-profile=first_failure", *paths]
        return self.passes(["-m", "pytest", *words], **environment)

    def built(self) -> bool:
        """Whether the extension compiles."""
        return self.passes(["setup.py", "-q", "build_ext", "--inplace"])

    def noticed_by(self, mutant: Mutant) -> str:
        """The first tests that notice a mutant; "all pass" if none does, "no mutant" if it does not compile."""
        source = self.folder / mutant.path
        stem = source.with_suffix("")
        kept = {
            path: (path.read_bytes(), path.stat())
            for path in (source, *source.parent.glob(f"{stem.name}.*.so"),
                         *(self.folder / "build").glob(f"**/{stem.relative_to(self.folder)}.*"))
        }  # fmt: skip
        try:
            source.write_text(mutant.applied(source.read_text()))
            return self._noticed(mutant)
        finally:
            for path, (content, before) in kept.items():
                path.write_bytes(content)
                os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def _noticed(self, mutant: Mutant) -> str:
        compiles = self.built() if mutant.path.endswith(".pyx") else self.passes(["-m", "py_compile", mutant.path])
        if not compiles:
            return "no mutant"
        beside = [name for name in candidates(mutant.path) if (self.folder / name).is_file()]
        if beside and not self.tested(*beside):
            return "tests beside it"
        if not self.tested(*self.group.tests):
            return "tests of the group"
        return "all pass" if self.tested("tests", FASTSIM_LONG="1") else "all tests"


def main() -> int:
    """Try mutants; 1 if one survived."""
    words = argparse.ArgumentParser(prog="python .ci/mutants.py", description=__doc__)
    words.add_argument("group", choices=[*GROUPS])
    words.add_argument("--count", type=int, default=24, help="how many mutants  [default: 24]")
    words.add_argument("--seed", type=int, default=0, help="which ones  [default: 0]")
    words.add_argument("--list", action="store_true", help="print the mutants, and try none")
    given = words.parse_args()
    group = GROUPS[given.group]
    paths = sorted(path for form in group.sources for path in ROOT.glob(form))
    every = [one for path in paths for one in mutants_of(path.relative_to(ROOT).as_posix(), path.read_text())]
    random.Random(given.seed).shuffle(every)
    if given.list:
        print("\n".join(map(_text, every[: given.count])))
        return 0
    return _tried(group, every, given.count)


def _tried(group: Group, every: Sequence[Mutant], count: int) -> int:
    tried = survived = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder) / "fastsim", group)
        if not (copy.built() and copy.tested(*group.tests)):
            raise SystemExit("mutants: the unchanged checkout does not compile, or its tests fail")
        for one in every:
            noticed = copy.noticed_by(one)
            print(f"{noticed}: {_text(one)}", flush=True)
            tried += noticed != "no mutant"
            survived += noticed == "all pass"
            if tried == count:
                break
    print(f"{tried} mutants of {len(every)}, {survived} survived: {100 * (1 - survived / max(tried, 1)):.1f} % noticed")
    return int(survived > 0)


def _text(one: Mutant) -> str:
    line = (ROOT / one.path).read_text().splitlines()[one.line - 1].strip()
    return f"{one.path}:{one.line}:{one.column}: {one.before} -> {one.after or 'nothing'} in `{line}`"


if __name__ == "__main__":
    sys.exit(main())
