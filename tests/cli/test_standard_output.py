"""Standard output carries the result and nothing else, whatever a library or a scorer of the user's prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from fastsim.policies import registry
from fastsim.workload import Workload
from tests.cli.terminal import Outcome, environment, fastsim
from tests.cli.test_grammar import VERBS
from tests.objects import node, pod, written
from tests.unit.decisions.what_if.test_consolidation import runs

NOISY = """
import os
import sys

import numpy as np


def points(nodes, pod):
    print("printed by a scorer")
    os.write(1, b"written past Python\\n")
    os.system("echo said by a process")
    return np.zeros(len(nodes.cpu_free), np.int64)
"""
PODS = ("--cluster", "openb:8?seed=1", "--workload", "synth:openb?pods=12&seed=2")
JOBS = ("--cluster", "gavel:2:2:2", "--workload", "synth:gavel?jobs=6&seed=1")
ADAPTIVE = ("--cluster", "sia:6:2:3", "--workload", "synth:sia?jobs=4&seed=1")
SERVERS = ("--cluster", "synergy:2", "--workload", "synth:synergy?jobs=6&seed=1")
GPUS = ("--cluster", "uniform?nodes=1&gpu=V100M32&gpus=1", "--workload", "synth:detectors?over=2&unit=gib")
INPUTS = {
    "fastsim.policies.online": PODS, "fastsim.policies.shares": JOBS, "fastsim.policies.adaptive": ADAPTIVE,
    "fastsim.policies.orders": SERVERS, "fastsim.policies.monitored": GPUS,
}  # fmt: skip
"""What each family of policies is played on."""
END = "\x1e"
ONE_BY_ONE = f"""
import json, os, sys
from fastsim.cli.main import exit_code

for words in json.loads(sys.argv[1]):
    assert exit_code(words) == 0, words
    sys.stdout.flush()
    os.write(1, {END!r}.encode())
