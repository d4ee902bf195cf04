"""The recorded runs of the Synergy simulator. Nothing here names a run."""

from __future__ import annotations

import gzip
import json
from typing import Any

from tests.conftest import SHARED

SYNERGY = SHARED / "golden/synergy"


def lines(name: str) -> list[dict[str, Any]]:
    """The objects of a gzipped file with one a line."""
    with gzip.open(SYNERGY / name, "rt", encoding="utf-8") as text:
        return [json.loads(line) for line in text]


def attachments() -> list[tuple[float, list[float], dict[str, Any]]]:
    """CPUs per GPU, size of a server, and one attached profile, for each that was recorded."""
    path = SYNERGY / "profile_attach.json"
    settings = json.loads(path.read_text()) if path.exists() else {}
    return [
        (setting["fair_per_gpu"][1], setting["per_server_size"], profile)
        for setting in settings.values()
        for profile in setting["profiles"]
    ]
