"""SECURITY.md promises what the sources keep: no pickle from files, no code from texts, loopback by default."""

from __future__ import annotations

import ast
from inspect import signature
from pathlib import Path

from fastsim.foundation.http.service import LOOPBACK, Service, address_of
from tests.docs.pages import ROOT
from tests.style.tree import sources

TEXT = (ROOT / ".github" / "SECURITY.md").read_text(encoding="utf-8")
UNPICKLED = {"processes.py"}
"""Modules that read what processes of the same run tell each other."""
RUN = {"eval", "exec", "compile", "__import__", "yaml.load", "yaml.unsafe_load", "yaml.full_load", "allow_pickle=True"}
"""Functions that run texts or make any object of them."""
UNPICKLING = {"pickle.load", "pickle.loads", "pickle.Unpickler", "cloudpickle.loads"}


def calls(path: Path) -> set[str]:
    """Names of functions that a module calls, with the object before the dot; arguments that allow pickles."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            found.add(ast.unparse(node.func))
            found |= {f"{one.arg}={ast.unparse(one.value)}" for one in node.keywords if one.arg == "allow_pickle"}
    return found


def test_nothing_from_a_file_runs() -> None:
    wrong = []
    for path in sources("fastsim", suffix=".py"):
        found = calls(path)
        forbidden = RUN if path.name in UNPICKLED else RUN | UNPICKLING
        if found & forbidden or ("np.load" in found and "allow_pickle=False" not in found):
            wrong.append(path.name)
    assert wrong == []


def test_services_listen_on_loopback_unless_told_otherwise() -> None:
    assert LOOPBACK == "127.0.0.1" and "listen on 127.0.0.1 unless `--listen`" in TEXT
    assert signature(Service).parameters["host"].default == LOOPBACK
    assert address_of(":9400") == (LOOPBACK, 9400)
