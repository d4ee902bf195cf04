"""What a commit must pass, in the environment that is there: quick.py [COMMIT], which is what changes are counted from.

Lint, types, style, the tests beside what changed, and a smoke of each engine and verb. Types and the lint of compiled
modules are looked at while tests run.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from beside import ROOT, base_commit, changed_files, note_green, stale_modules, tests_beside
from failed import failed_tests, repeating

BEGAN = time.monotonic()
PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider"]
NOTHING_CHOSEN = 5
"""Exit code of pytest where all tests of the files were left out, such as long ones."""
TAIL = 25
"""Lines that are shown of a command that failed."""


class Command:
    """A command that has begun, with a log of its own."""

    def __init__(self, name: str, words: list[str], folder: str) -> None:
        self.name, self.words, self.began = name, words, time.monotonic()
        self.log = Path(folder) / f"{name.replace(' ', '_')}.log"
        environment = {**os.environ, "CI": "true", "FASTSIM_QUICK": "1"}
        with self.log.open("w") as out:
            self.process = subprocess.Popen(
                words, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
            )

    def stop(self) -> None:
        """End it, if it still runs."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()

    def finish(self) -> None:
        """Wait for its end; say what failed and leave if it did."""
        code = self.process.wait()
        lines = self.log.read_text(errors="replace").splitlines()
        print(f"== {self.name} (after {time.monotonic() - BEGAN:.0f} s): {lines[-1] if lines else 'fine'}", flush=True)
        if code and not (code == NOTHING_CHOSEN and "pytest" in self.words):
            print("\n".join(lines[-TAIL:]))
            tests = failed_tests(lines)
            again = [repeating(test, "FASTSIM_QUICK=1") for test in tests] or [shlex.join(self.words)]
            print(f"CI: failed: {self.name}; again:\n  " + "\n  ".join(again[:12]))
            raise SystemExit(1)


def tool(name: str, *words: str) -> list[str]:
    """A command of this environment."""
    return [str(Path(sys.executable).with_name(name)), *words]


def chosen(changed: list[str]) -> list[str]:
    """The tests beside a change; those of style are always run and never twice."""
    return [path for path in tests_beside(changed) if not path.startswith("tests/style/")]


def main() -> None:
    """Run all; the first that fails ends it."""
    base = base_commit(sys.argv[1] if len(sys.argv) > 1 else None)
    changed = changed_files(base)
    print(f"{len(changed)} files changed since {base[:9]}")
    if stale := stale_modules(changed):
        raise SystemExit(
            f"CI: {', '.join(stale)}: newer than what was compiled; python setup.py -q build_ext --inplace"
        )
    compiled = [name for name in changed if name.endswith((".pyx", ".pxd")) and (ROOT / name).is_file()]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:

        def begun(name: str, words: list[str]) -> Command:
            command = Command(name, words, folder)
            stack.callback(command.stop)
            return command

        begun("lint", tool("ruff", "check", ".")).finish()
        begun("format", tool("ruff", "format", "--check", ".")).finish()
        beside = [begun("types", tool("mypy"))]
        if compiled:
            beside.append(begun("lint of compiled modules", tool("cython-lint", *compiled)))
        begun("smoke", [sys.executable, ".ci/smoke.py"]).finish()
        begun("style", [sys.executable, *PYTEST, "tests/style"]).finish()
        if tests := chosen(changed):
            begun("tests beside", [sys.executable, *PYTEST, "-n", "2", *tests]).finish()
        for command in beside:
            command.finish()
    note_green()
    print(f"all passed in {time.monotonic() - BEGAN:.0f} s")


if __name__ == "__main__":
    main()
