"""Configurations of FGD's simulator as fields of a scenario: what is taken, what is told, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastsim.cli.main import exit_code
from fastsim.errors import InputError
from fastsim.policies.registry import placing
from fastsim.scenario.scenario import Scenario
from fastsim.scenario.simon_configuration import PLUGINS, simon_scenario
from fastsim.simulation.simulate import run

NODE = """apiVersion: v1
kind: Node
metadata: {name: n%d, labels: {alibabacloud.com/gpu-card-model: T4}}
status:
  allocatable: {alibabacloud.com/gpu-count: "2", alibabacloud.com/gpu-milli: "2000", cpu: 8000m, memory: 9Gi, pods: "9"}
  capacity: {alibabacloud.com/gpu-count: "2", alibabacloud.com/gpu-milli: "2000", cpu: 8000m, memory: 9Gi, pods: "9"}
---
"""
POD = """apiVersion: v1
kind: Pod
metadata: {name: %s, annotations: {alibabacloud.com/gpu-milli: "500", alibabacloud.com/gpu-count: "1"}}
spec: {containers: [{name: main, resources: {requests: {cpu: "1", memory: 1Gi}}}]}
---
"""
CUSTOM = """    shufflePod: true
    workloadTuningConfig: {ratio: 1.5, seed: 42}
    workloadInflationConfig: {ratio: 1.2, seed: 233}
    descheduleConfig: {ratio: 0.1, policy: fragOnePod}
    typicalPodsConfig: {isInvolvedCpuPods: true, podPopularityThreshold: 95, podIncreaseStep: 1, gpuResWeight: 0}
"""
SCHEDULER = """apiVersion: kubescheduler.config.k8s.io/v1beta1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: simon-scheduler
  plugins:
    score:
      disabled: [{name: "*"}]
      enabled: [{name: PWRScore, weight: 500}, {name: FGDScore, weight: 500}]
  pluginConfig:
  - {name: DotProductScore, args: {dimExtMethod: share, normMethod: pod}}
  - {name: Devices, args: {gpuSelMethod: FGDScore}}
