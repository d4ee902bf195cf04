"""The sample files of traces/ are what their manifest says, and can be made again."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.cluster.node_table import NODE_SCHEMA
from fastsim.workload import Workload
from fastsim.workload.schema import POD_SCHEMA
from tests.needs import in_checkout

FOLDER = Path(__file__).resolve().parents[2] / "traces"
FILES: dict[str, dict[str, Any]] = json.loads(in_checkout(FOLDER / "manifest.json").read_text(encoding="utf-8"))[
    "files"
]


@pytest.fixture(scope="module")
def make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("traces_make", FOLDER / "make.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", FILES)
def test_sample_is_its_checksum_and_can_be_made_again(make: ModuleType, name: str) -> None:
    entry, path = FILES[name], FOLDER / name
    stored = Cluster.from_parquet(path) if entry["table"] == "nodes" else Workload.scan(path)
    assert stored.checksum() == entry["checksum"]
    assert make.made(entry).checksum() == entry["checksum"]


def test_samples_are_all_listed_and_small() -> None:
    stored = {path.name: path.stat().st_size for path in FOLDER.glob("*.parquet")}
    assert set(stored) == set(FILES)
    assert sum(stored.values()) < 200_000


@pytest.mark.parametrize(("heading", "schema"), [("## nodes", NODE_SCHEMA), ("## pods", POD_SCHEMA)])
def test_readme_describes_every_input_column(heading: str, schema: Any) -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    section = text.split(heading + "\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1].strip().strip("`") for line in section.splitlines() if line.startswith("| `")]
    assert rows == schema.names
