"""Inputs of trials: pods, a sweep, a saved run, a list, a checkpoint; and what undisturbed commands write."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastsim.cluster.cluster import Cluster
from fastsim.workload import Workload
from tests.cli.terminal import COMMAND, attentive, environment

RUN = "run --cluster openb:20 --workload ../w.parquet --policy random --queue fifo"
KEPT = f"{RUN} --checkpoint 3000 --out out"
SWEEP = """
cluster = "openb:20"
workload = "synth:openb?pods=6000&arrivals=order"
policy = ["random", "best_fit"]
queue = "fifo"
record = "all"
seed = [0, 1, 2]
"""
LIST = "--map submit_s=start,duration_s=took,num_gpu=gpus,cpu_milli=cpu,memory_mib=memory"
LIST_ROWS = 200_000
ENDINGS = ("", ".yaml", ".parquet")
"""Endings of ``out``: folders have none."""
PATIENCE_S = 300.0


@dataclass(frozen=True)
class Case:
    """A command, the kind of result it writes to ``out``, and a folder that exists before it."""

    name: str
    kind: str
    words: tuple[str, ...]
    given: str | None = None

    @property
    def again(self) -> tuple[str, ...] | None:
        """The command that may replace its result; None: a whole one stays as it is."""
        if self.kind == "reproduction" or self.words[0] == "resume":
            return None
        return (*self.words, "--force") if self.kind == "run" else self.words


CASES = (
    Case("plain run", "run", (*RUN.split(), "--out", "out")),
    Case("run with checkpoints", "run", tuple(KEPT.split())),
    Case("resume", "run", ("resume", "out"), given="out.checkpoint"),
    Case("sweep", "sweep", ("sweep", "../sweep.toml", "--out", "out", "--workers", "2")),
    Case("export", "export", ("export", "../saved", "-o", "out.yaml", "--every")),
    Case("import", "import", ("import", "csv", "../list.csv", *LIST.split(), "-o", "out.parquet")),
    Case("reproduce", "reproduction", ("reproduce", "monitor", "--quick", "--workers", "2", "--out", "out")),
)


@dataclass
class Ground:
    """A folder with all that the cases need; each trial has a folder of its own in it."""

    folder: Path
    whole_s: dict[str, float] = field(default_factory=dict)
    """Seconds of each undisturbed case."""
    expected: dict[str, Mapping[str, bytes]] = field(default_factory=dict)
    """Files of each undisturbed case."""

    def prepare(self) -> None:
        """Write the inputs of the cases, and run each case once."""
        cluster = Cluster.scaled(nodes=20)
        pods = Workload.synth("openb", pods=30_000, seed=1, load=0.9, cluster=cluster)
        pods.write(self.folder / "w.parquet")
        (self.folder / "sweep.toml").write_text(SWEEP)
        rows = (f"{number},{number % 977},{number % 3},{number % 8000},512\n" for number in range(LIST_ROWS))
        (self.folder / "list.csv").write_text("start,took,gpus,cpu,memory\n" + "".join(rows))
        fresh = self.fresh("saved run")
        saved = "run --cluster openb:20 --workload synth:openb?pods=3000 --policy random --out ../saved"
        finished(start(saved.split(), fresh))
        self._keep_checkpoint()
        for case in CASES:
            folder = self.begun(case)
            began = time.monotonic()
            code, err = finished(start(case.words, folder))
            assert (code, err) == (0, ""), (case.name, err)
            self.whole_s[case.name] = time.monotonic() - began
            self.expected[case.name] = written(folder)
            shutil.rmtree(folder)

    def fresh(self, name: str) -> Path:
        """An empty folder for one trial."""
        path = self.folder / name.replace(" ", "-")
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def begun(self, case: Case) -> Path:
        """The folder of a trial, with the folder that exists before the case."""
        folder = self.fresh(f"trial of {case.name}")
        if case.given:
            shutil.copytree(self.folder / case.given, folder / case.given)
        return folder

    def _keep_checkpoint(self) -> None:
        """Kill a run after its first checkpoint, and keep that."""
        folder = self.fresh("stopped run")
        process = start(KEPT.split(), folder)
        while not (folder / "out.checkpoint" / "state.npz").exists() and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        shutil.copytree(folder / "out.checkpoint", self.folder / "out.checkpoint")


def start(words: tuple[str, ...] | list[str], folder: Path) -> subprocess.Popen[str]:
    """A command that has begun in this folder, at the head of a process group of its own."""
    given: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    root = Path(__file__).resolve().parents[2]
    return subprocess.Popen(
        [*COMMAND, *words], cwd=folder, env=environment(root), start_new_session=True, preexec_fn=attentive, **given
    )


def finished(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code and standard error of a command at its end."""
    with process:
        try:
            _, err = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return process.returncode, err


def written(folder: Path) -> dict[str, bytes]:
    """The reproducible files of a result: tables and objects, without hidden files."""
    names = {path: path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*"))}
    tables = [path for path, name in names.items() if path.suffix in (".parquet", ".yaml") and "/." not in f"/{name}"]
    return {names[path]: path.read_bytes() for path in tables}
