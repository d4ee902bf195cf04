"""The verb mig: text, JSON and objects for the MIG manager, and what is refused."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fastsim as fs
from fastsim.cli.main import exit_code
from fastsim.kubernetes.objects import manifests
from tests.cli.terminal import fastsim_here
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


def offered(before: dict[str, Any], layouts: list[str]) -> dict[str, Any]:
    """A node as a device plugin reports it once its boards are divided: whole boards, and instances by profile."""
    counts = Counter({"nvidia.com/gpu": layouts.count("")})
    for part in filter(None, "+".join(layouts).split("+")):
        count, _, profile = part.rpartition("*")
        counts[f"nvidia.com/mig-{profile}"] += int(count or 1)
    amounts = {**before["status"]["allocatable"], **dict.fromkeys(("nvidia.com/gpu",), "0")}
    amounts |= {name: str(count) for name, count in counts.items()}
    labels = {**before["metadata"]["labels"], "nvidia.com/mig.strategy": "mixed"}
    return node(before["metadata"]["name"], labels, amounts=amounts)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.RunWarning")
def test_layouts_applied_to_the_dump_host_what_was_promised(seed: int, tmp_path: Path) -> None:
    """The dump with the nodes as they report themselves then is read again, and as many pods run."""
    draw = random.Random(seed)
    kinds = draw.sample(["mig-1g.10gb", "mig-2g.20gb", "mig-3g.40gb", "mig-7g.80gb", "gpu"], 3)
    nodes = {f"n{n}": node(f"n{n}", A100, amounts={"cpu": "96", "nvidia.com/gpu": str(draw.choice((1, 2)))})
             for n in range(draw.choice((1, 2)))}  # fmt: skip
    pods = [pod(f"w{n:02}", {f"nvidia.com/{draw.choice(kinds)}": "1"}) for n in range(draw.randint(1, 12))]
    now = f"kubernetes:{written(tmp_path / 'now.json', *nodes.values(), *pods)}"
    outcome = fastsim_here("mig", "--cluster", now, "--json", "-o", tmp_path / "mig.yaml", cwd=tmp_path)
    record = json.loads(outcome.out)
    assert record["optimal"] and outcome.code in (0, 1)
    after = nodes | {one["node"]: offered(nodes[one["node"]], one["after"]) for one in record["nodes"]}
    dump = f"kubernetes:{written(tmp_path / 'after.json', *after.values(), *pods)}"
    found = fs.simulate(dump, dump, "best_fit").placements
    assert sum(name is not None for name in found["node"]) == record["hosted"]


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
