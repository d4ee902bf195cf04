"""Which tests stand beside a change: the mirror of a changed module, and changed tests themselves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.style.test_layout import homes  # noqa: E402

COMPILED = {".pyx", ".pxd", ".pyi"}
PAGES = {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}


def git(*words: str) -> str:
    """What git answers, or nothing where it refuses."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def green_file() -> Path:
    """Where the last commit that passed is noted, for all worktrees."""
    return Path(git("rev-parse", "--path-format=absolute", "--git-common-dir")) / "green"


def base_commit(asked: str | None = None) -> str:
    """What a change is compared with: the commit asked for, the last green one, or the one before."""
    noted = green_file().read_text().strip() if green_file().is_file() else ""
    wanted = asked or noted or "HEAD~1"
    found = git("merge-base", wanted, "HEAD")
    if asked and not found:
        raise SystemExit(f"CI: {asked}: no commit of this repository")
    return found or git("rev-parse", "HEAD~1") or git("rev-parse", "HEAD")


def changed_files(base: str) -> list[str]:
    """Files that differ from a commit, those not yet added included."""
    listed = f"{git('diff', '--name-only', base)}\n{git('ls-files', '--others', '--exclude-standard')}"
    return sorted(set(listed.split("\n")) - {""})


def note_green() -> None:
    """Remember this commit, if the tree is what was committed."""
    if not git("status", "--porcelain"):
        green_file().write_text(git("rev-parse", "HEAD") + "\n")


def candidates(name: str) -> list[str]:
    """Where the tests of this file may stand."""
    path = PurePosixPath(name)
    if path.parts[0] == "tests" and path.name.startswith("test_"):
        return [name]
    if name in PAGES:
        return ["tests/docs"]
    if path.parts[0] in ("bench", ".ci"):
        return [f"tests/{path.parts[0].strip('.')}/test_{path.stem}.py"]
    if path.parts[0] not in ("fastsim", "fastsim_ext") or path.suffix not in {".py", *COMPILED}:
        return []
    return homes(str(path.with_suffix(".pyx")) if path.suffix in COMPILED else name)


def tests_beside(names: Iterable[str], root: Path = ROOT) -> list[str]:
    """The test files, and folders of them, that stand beside these files."""
    found = {place for name in names for place in candidates(name) if (root / place).exists()}
    return sorted(found)


def stale_modules(names: Iterable[str], root: Path = ROOT) -> list[str]:
    """Changed compiled sources that are newer than what was compiled from them."""
    stale = []
    for name in names:
        source = root / name
        if source.suffix not in (".pyx", ".pxd") or not source.is_file() or not source.with_suffix(".pyx").is_file():
            continue
        made = [path for kind in ("so", "pyd") for path in source.parent.glob(f"{source.stem}.*{kind}")]
        if not made or max(path.stat().st_mtime for path in made) < source.stat().st_mtime:
            stale.append(name)
    return stale
