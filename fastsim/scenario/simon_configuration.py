"""The configuration of FGD's and PWR's simulator (``simon apply -f FILE -s SCHEDULER``) as fields of a scenario.

A seed stands for the same pods, order of pods and order of nodes as there. What has no field is named in a notice each.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from fastsim.errors import InputError, short
from fastsim.kubernetes.objects import Manifest, manifests, mapping, sequence

File = str | os.PathLike[str]

PLUGINS = {
    "RandomScore": "random", "DotProductScore": "dot_product", "GpuClusteringScore": "gpu_clustering",
    "GpuPackingScore": "gpu_packing", "BestFitScore": "best_fit", "FGDScore": "fgd", "PWRScore": "pwr",
    "SimonScore": "simon",
}  # fmt: skip
"""Policies by the plugins of the scheduler that give points to nodes."""
PICKS = {"best": "best", "worst": "worst", "random": "random", **{name: PLUGINS[name] for name in
         ("FGDScore", "PWRScore", "DotProductScore")}}  # fmt: skip
"""Rules for the GPUs of a node by their names there."""
DESCHEDULERS = {"cosSim": "cos_sim", "fragOnePod": "frag_one_pod", "fragMultiPod": "frag_multi_pod"}
TYPICAL = {
    "podPopularityThreshold": "threshold", "podIncreaseStep": "step", "isInvolvedCpuPods": "cpu_pods",
    "gpuResWeight": "gpu_weight",
}  # fmt: skip
"""Options of typical pods by their names there."""
UNUSED = {
    "exportConfig": "fastsim export kubernetes writes the placements of a run",
    "newNode": "fastsim plan says how many nodes are missing",
}
"""Parts that no run needs, and what takes their place."""


class SimonScenario(NamedTuple):
    """Fields of a scenario by name, and what of the configuration they leave out."""

    fields: dict[str, Any]
    notices: list[str]


def simon_scenario(config: File, scheduler: File | None = None) -> SimonScenario:
    """The run that a configuration and the configuration of a scheduler, if there is one, describe.

    Paths in it are relative to the working directory. A live cluster (``kubeConfig``) and Helm charts are refused.
    """
    manifest = _only(config)
    spec, custom = manifest.part("spec"), manifest.part("spec", "customConfig")
    where = f"{manifest.where}: spec"
    tuning = mapping(custom, "workloadTuningConfig", where)
    ratio, seed = _number(tuning, "ratio", where), int(_number(tuning, "seed", where))
    nodes = _existing(manifest.part("spec", "cluster").get("customConfig"), f"{where}.cluster.customConfig")
    pods = f"kubernetes:{','.join([nodes, *_apps(spec, where)])}"
    fields: dict[str, Any] = {
        "cluster": f"kubernetes:{nodes}?shuffle={seed}",
        "workload": f"{pods}?tune={ratio:g}&tune_seed={seed}" if ratio > 0 else pods, "seed": seed,
    }  # fmt: skip
    fields |= _stages(custom, f"{where}.customConfig")
    notices = _left_out(spec, custom, where, ratio > 0)
    if scheduler is None:
        return SimonScenario(fields, [*notices, "no configuration of a scheduler: the policy is fgd"])
    return SimonScenario(fields | _placing(_only(scheduler)), notices)


def _only(path: File) -> Manifest:
    found = manifests(path)
    if len(found) > 1:
        raise InputError(str(path), f"{len(found)} documents", "one, a configuration")
    return found[0]


def _existing(path: Any, where: str) -> str:
    if not isinstance(path, str) or not os.path.exists(path):
        found = "nothing" if path is None else short(path)
        raise InputError(where, found, "a file or folder with the YAML of nodes and pods")
    return path


def _apps(spec: Mapping[str, Any], where: str) -> list[str]:
    """Folders of the pods that are to be placed."""
    paths = []
    for number, app in enumerate(sequence(spec, "appList", where), start=1):
        if app.get("chart"):
            raise InputError(f"{where}.appList: {number}: chart", "true", "YAML, as helm template writes it")
        paths.append(_existing(app.get("path"), f"{where}.appList: {number}: path"))
    return paths


def _number(part: Mapping[str, Any], name: str, where: str) -> float:
    """A number that is not negative; 0 if there is none."""
    value = part.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9):
        raise InputError(f"{where}: {name}", short(value), "a number, 0 or more")
    return float(value or 0)


def _stages(custom: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Typical pods, and what follows the main run."""
    fields: dict[str, Any] = {}
    typical = mapping(custom, "typicalPodsConfig", where)
    chosen = [f"{TYPICAL[name]}={str(value).lower()}" for name, value in typical.items() if name in TYPICAL]
    if chosen:
        fields["typical"] = f"same?{'&'.join(chosen)}"
    inflation = _number(mapping(custom, "workloadInflationConfig", where), "ratio", where)
    if inflation > 1:
        fields["inflation"] = inflation
    if custom.get("newWorkloadConfig"):
        fields["retarget"] = f"kubernetes:{_existing(custom['newWorkloadConfig'], f'{where}.newWorkloadConfig')}"
    step = mapping(custom, "descheduleConfig", where)
    ratio = _number(step, "ratio", where)
    if ratio > 0:
        rule = _known(step.get("policy"), DESCHEDULERS, f"{where}.descheduleConfig.policy")
        fields["deschedule"] = [f"{rule}:{ratio:g}"]
    return fields


