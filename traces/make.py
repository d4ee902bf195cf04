"""Makes the sample files of this folder again and checks or rewrites their checksums: `python traces/make.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fastsim.cluster.cluster import Cluster
from fastsim.workload import Workload

FOLDER = Path(__file__).parent
MANIFEST = FOLDER / "manifest.json"


def made(entry: dict[str, Any]) -> Cluster | Workload:
    """The cluster or workload that an entry of the manifest describes."""
    options = dict(entry["options"])
    if entry["table"] == "nodes":
        return Cluster.scaled(**options)
    options["cluster"] = Cluster.scaled(**options["cluster"])
    return Workload.synth(entry["generator"], **options)


def rewrite() -> None:
    """Writes every file and its checksum."""
    manifest = json.loads(MANIFEST.read_text(encoding="utf-8"))
    for name, entry in manifest["files"].items():
        content = made(entry)
        write = content.to_parquet if isinstance(content, Cluster) else content.write
        write(FOLDER / name)
        entry["checksum"] = content.checksum()
    MANIFEST.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    rewrite()