"""
"""Runs commands, each of which is followed by a mark on standard output."""
SOLVING = ("finish_time_fairness", "max_min_fairness(mode=packed)", "max_min_fairness_water_filling", "planned", "sia")
"""Policies that build solvers, and one of each family, without FASTSIM_LONG."""
SWEEP = 'cluster = "openb:8"\nworkload = "synth:openb?pods=12"\npolicy = ["fgd", "random"]\nseed = [0, 1]\n'


def parsed(told: Outcome) -> object:
    """The JSON of a command that ended well."""
    assert told.code == 0, told.err
    return json.loads(told.out)


def of_policy(policy: str) -> tuple[object, ...]:
    """The command that runs a policy and prints JSON."""
    family = registry.policy_class(policy.partition("(")[0]).__module__
    words = next(words for start, words in INPUTS.items() if family.startswith(start))
    return "run", *words, "--policy", policy, "--json"


def printed(commands: Sequence[tuple[object, ...]], folder: Path) -> list[object]:
    """The JSON of commands that a process runs one after the other, and nothing between them."""
    words = [sys.executable, "-c", ONE_BY_ONE, json.dumps([[*map(str, command)] for command in commands])]
    done = subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    *texts, rest = done.stdout.split(END)
    assert len(texts) == len(commands) and not rest
    return [json.loads(text) for text in texts]


def test_policies_that_solve_programs_print_json_alone(tmp_path: Path) -> None:
    for told in printed([of_policy(policy) for policy in SOLVING], tmp_path):
        assert isinstance(told, dict) and told["summary"]["pods"] > 0


@pytest.mark.long
def test_every_policy_prints_json_alone(tmp_path: Path) -> None:
    needing = ("python", "edf")  # a scorer, jobs with deadlines
    policies = [name for name in registry.names() if name not in (*SOLVING, *needing)]
    for told in printed([of_policy(policy) for policy in policies], tmp_path):
        assert isinstance(told, dict) and told["summary"]["pods"] > 0


@pytest.mark.long
def test_what_a_scorer_prints_goes_to_standard_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "noisy.py").write_text(NOISY)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    command = fastsim("run", *PODS, "--policy", "python(scorer='noisy:points')", "--json")
    assert isinstance(parsed(command), dict)
    assert all(command.err.count(line) == 12 for line in ("printed by a scorer", "written past", "said by a process"))
    (tmp_path / "sweep.toml").write_text(SWEEP.replace('"random"', "\"python(scorer='noisy:points')\""))
    command = fastsim(
        "sweep", tmp_path / "sweep.toml", "--out", tmp_path / "runs", "--workers", 2, "--json", "--allow-code"
    )
    assert isinstance(parsed(command), list)
    assert command.err.count("printed by a scorer") > 12


def test_a_scorer_in_the_current_folder_is_found_by_the_installed_command(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text(NOISY)
    words = ["run", *PODS, "--policy", "python(scorer='noisy:points')", "--json"]
    # -P: as the installed command, whose folder is the one that Python looks in first.
    command = [sys.executable, "-P", "-m", "fastsim.cli.main", *words]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120)
    assert parsed(Outcome(done.returncode, done.stdout, done.stderr))


@pytest.mark.long
def test_every_verb_with_json_prints_json_alone(tmp_path: Path) -> None:
    run, kept, pods = tmp_path / "run", tmp_path / "kept", tmp_path / "pods.parquet"
    (tmp_path / "sweep.toml").write_text(SWEEP)
    rates = 'cluster = "gavel:2:2:2"\nworkload = "synth:gavel"\njobs = 40\npolicy = ["max_min_fairness"]\nseed = [0]\n'
    (tmp_path / "knee.toml").write_text(rates)
    words = (*PODS[:2], "--workload", pods, "--checkpoint", 4)
    board = node("n3", {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}, amounts={"nvidia.com/gpu": "1"})
    waits = pod("w", {"nvidia.com/mig-1g.10gb": "1"})
    now = written(tmp_path / "now.json", node("n1"), node("n2"), board, runs("a", "n1", {"cpu": 1}), waits)
    jobs = tmp_path / "jobs"
    Workload.synth("openb", pods=12).write(pods)
    commands: list[tuple[object, ...]] = [
        ("run", *JOBS, "--policy", "las", "--out", jobs),
        ("run", *PODS, "--out", run),
        ("run", *words, "--keep-checkpoint", "--out", kept),
        ("fork", kept, "--policy", "pwr", "-o", tmp_path / "other"),
        ("resume", kept, "--force"),
        ("compare", run, kept),
        ("explain", run, "3"),
        ("audit", run),
        ("fairness", jobs),
        ("run", "--cluster", f"kubernetes:{now}", "--workload", f"kubernetes:{now}", "--out", tmp_path / "teams"),
        ("tenants", tmp_path / "teams"),
        ("trace", "lint", pods),
        ("trace", "stats", pods),
        ("sweep", tmp_path / "sweep.toml", "--out", tmp_path / "runs"),
        ("sweep", tmp_path / "sweep.toml", "--out", tmp_path / "none", "--dry-run"),
        ("sweep", "stats", tmp_path / "runs", "--metric", "gpu_alloc_pct"),
        ("sweep", "knee", tmp_path / "knee.toml", "--low", 0.1, "--high", 30, "--tolerance", 0.9),
        ("plan", "--cluster", "openb:2", "--workload", pods, "--add", "g2"),
        ("consolidate", "--cluster", f"kubernetes:{now}"),
        ("mig", "--cluster", f"kubernetes:{now}"),
        ("demo", "--nodes", 4, "--pods", 8, "--out", tmp_path / "demo"),
        ("list", "policies"),
        ("describe", "sia"),
        ("describe", "metrics"),
    ]
    flagged = {
        name for name, verb in VERBS.items()
        if any(isinstance(one, click.Option) and one.is_flag and "--json" in one.opts for one in verb.params)
    }  # fmt: skip
    told = [" ".join(map(str, command)) + " " for command in commands]
    missing = {name for name in flagged if not any(words.startswith(f"{name} ") for words in told)}
    assert missing == {"sweep run", "reproduce"}  # which stands there as `sweep`, and below
    found = printed([(*command, "--json") for command in commands], tmp_path)
    assert all(isinstance(told, list | dict) for told in found)


@pytest.mark.long
def test_a_reproduction_prints_json_alone(tmp_path: Path) -> None:
    solved = ("--figure", "11")  # one whose policy solves programs
    assert parsed(fastsim("reproduce", "gavel", "--quick", *solved, "--out", tmp_path / "gavel", "--json"))
