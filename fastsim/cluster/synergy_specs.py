"""Synergy's clusters: equal servers, from an INI file or from their number."""

from __future__ import annotations

import configparser
import os
from pathlib import Path
from typing import Any

from fastsim.cluster.server import GB_MIB, NETWORK_GBPS, STORAGE_MB_S
from fastsim.errors import InputError, ScenarioError

SECTION = "CLUSTER"
USUAL = {
    "racks": 1, "servers_per_rack": 4, "gpus_per_server": 8, "cpus_per_server": 24, "dram_per_server": 500,
    "sspeed_per_server": 300, "net_per_server": 40,
}  # fmt: skip
"""What a key that a file leaves out stands for: servers, GPUs, CPUs, GB, MB/s and Gbit/s."""
MODEL = "v100"
"""GPU model of the published experiments."""


def synergy_parts(spec: str | os.PathLike[str] | int, cpus: int | None = None) -> list[tuple[int, dict[str, Any]]]:
    """(count, columns) of the servers of an INI file, or of so many published servers with 24 or ``cpus`` CPUs.

    Racks only multiply the servers. Memory counts 1,024 MiB a GB.
    """
    if str(spec).isdecimal():
        keys = USUAL | {"servers_per_rack": int(str(spec)), "sspeed_per_server": 500, "cpus_per_server": cpus or 24}
    else:
        if cpus is not None:
            raise ScenarioError("cluster synergy: cpus", cpus, "none: the file tells")
        keys = USUAL | _written(Path(str(spec)))
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


def _written(path: Path) -> dict[str, int]:
    """The keys of the file's cluster section; the others say nothing about the cluster."""
    parser = configparser.ConfigParser(interpolation=None, inline_comment_prefixes=("#", ";"))
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(str(path), "no such file", "an INI file of a cluster") from None
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        raise InputError(str(path), " ".join(str(error).split()), "an INI file of a cluster") from None
    if not parser.has_section(SECTION):
        raise InputError(str(path), f"sections {', '.join(parser.sections()) or '(none)'}", f"a section [{SECTION}]")
    found = {}
    for name, text in parser[SECTION].items():
        if name not in USUAL:
            raise InputError(f"{path}: {name}", "an unknown key", f"one of {', '.join(USUAL)}")
        try:
            found[name] = int(text)
        except ValueError:
            raise InputError(f"{path}: {name}", repr(text), "a whole number") from None
    return found