def _known(name: Any, names: Mapping[str, str], where: str) -> str:
    if name not in names:
        raise InputError(where, short(name), f"one of {', '.join(names)}")
    return names[name]


def _left_out(spec: Mapping[str, Any], custom: Mapping[str, Any], where: str, tuned: bool) -> list[str]:
    """A notice for every part that the fields do not have."""
    read = {"shufflePod", "workloadTuningConfig", "typicalPodsConfig", "workloadInflationConfig", "newWorkloadConfig",
            "descheduleConfig"}  # fmt: skip
    parts = {
        f"{where}.{name}": name for name in spec if spec[name] and name not in ("cluster", "appList", "customConfig")
    }
    parts |= {f"{where}.customConfig.{name}": name for name in custom if custom[name] and name not in read}
    typical = mapping(custom, "typicalPodsConfig", where)
    parts |= {f"{where}.customConfig.typicalPodsConfig.{name}": name for name in typical if name not in TYPICAL}
    notices = [f"{place}: {UNUSED.get(name, 'not known')}" for place, name in parts.items()]
    if bool(custom.get("shufflePod")) != tuned:
        order = "are shuffled, as those of any load" if tuned else "keep their order: only those of a load are shuffled"
        notices.append(f"{where}.customConfig.shufflePod: pods {order}")
    return notices


def _placing(manifest: Manifest) -> dict[str, Any]:
    """The policy of the scheduler's first profile, and its rule for the GPUs of a node."""
    profiles = sequence(manifest.body, "profiles", manifest.where)
    where = f"{manifest.where}: profiles"
    if not profiles:
        raise InputError(where, "nothing", "a profile with plugins that give points to nodes")
    enabled = sequence(mapping(mapping(profiles[0], "plugins", where), "score", where), "enabled", where)
    settings: dict[str, Any] = {}
    for one in sequence(profiles[0], "pluginConfig", where):
        args = mapping(one, "args", where)
        settings |= {name: args[name] for name in ("gpuSelMethod",) if name in args}
        if one.get("name") == "DotProductScore":
            settings |= {name: args[name] for name in ("dimExtMethod", "normMethod") if name in args}
    terms = [(_number(one, "weight", where) or 1.0, _plugin(one.get("name"), settings, where)) for one in enabled]
    if not terms:
        raise InputError(f"{where}: plugins.score.enabled", "nothing", f"one of {', '.join(PLUGINS)}")
    policy = terms[0][1] if len(terms) == 1 else " + ".join(f"{weight:g}*{name}" for weight, name in terms)
    pick = settings.get("gpuSelMethod")
    return {"policy": policy} | (
        {} if pick is None else {"gpu_pick": _known(pick, PICKS, f"{where}: pluginConfig: gpuSelMethod")}
    )


def _plugin(name: Any, settings: Mapping[str, Any], where: str) -> str:
    """A policy as text, with the vectors of dot_product."""
    policy = _known(name, PLUGINS, f"{where}: plugins.score.enabled")
    vectors = {"dimExtMethod": "dim", "normMethod": "norm"} if policy == "dot_product" else {}
    given = [f"{ours}={settings[theirs]}" for theirs, ours in vectors.items() if theirs in settings]
    return f"{policy}({', '.join(given)})" if given else policy
