"""Clusters as published: Gavel's `v100:p100:k80`, Sia's `aws:dgx-ext:rtx`, Synergy's INI files.

Gavel counts GPUs of three models, Sia machines of three kinds; Synergy's servers are equal.
"""

from __future__ import annotations

import configparser
import os
from pathlib import Path
from typing import Any

from fastsim.cluster.node_table import Nodes
from fastsim.cluster.node_types import mixed, node_types
from fastsim.cluster.server import GB_MIB, NETWORK_GBPS, STORAGE_MB_S
from fastsim.errors import InputError, ScenarioError, short
from fastsim.foundation.nested_text import json_value
from fastsim.hardware.model_catalog import Catalog, GpuModel

MODELS = ("v100", "p100", "k80")
"""GPU models that the numbers of Gavel's specification count, in its order."""
MACHINES: dict[str, dict[str, Any]] = {
    "aws": {"num_gpu": 4, "cpu_milli": 48_000, "memory_mib": 196_608},
    "dgx-ext": {"num_gpu": 8, "cpu_milli": 128_000, "memory_mib": 1_048_576},
    "rtx": {"num_gpu": 8, "cpu_milli": 40_000, "memory_mib": 196_608},
}
"""Machines that the numbers of Sia's specification count, in its order: T4, A100-40GB and RTX 2080 Ti GPUs."""
WATTS = {
    "aws": GpuModel(10, 70, 15_109),
    "dgx-ext": GpuModel(50, 400, 40_960),
    "rtx": GpuModel(20, 250, 11_264),
}
"""Watts and MiB of one GPU of those machines: from the catalogue, or rounded from data sheets."""
DEFAULT = "6:2:3"
"""The cluster of most of Sia's experiments: 64 GPUs."""
SECTION = "CLUSTER"
"""Section of Synergy's INI files."""
USUAL = {
    "racks": 1, "servers_per_rack": 4, "gpus_per_server": 8, "cpus_per_server": 24, "dram_per_server": 500,
    "sspeed_per_server": 300, "net_per_server": 40,
}  # fmt: skip
"""Defaults of the keys in that section: servers, GPUs, CPUs, GB, MB/s and Gbit/s."""
MODEL = "v100"
"""GPU model of Synergy's experiments."""


def gavel_parts(spec: str | os.PathLike[str], per_server: str = "1:1:1") -> list[tuple[int, dict[str, Any]]]:
    """(count, columns) of each kind of node, sorted by model; CPU and memory of a node are proportional to its GPUs."""
    gpus = _numbers("cluster gavel", _specification(spec), 0)
    sizes = _numbers("cluster gavel: per_server", per_server, 1)
    parts = []
    for model in sorted(MODELS):
        count, size = gpus[model] // sizes[model], sizes[model]
        one = node_types()[model]
        shape = {"gpu_model": model, "num_gpu": size}
        shape |= {"cpu_milli": size * one.cpu_milli, "memory_mib": size * one.memory_mib}
        parts.append((count, {"name": model, **shape}))
    if not any(count for count, _ in parts):
        raise InputError("cluster gavel", f"{spec} in nodes of {per_server}", "one node at least")
    return parts


def _numbers(where: str, text: str, least: int) -> dict[str, int]:
    words = str(text).split(":")
    if len(words) != len(MODELS) or not all(word.isdecimal() and int(word) >= least for word in words):
        raise InputError(where, repr(text), f"three whole numbers of {least} or more: {':'.join(MODELS)}")
    return dict(zip(MODELS, map(int, words), strict=True))


def _specification(spec: str | os.PathLike[str]) -> str:
    """The text itself, or the only one in a file such as `{"philly": ["500:0:0"]}`."""
    if not str(spec).endswith(".json"):
        return str(spec)
    content = ""
    try:
        content = Path(spec).read_text(encoding="utf-8")
        document = json_value(content)
        specs = [text for texts in document.values() for text in texts]
    except FileNotFoundError:
        raise InputError(str(spec), "no such file", "a JSON file of cluster specifications") from None
    except (OSError, ValueError, AttributeError, TypeError):
        raise InputError(str(spec), short(content), 'JSON such as {"name": ["36:36:36"]}') from None
    if len(specs) != 1:
        raise InputError(str(spec), f"{len(specs)} specifications", "one; give the text of one instead")
    return str(specs[0])


def sia_nodes(spec: str = DEFAULT, catalog: Catalog | None = None) -> Nodes:
    """The nodes of a specification of Sia; GPU models are named after machines, as in tables of applications."""
    words = str(spec).split(":")
    if len(words) != len(MACHINES) or not all(word.isdecimal() for word in words) or not any(map(int, words)):
        raise InputError("cluster sia", repr(spec), f"three whole numbers, not all 0: {':'.join(MACHINES)}")
    parts = [
        (int(word), {"name": name, "gpu_model": name, **shape})
        for word, (name, shape) in zip(words, MACHINES.items(), strict=True)
    ]
    known = (catalog or Catalog.default()).extended(gpu=WATTS)
    return mixed(parts, name=f"sia:{spec}", catalog=known)


def synergy_parts(spec: str | os.PathLike[str] | int, cpus: int | None = None) -> list[tuple[int, dict[str, Any]]]:
    """(count, columns) of the servers of an INI file, or of so many published servers with 24 or ``cpus`` CPUs.

    Racks only multiply the servers. Memory counts 1,024 MiB a GB.
    """
    if str(spec).isdecimal():
        keys = USUAL | {"servers_per_rack": int(str(spec)), "sspeed_per_server": 500, "cpus_per_server": cpus or 24}
    else:
        if cpus is not None:
            raise ScenarioError("cluster synergy: cpus", cpus, "none with a file, which has them")
        keys = USUAL | _ini_keys(Path(str(spec)))
    for name, value in keys.items():
        if value < 1:
            raise InputError(f"cluster synergy: {name}", value, "1 or more")
    shape = {
        "name": "server",
        "gpu_model": MODEL,
        "num_gpu": keys["gpus_per_server"],
        "cpu_milli": 1000 * keys["cpus_per_server"],
        "memory_mib": GB_MIB * keys["dram_per_server"],
        "extra_resources": {STORAGE_MB_S: keys["sspeed_per_server"], NETWORK_GBPS: keys["net_per_server"]},
    }
    return [(keys["racks"] * keys["servers_per_rack"], shape)]


def _ini_keys(path: Path) -> dict[str, int]:
    """The keys of the file's cluster section; other sections are ignored."""
    parser = configparser.ConfigParser(interpolation=None, inline_comment_prefixes=("#", ";"))
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(str(path), "no such file", "an INI file of a cluster") from None
    except (OSError, ValueError, configparser.Error) as error:  # ValueError: no UTF-8, or a path that cannot be
        raise InputError(str(path), " ".join(str(error).split()), "an INI file of a cluster") from None
    if not parser.has_section(SECTION):
        raise InputError(str(path), f"sections {', '.join(parser.sections()) or '(none)'}", f"a section [{SECTION}]")
    keys = {}
    for name, text in parser[SECTION].items():
        if name not in USUAL:
            raise InputError(f"{path}: {name}", "an unknown key", f"one of {', '.join(USUAL)}")
        try:
            keys[name] = int(text)
        except ValueError:
            raise InputError(f"{path}: {name}", repr(text), "a whole number") from None
    return keys
