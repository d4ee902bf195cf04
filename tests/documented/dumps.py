"""Dumps of Kubernetes objects worked by hand: a documented rule, objects, and the node of each pod that it implies.

A dump is read as one list in JSON, as documents of YAML, and as folders of files in JSON and YAML in another order.
Pods are created a second apart in the order in which a case has them, so that the order of files does not matter.
"""

from __future__ import annotations

import json
import random
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import yaml

import fastsim as fs

Object = dict[str, Any]
FORMS = ("json", "yaml", "folder", "folder of yaml")


@dataclass(frozen=True)
class Dump:
    """A rule in words, objects, and the nodes on which each pod may be.

    An empty text is a pod that gets no node; a pod that is left out of the run has none, either.
    """

    rule: str
    objects: list[Object]
    expected: dict[str, str | set[str]]
    options: dict[str, Any] = field(default_factory=dict)
    policy: str = "best_fit"

    def __str__(self) -> str:
        return self.rule


def in_order(objects: list[Object]) -> list[Object]:
    """The objects with the times at which they were created, a second apart."""
    dated = []
    for second, item in enumerate(objects):
        created = f"2026-01-01T00:00:{second:02}Z"
        dated.append({**item, "metadata": {"creationTimestamp": created, **item["metadata"]}})
    return dated


def written(dump: Dump, form: str, folder: Path) -> Path:
    """The dump in one of the forms."""
    objects = in_order(dump.objects)
    if form == "json":
        path = folder / "dump.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    elif form == "yaml":
        path = folder / "dump.yaml"
        path.write_text(yaml.safe_dump_all(objects))
    else:
        path = folder / "dump"
        path.mkdir()
        random.Random(dump.rule).shuffle(objects)
        for number, item in enumerate(objects):
            if form == "folder":
                (path / f"{number:02}.json").write_text(json.dumps(item))
            else:
                (path / f"{number:02}.{('yaml', 'yml')[number % 2]}").write_text(yaml.safe_dump(item))
    return path


def places(dump: Dump, form: str, folder: Path) -> dict[str, str]:
    """The node of each pod after one pass over the queue, by its name; an empty text without a node."""
    text = f"kubernetes:{written(dump, form, folder)}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = fs.simulate(text, text, dump.policy, record="placements", **dump.options)
    names = pl.col("native_id").str.strip_prefix("default/")
    found: dict[str, str] = dict.fromkeys(result.jobs.select(names).to_series().to_list(), "")
    return found | dict(result.placements.drop_nulls("node").select(names, "node").iter_rows())


def unexpected(dump: Dump, form: str, folder: Path) -> dict[str, str | None]:
    """Pods on nodes that the rule does not allow, pods that are not there, and pods too many."""
    found = places(dump, form, folder)
    wrong: dict[str, str | None] = {name: node for name, node in found.items() if name not in dump.expected}
    for name, allowed in dump.expected.items():
        nodes = {allowed} if isinstance(allowed, str) else allowed
        if found.get(name, "") not in nodes:
            wrong[name] = found.get(name)
    return wrong
