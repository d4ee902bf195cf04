"""Python files of the current folder run with no verb, however it is begun, and in no worker; allowed scorers do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import environment
from tests.hostile_files import COMMANDS, PODS, toml, write_files, write_runs
from tests.style.tree import ROOT

OPTIONAL = (
    "pandas", "yaml", "org", "linkify_it", "msvcrt", "_winapi", "polars_runtime_32", "_polars_runtime",
    "_polars_runtime_64", "_polars_runtime_compat", "polars_runtime_compat",
    "IPython", "ipykernel", "ipywidgets", "matplotlib", "torch",
    "cylp", "ray", "distributed", "gymnasium", "psutil", "s3fs", "vegafusion", "pyodide", "google", "nt", "winreg",
    "sitecustomize", "usercustomize", "zstandard", "brotli", "colorama", "readline", "mkdocs", "anywidget", "duckdb",
)  # fmt: skip
"""Modules that libraries look for, and that are mostly not there."""
DRIVER = """
import sys
from fastsim.cli.main import main
from fastsim.reports.charts import chart_files
class Drawing:
    # pictures and the programs of a page take long to make, and no Python makes them
    javascript_bundle = staticmethod(lambda: "// programs")
    vegalite_to_png = vegalite_to_svg = vegalite_to_pdf = staticmethod(lambda spec, **options: b"a picture")
chart_files.picturing = lambda: Drawing
for words in sys.stdin.read().splitlines():
    try:
        main(words.split())
    except SystemExit:
        pass
"""
"""Runs each line of standard input as a command."""
SCRIPT = """
import os
from fastsim.experiments.executors.processes import Processes
if __name__ == "__main__":
    with Processes(2) as workers:
        seen = list(workers.map(os.getenv, ["PYTHONSAFEPATH"] * 2))
    print(os.environ.get("PYTHONSAFEPATH"), [str(one) for one in seen])
"""
"""A script of a user's with workers, whose environment stays as it is."""


def plant(folder: Path, names: set[str]) -> None:
    """Modules of these names, each of which leaves a mark when it is imported."""
    for name in names:
        (folder / f"{name}.py").write_text(
            f"open({str(folder / 'mark_')!r} + __name__, 'w').close()\nraise ImportError\n"
        )


def marks(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("mark_*"))


def done(words: list[str], folder: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], cwd=folder, input=text, capture_output=True, text=True, env=environment(), check=False
    )


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Modules that Python has loaded before it begins with a module of ``python -m``."""
    folder = tmp_path_factory.mktemp("begun")
    (folder / "probe.py").write_text("import sys\nprint(*{name.partition('.')[0] for name in sys.modules})\n")
    return set(done(["-m", "probe"], folder).stdout.split())


def test_no_verb_runs_files_of_the_folder(tmp_path: Path) -> None:
    work, driver = tmp_path / "work", tmp_path / "driver.py"
    work.mkdir()
    driver.write_text(DRIVER)
    write_runs(work)
    write_files(work, "fgd")
    plant(work, {*OPTIONAL, *sys.stdlib_module_names})
    lines = [f"{verb} {commands[0].words}" for verb, commands in COMMANDS.items()]
    ran = done([str(driver)], work, "\n".join(lines))
    assert ran.returncode == 0 and "internal error" not in ran.stderr, ran.stderr
    assert marks(work) == []


def test_a_module_of_python_does_not_bring_the_folder_along(begun: set[str], tmp_path: Path) -> None:
    assert len(begun) > 20
    plant(tmp_path, {*OPTIONAL, *sys.stdlib_module_names, "click", "numpy", "polars", "pyarrow", "rich"} - begun)
    ran = done(["-m", "fastsim", "run", "--cluster", "openb:3", "--workload", "synth:openb?pods=3"], tmp_path)
    assert ran.returncode == 0 and marks(tmp_path) == [], ran.stderr


def test_only_the_command_and_python_p_load_nothing_before_fastsim_begins(tmp_path: Path) -> None:
    plant(tmp_path, {*OPTIONAL, *sys.stdlib_module_names, "fastsim", "fastsim_ext", "click", "numpy", "polars"})
    words = ["-P", "-m", "fastsim", "run", "--cluster", "openb:3", "--workload", "synth:openb?pods=3"]
    ran = done(words, tmp_path)
    assert ran.returncode == 0 and marks(tmp_path) == [], ran.stderr
    assert done(words[1:], tmp_path).returncode == 1 and marks(tmp_path)  # Python's doing, as the page says
    page = (ROOT / ".github" / "SECURITY.md").read_text(encoding="utf-8")
    assert f"`python {' '.join(words[:3])}`" in page


def test_workers_of_a_script_elsewhere_load_nothing_of_the_folder(tmp_path: Path) -> None:
    work, script = tmp_path / "work", tmp_path / "script.py"
    work.mkdir()
    plant(work, {*OPTIONAL, *sys.stdlib_module_names})
    script.write_text(SCRIPT)
    ran = done([str(script)], work)
    assert ran.returncode == 0 and ran.stdout == "None ['None', 'None']\n" and marks(work) == [], ran.stderr


def test_workers_find_an_allowed_scorer_and_nothing_else(begun: set[str], tmp_path: Path) -> None:
    plant(tmp_path, {*OPTIONAL, *sys.stdlib_module_names} - begun)
    (tmp_path / "own_helper.py").write_text("SCALE = 2\n")
    (tmp_path / "own_scorer.py").write_text(
        f"open({str(tmp_path / 'found')!r}, 'a').close()\n"
        "def points(nodes, pod):\n    from own_helper import SCALE\n    return SCALE * nodes.cpu_free\n"
    )
    policies = ["python(scorer='own_scorer:points')", "fgd"]
    (tmp_path / "s.toml").write_text(toml(PODS | {"policy": policies, "seed": [0, 1]}))
    words = ["-m", "fastsim", "sweep", "s.toml", "--out", "o", "--workers", "2"]
    ran = done([*words, "--allow-code"], tmp_path)
    assert ran.returncode == 0 and (tmp_path / "found").exists(), ran.stderr
    assert marks(tmp_path) == []


def test_a_package_of_the_folder_adds_no_policy(tmp_path: Path) -> None:
    plant(tmp_path, {"stranger"})
    notes = tmp_path / "stranger-1.dist-info"
    notes.mkdir()
    (notes / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1\n")
    (notes / "entry_points.txt").write_text("[fastsim.policies]\nstranger = stranger:Policy\n")
    ran = done(["-m", "fastsim", "describe", "stranger"], tmp_path)
    assert ran.returncode == 2 and "an unknown name" in ran.stderr and marks(tmp_path) == []
