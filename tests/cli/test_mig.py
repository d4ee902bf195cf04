"""The verb mig: text, JSON and objects for the MIG manager, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fastsim.cli.main import exit_code
from fastsim.kubernetes.objects import manifests
from tests.objects import node, pod, written

A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}


@pytest.fixture
def now(tmp_path: Path) -> str:
    """A node of two boards, one in use, and pods that wait for instances."""
    pods = [pod("r", {"nvidia.com/gpu": "1"}, status={"phase": "Running"}, nodeName="n1")]
    pods += [pod(f"w{n}", {"nvidia.com/mig-3g.40gb": "1"}) for n in range(3)]
    file = written(tmp_path / "now.json", node("n1", A100, amounts={"nvidia.com/gpu": "2"}), *pods)
    return f"kubernetes:{file}"


def test_layouts_and_objects_are_written(now: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mig.json"
    assert exit_code(["mig", "--cluster", now, "-o", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "2*3g.40gb" in printed and "2 of 3 waiting pods run, 0 with the layouts of now" in printed
    assert printed.endswith("no layouts host more\n")
    config, labelled = manifests(file)
    name = labelled.part("metadata", "labels")["nvidia.com/mig.config"]
    entries = json.loads(config.part("data")["config.yaml"])["mig-configs"][name]
    assert {"devices": [1], "mig-enabled": True, "mig-devices": {"3g.40gb": 2}} in entries
    assert {"devices": [0], "mig-enabled": False, "mig-devices": {}} in entries
    assert exit_code(["mig", "--cluster", now, "--json"]) == 0
    record: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (record["hosted"], record["bound"], record["optimal"]) == (2, 2, True)
    assert record["nodes"] == [{"node": "n1", "gpu_model": "A100-80GB", "before": ["", ""], "after": ["", "2*3g.40gb"]}]


def test_pods_of_instances_tolerate_what_they_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taint = {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}
    asks: dict[str, object] = {"nvidia.com/mig-7g.80gb": "1"}
    objects = [node("n1", A100, taint, {"nvidia.com/gpu": "2"}), pod("closed", asks),
               pod("open", asks, tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}])]  # fmt: skip
    assert exit_code(["mig", "--cluster", f"kubernetes:{written(tmp_path / 'now.json', *objects)}", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["waiting"], record["hosted"], record["bound"]) == (2, 1, 1)


def test_exit_code_1_if_no_layouts_host_more(now: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["mig", "--cluster", now, "--boards", "0"]) == 1
    assert "0 of 3 waiting pods run" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--cluster", "openb:2"], "--workload: found none, expected pods that wait"),
        (["--cluster", "kubernetes:none.json"], "none.json: found no such file or folder"),
        (["--node", "n7"], "mig: nodes: found 'n7', expected nodes of the cluster"),
        (["--boards", "-1"], "-1 is not in the range"),
        (["-o", "x.txt"], "x.txt: found a name that ends in .txt"),
    ],
)
def test_bad_input(now: str, words: list[str], found: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = words if "--cluster" in words else ["--cluster", now, *words]
    assert exit_code(["mig", *given]) == 2
    line = capsys.readouterr().err
    assert found in line and "Traceback" not in line