"""


def config(
    folder: Path,
    custom: str = CUSTOM,
    cluster: str = "customConfig: {cluster}",
    app: str = "name: pods, path: {apps}",
    more: str = "",
) -> Path:
    """A configuration beside a folder of two nodes and a pod, and one of three pods."""
    for name, text in (("cluster", NODE % 0 + NODE % 1 + POD % "a"), ("apps", "".join(POD % n for n in "bcd"))):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "objects.yaml").write_text(text)
    path = folder / "simon.yaml"
    path.write_text(
        "apiVersion: simon/v1alpha1\nkind: Config\nmetadata: {name: one}\nspec:\n"
        f"  cluster:\n    {cluster.format(cluster=folder / 'cluster')}\n"
        f"  appList: [{{{app.format(apps=folder / 'apps')}}}]\n{more}"
        + (f"  customConfig:\n{custom}" if custom else "")
    )
    return path


def scheduler(folder: Path, text: str = SCHEDULER) -> Path:
    path = folder / "scheduler.yaml"
    path.write_text(text)
    return path


def test_every_part_has_its_field(tmp_path: Path) -> None:
    fields, notices = simon_scenario(config(tmp_path), scheduler(tmp_path))
    assert (notices, fields) == ([], {
        "cluster": f"kubernetes:{tmp_path}/cluster?shuffle=42",
        "workload": f"kubernetes:{tmp_path}/cluster,{tmp_path}/apps?tune=1.5&tune_seed=42", "seed": 42,
        "typical": "same?cpu_pods=true&threshold=95&step=1&gpu_weight=0", "inflation": 1.2,
        "deschedule": ["frag_one_pod:0.1"], "policy": "500*pwr + 500*fgd", "gpu_pick": "fgd",
    })  # fmt: skip
    assert not Scenario.from_dict(fields).problems()
    result = run(Scenario.from_dict(fields))
    assert result.summary["pods"].item() >= 4 and len(result.stages) == 4


def test_a_configuration_without_options_is_the_pods_as_they_are(tmp_path: Path) -> None:
    fields, notices = simon_scenario(config(tmp_path, custom=""))
    assert fields == {
        "cluster": f"kubernetes:{tmp_path}/cluster?shuffle=0",
        "workload": f"kubernetes:{tmp_path}/cluster,{tmp_path}/apps", "seed": 0,
    }  # fmt: skip
    assert notices == ["no configuration of a scheduler: the policy is fgd"]


@pytest.mark.parametrize("plugin", PLUGINS)
def test_every_plugin_is_a_policy(plugin: str, tmp_path: Path) -> None:
    text = SCHEDULER.replace("{name: PWRScore, weight: 500}, {name: FGDScore, weight: 500}", f"{{name: {plugin}}}")
    policy = simon_scenario(config(tmp_path), scheduler(tmp_path, text)).fields["policy"]
    assert policy == ("dot_product(dim=share, norm=pod)" if plugin == "DotProductScore" else PLUGINS[plugin])
    placing(policy)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"custom": "    shufflePod: true\n"},
            "customConfig.shufflePod: pods keep their order: only those of a load are",
        ),
        ({"custom": "    workloadTuningConfig: {ratio: 2}\n"}, "customConfig.shufflePod: pods are shuffled"),
        ({"custom": "    exportConfig: {nodeSnapshotCSVFilePrefix: a}\n"}, "customConfig.exportConfig: fastsim export"),
        ({"custom": "    typicalPodsConfig: {colour: red}\n"}, "customConfig.typicalPodsConfig.colour: not known"),
        ({"more": "  newNode: nodes/one\n"}, "spec.newNode: fastsim plan"),
        ({"more": "  weather: fine\n"}, "spec.weather: not known"),
    ],
)
def test_what_is_left_out_is_told(given: dict[str, Any], told: str, tmp_path: Path) -> None:
    notices = simon_scenario(config(tmp_path, **{"custom": "", **given}), scheduler(tmp_path)).notices
    assert len(notices) == 1 and told in notices[0]


@pytest.mark.parametrize(
    ("given", "text", "found"),
    [
        (
            {"cluster": "kubeConfig: here"},
            SCHEDULER,
            r"spec.cluster.customConfig: found nothing, expected a file or folder",
        ),
        ({"cluster": "customConfig: there"}, SCHEDULER, r"customConfig: found 'there', expected a file or folder"),
        ({"app": "name: a, path: p, chart: true"}, SCHEDULER, r"appList: 1: chart: found true"),
        (
            {"custom": "    workloadTuningConfig: {ratio: much}\n"},
            SCHEDULER,
            r"ratio: found 'much', expected a number, 0",
        ),
        (
            {"custom": "    descheduleConfig: {ratio: 0.1, policy: x}\n"},
            SCHEDULER,
            r"policy: found 'x', expected one of cosS",
        ),
        ({"custom": "    newWorkloadConfig: away\n"}, SCHEDULER, r"newWorkloadConfig: found 'away'"),
        (
            {},
            SCHEDULER.replace("PWRScore", "Other"),
            r"plugins.score.enabled: found 'Other', expected one of RandomScore",
        ),
        ({}, SCHEDULER.replace("500", "heavy", 1), r"weight: found 'heavy'"),
        (
            {},
            SCHEDULER.replace("gpuSelMethod: FGDScore", "gpuSelMethod: all"),
            r"gpuSelMethod: found 'all', expected one of",
        ),
        ({}, "kind: KubeSchedulerConfiguration\n", r"profiles: found nothing"),
        ({}, "kind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: a}]\n", r"score.enabled: found nothing"),
        ({}, SCHEDULER + "---\n" + SCHEDULER, r"found 2 documents, expected one"),
    ],
)
def test_what_no_run_can_have_is_refused(given: dict[str, Any], text: str, found: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=found):
        simon_scenario(config(tmp_path, **given), scheduler(tmp_path, text))


def test_the_verb_writes_a_file_that_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "one.toml"
    given = [str(config(tmp_path, custom="")), "--scheduler", str(scheduler(tmp_path))]
    assert exit_code(["import", "simon", *given, "-o", str(output)]) == 0
    assert capsys.readouterr() == (f"{output}: cluster, workload, seed, policy, gpu_pick\n", "")
    assert exit_code(["run", "--scenario", str(output), "--json"]) == 0
    assert '"pods": 4' in capsys.readouterr().out
