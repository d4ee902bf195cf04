"""YAML documents whose size is known before anything is built of them: depth, nodes and what aliases stand for.

The events of the parser are counted one by one. Building documents recurses, in compiled code without a guard, and an
alias costs nine characters however much it repeats; so neither is begun on a text that is too deep or too large.
"""

from __future__ import annotations

import re
from typing import Any

from fastsim.errors import ScenarioError, short
from fastsim.foundation.nested_text import DEEPEST, TOO_DEEP

MOST_NODES = 10_000_000
"""Most values of a text, keys included."""
MOST_REPEATED = 1_000_000
"""Most values that all aliases of a text may stand for together."""
MERGE = "tag:yaml.org,2002:merge"
"""Tag of the name ``<<``, which adds the values of another mapping."""
SEXAGESIMAL = re.compile(r"[-+0-9_:.]{400,}")
"""Numbers to base 60 take time that grows with the square of their length."""


def yaml_documents(where: str, text: str) -> list[Any]:
    """The documents of a text; ValueError if it is no YAML or too large. Texts that look like dates stay texts."""
    try:
        import yaml
    except ImportError:
        raise ScenarioError(where, "no PyYAML", "a reader of YAML", "pip install 'fastsim-gpu[k8s]'") from None
    loader = _loader()
    try:
        count = _Count()
        for event in yaml.parse(text, Loader=loader):
            count.take(event)
        return list(yaml.load_all(text, loader))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError(TOO_DEEP) from None


class _Count:
    """Depth and number of the values so far; ``anchors`` are the values each stands for, None while it is open."""

    def __init__(self) -> None:
        self.nodes = self.repeated = 0
        self.open: list[tuple[str | None, int]] = []
        self.anchors: dict[str, int | None] = {}

    def take(self, event: Any) -> None:
        """Count one event; ValueError as soon as a limit is passed."""
        kind = type(event).__name__
        if kind == "ScalarEvent":
            self._scalar(event)
        elif kind in ("SequenceStartEvent", "MappingStartEvent"):
            self._begin(event.anchor)
        elif kind in ("SequenceEndEvent", "MappingEndEvent"):
            anchor, before = self.open.pop()
            if anchor is not None:
                self.anchors[anchor] = self.nodes + self.repeated - before
        elif kind == "AliasEvent":
            self._alias(event.anchor)
        elif kind == "DocumentStartEvent":
            self.anchors.clear()

    def _node(self) -> None:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise ValueError(f"more than {MOST_NODES:,} values")

    def _scalar(self, event: Any) -> None:
        self._node()
        if event.anchor is not None:
            self.anchors[event.anchor] = 1
        if not event.value.isascii():
            event.value.encode()  # a UnicodeEncodeError, which is a ValueError, for half a pair of surrogates
        if event.implicit[0] and ":" in event.value and SEXAGESIMAL.fullmatch(event.value):
            raise ValueError(f"a number to base 60 with {len(event.value):,} characters")

    def _begin(self, anchor: str | None) -> None:
        self.open.append((anchor, self.nodes + self.repeated))
        if anchor is not None:
            self.anchors[anchor] = None
        self._node()
        if len(self.open) > DEEPEST:
            raise ValueError(TOO_DEEP)

    def _alias(self, anchor: str) -> None:
        size = self.anchors.get(anchor, 1)  # the loader refuses an alias without an anchor
        if size is None:
            raise ValueError(f"the alias *{anchor[:60]} inside what it stands for")
        self.repeated += size
        if self.repeated > MOST_REPEATED:
            raise ValueError(f"aliases that stand for more than {MOST_REPEATED:,} values")


def _loader() -> Any:
    """The safe loader without dates: times are texts, as they are in JSON, and so are the names of values."""
    import yaml

    class Plain(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
            found = {_name(key): value for key, value in super().construct_mapping(node, deep).items()}
            if len(found) < len(node.value):
                own = getattr(node, "own", [key for key, _ in node.value])
                _refuse_repeated([(self.construct_object(key), key.start_mark.line + 1) for key in own])
            return found

        def flatten_mapping(self, node: Any) -> None:
            if any(key.tag == MERGE for key, _ in node.value):  # whose names may repeat those of the mapping itself
                node.own = [key for key, _ in node.value if key.tag != MERGE]
            super().flatten_mapping(node)

    Plain.yaml_implicit_resolvers = {
        first: [(tag, form) for tag, form in known if tag != "tag:yaml.org,2002:timestamp"]
        for first, known in Plain.yaml_implicit_resolvers.items()
    }
    return Plain


def _refuse_repeated(keys: list[tuple[Any, int]]) -> None:
    """ValueError if two names of a mapping, given with their lines, are the same; ``1``, ``1.0`` and ``true`` are."""
    known: dict[Any, tuple[str, int]] = {}
    for key, line in keys:
        name = _name(key)
        first = known.get(key) or known.get(name)
        if first:
            other = f"{short(first[0])} (line {first[1]})"
            raise ValueError(f"names {other} and {short(name)} (line {line}) in one mapping")
        known[key] = known[name] = name, line


def _name(key: Any) -> str:
    """The text that a name of a mapping is in JSON; ValueError if it is none."""
    if isinstance(key, bool):
        return "true" if key else "false"
    if not isinstance(key, str | int | float):
        raise ValueError(f"{short(key)} as a name in a mapping, where a text or a number may stand")
    return str(key)
