"""A scenario: everything that decides a run, as one frozen value that can be written down.

Texts of clusters, workloads and policies are checked by :data:`CHECKS`, which packages that can open
them fill in when they are loaded.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from fastsim.errors import FastsimError, InputError, ScenarioError, kind_of, suggestion
from fastsim.foundation.limits.quantities import MOST_SECONDS_TEXT, WITH_UNITS, is_span, seconds_of
from fastsim.foundation.nested_text import json_value, toml_value
from fastsim.foundation.option_texts import quoted
from fastsim.scenario.outages import failures_text
from fastsim.scenario.parameters import PARAMETERS, documented
from fastsim.scenario.run_rules import quotas_from, quotas_text, weights_from, weights_text
from fastsim.scenario.user_code import refuse_user_code

RECORDS = ("none", "summary", "timeline", "placements", "all")

UNDECIDED = ("name", "out", "log")
"""Fields that no result depends on."""
PLAIN_PATH = re.compile(r"(?=.*[./\\])[^?:,*=]+")
"""Paths that mean the same as texts: of several parts or with an ending, without signs that mean something in texts."""
UNNAMED_FUNCTION = re.compile(r"<(lambda|locals)>")
"""Functions that no module has under a name."""
LEAST_CHECKPOINT_S = 1e-6
"""Shortest work between two checkpoints of a pod, s; 0 is none at all."""

CHECKS: dict[str, Callable[[Any], object]] = {}
"""For each field, a function that raises a :class:`FastsimError` for a value that is not valid."""
RELATIVE: dict[str, tuple[Callable[[Any], bool], str]] = {}
"""By field: whether one of its values depends on another field, and the name of that field, whose value is then the
second argument of the check."""


DURATIONS = ("sample_s", "until_s", "checkpoint_every_s", "restart_s", "round_s", "realloc_s", "begin_s")
"""Fields that are lengths of time; texts such as ``1h`` stand for seconds."""


@dataclass(frozen=True)
class Problem:
    """One mistake: where in the scenario it is, and what is wrong."""

    path: str
    text: str
    error: FastsimError | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.text if self.text.startswith(self.path) else f"{self.path}: {self.text}"


@dataclass(frozen=True)
class Scenario:
    """Cluster, workload, policy, options and seed of one run.

    Mappings and sequences become texts, so that equal scenarios are equal. ``name``, ``out`` and ``log`` change no
    result.
    """

    cluster: Any = "openb"
    workload: Any = ""
    policy: Any = "fgd"
    seed: int = 0
    typical: Any = None
    queue: str = "drop"
    gpu_pick: str | None = None
    sample_s: float | None = None
    until_s: float | None = None
    record: str = "all"
    deschedule: tuple[str, ...] = ()
    inflation: float | None = None
    retarget: Any = None
    preempt: str = "none"
    on_node_loss: str = "lost"
    checkpoint_every_s: float | None = None
    restart_s: float = 0.0
    quotas: Any = ""
    weights: Any = ""
    failures: str = ""
    maintenance: Any = None
    compat: str = ""
    round_s: float | None = None
    realloc_s: float | None = None
    begin_s: float | None = None
    window: str | None = None
    rates: Any = None
    prices: Any = None
    carbon: Any = None
    global_queue: bool = False
    profiling: float = 1.0
    references: int | None = None
    ideal: bool = False
    interference: float = 0.0
    telemetry: Any = None
    name: str = ""
    out: str | None = None
    log: str | None = None

    def __post_init__(self) -> None:
        """Names of queues may be spelled with a hyphen, files and folders may be paths, and texts stand for tables."""
        for name, text in (
            ("quotas", _quotas), ("weights", _weights), ("prices", _prices), ("failures", failures_text),
        ):  # fmt: skip
            if isinstance(getattr(self, name), Mapping):
                object.__setattr__(self, name, text(getattr(self, name)))
        if isinstance(self.window, Sequence) and not isinstance(self.window, str):
            object.__setattr__(self, "window", ":".join(map(str, self.window)))
        if isinstance(self.deschedule, str) or hasattr(self.deschedule, "policy"):  # one step
            object.__setattr__(self, "deschedule", (self.deschedule,))
        elif isinstance(self.deschedule, Iterable) and not isinstance(self.deschedule, Mapping):
            object.__setattr__(self, "deschedule", tuple(self.deschedule))
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, os.PathLike) and (
                item.name in ("out", "log") or PLAIN_PATH.fullmatch(os.fspath(value))
            ):
                object.__setattr__(self, item.name, os.fspath(value))
        for name in DURATIONS:
            text = getattr(self, name)
            if isinstance(text, str) and (seconds := seconds_of(text)) is not None:
                object.__setattr__(self, name, seconds)
        if isinstance(self.queue, str):
            hyphens = "-" if re.fullmatch(r"\w[\w-]*", self.queue) else "-skip$"  # others are signs of a key
            object.__setattr__(self, "queue", re.sub(hyphens, hyphens.replace("-", "_").rstrip("$"), self.queue))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "scenario") -> Scenario:
        """The scenario with these fields; unknown ones are an error that names them all."""
        known = [item.name for item in fields(cls)]
        unknown = [str(key) for key in values if key not in known]
        if unknown:
            found, expected = f"unknown field {', '.join(unknown)}", f"fields among {', '.join(known)}"
            raise ScenarioError(where, found, expected, suggestion(unknown[0], known))
        return cls(**values)

    @classmethod
    def from_toml(cls, path: str | Path, allow_code: bool = False) -> Scenario:
        """The scenario in a TOML file; ``allow_code`` if its policy may import a function of the user's."""
        text = _text(path)
        try:
            values = toml_value(text)
        except ValueError as error:
            raise ScenarioError(str(path), str(error), "a TOML file") from None
        _refuse_code(values, str(path), allow_code)
        return cls.from_dict(values, str(path))

    @classmethod
    def from_json(cls, text: str, where: str = "scenario", allow_code: bool = False) -> Scenario:
        """The scenario in a JSON text; ``allow_code`` if its policy may import a function of the user's."""
        try:
            values = json_value(text)
        except ValueError as error:
            raise ScenarioError(where, str(error), "a JSON object") from None
        if not isinstance(values, dict):
            raise ScenarioError(where, type(values).__name__, "a JSON object")
        _refuse_code(values, where, allow_code)
        return cls.from_dict(values, where)

    @classmethod
    def from_provenance(
        cls, provenance: Mapping[str, Any], where: str, allow_code: bool = False, **objects: Any
    ) -> Scenario:
        """The scenario of a saved run, to repeat it; ``objects`` are those of its inputs that were objects in memory.

        InputError for a fork, which no scenario alone leads to, and for an object that is not given.
        """
        values, needed = provenance.get("scenario"), provenance.get("objects", ())
        if not isinstance(values, Mapping):
            raise InputError(where, "a fork, or a run without a scenario", "a run that a scenario leads to")
        for name in needed:
            if name not in objects:
                found, expected = "an object in memory that the folder does not keep", "the object itself"
                raise InputError(f"{where}: {name}", found, expected, f"give it: {name}=...")
        for name in objects:
            if name not in needed:
                raise InputError(f"{where}: {name}", "a new value", "nothing: the run has it")
        _refuse_code(values, where, allow_code)
        return cls.from_dict({**values, **objects}, where)

    def to_dict(self) -> dict[str, Any]:
        """The fields that differ from their defaults, and cluster, workload and policy in any case."""
        return {name: _plain(name, value) for name, value in self._changed_fields()}

    def written(self) -> dict[str, Any]:
        """``fields`` that can be written down, and the names of the ``objects`` that cannot."""
        plain: dict[str, Any] = {}
        objects = []
        for name, value in self._changed_fields():
            if (isinstance(value, tuple) and not all(isinstance(item, str) for item in value)) or (
                name == "policy" and not _has_text(value)
            ):
                objects.append(name)
                continue
            try:
                plain[name] = _plain(name, value)
            except ScenarioError:
                objects.append(name)
        return {"fields": plain, "objects": objects}

    def to_json(self) -> str:
        """This scenario as a JSON text; :meth:`from_json` reads it."""
        return json.dumps(self.to_dict(), indent=2)

    def to_toml(self) -> str:
        """This scenario as a TOML text; :meth:`from_toml` reads it."""
        return "".join(f"{name} = {_toml(value)}\n" for name, value in self.to_dict().items())

    @property
    def id(self) -> str:
        """Sixteen hex digits that depend on what is run, not on ``UNDECIDED`` or on how the file was written."""
        values = {name: _identity(value) for name, value in self._changed_fields() if name not in UNDECIDED}
        canonical = json.dumps(values, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]

    def problems(
        self, known: dict[tuple[str, str], FastsimError | None] | None = None, made: dict[str, Any] | None = None
    ) -> list[Problem]:
        """Every mistake in this scenario, one in a file of several fields once; an empty list if it can be run.

        ``known`` caches the results of checks by field and value; pass the same one for many scenarios. ``made`` takes
        what checks have made of fields, such as the policy of a text, by field.
        """
        problems = list(self._malformed())
        wrong, mistakes = {problem.path for problem in problems}, set[str]()
        for name in CHECKS:
            error = None if name in wrong else self._mistake(name, {} if known is None else known, made)
            if error is not None and not (isinstance(error, InputError) and str(error) in mistakes):
                problems.append(Problem(name, str(error), error))
                mistakes.add(str(error))
        return problems

    def _mistake(
        self, name: str, known: dict[tuple[str, str], FastsimError | None], made: dict[str, Any] | None
    ) -> FastsimError | None:
        """The error in the value of a field; None if it is valid."""
        values = [getattr(self, name)]
        relative, beside = RELATIVE.get(name, (None, ""))
        if relative is not None and relative(values[0]):
            values.append(getattr(self, beside))
        plain = all(value is None or isinstance(value, str | int | float | tuple) for value in values)
        key = (name, ", ".join(map(repr, values))) if plain else None
        if key is None or key not in known:
            error: FastsimError | None = None
            try:
                found = CHECKS[name](*values)
                if made is not None:
                    made[name] = found
            except FastsimError as raised:
                error = raised
            if key is None:
                return error
            known[key] = error
        return known[key]

    def check(self) -> dict[str, Any]:
        """Objects that checks have made of fields, such as the policy of a text, by field.

        Raises the one mistake itself, or one :class:`ScenarioError` that lists all of them.
        """
        made: dict[str, Any] = {}
        problems = self.problems(made=made)
        if len(problems) == 1 and problems[0].error is not None:
            raise problems[0].error
        if problems:
            raise ScenarioError(
                "scenario", _counted(len(problems)), "values that a run takes", "; ".join(map(str, problems))
            )
        return made

    def with_(self, **changes: Any) -> Scenario:
        """A copy with some fields changed."""
        return replace(self, **changes)

    def _changed_fields(self) -> Iterator[tuple[str, Any]]:
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name in ("cluster", "workload", "policy") or not _same(value, item.default):
                yield item.name, value

    def _malformed(self) -> Iterator[Problem]:
        if isinstance(self.workload, str) and not self.workload:
            yield _problem("workload", "nothing", "a file, or for example 'synth:openb?pods=1000'")
        if not _is_number(self.seed, int) or not 0 <= self.seed < 2**64:
            yield _problem("seed", repr(self.seed), "a whole number from 0 to 2**64 - 1")
        if not (isinstance(self.record, str) and self.record in RECORDS):
            yield _problem("record", repr(self.record), f"one of {', '.join(RECORDS)}")
        if self.sample_s is not None and not is_span(self.sample_s, math.ulp(0)):
            yield _problem("sample_s", repr(self.sample_s), _seconds("above 0", self.sample_s))
        if self.until_s is not None and not is_span(self.until_s):
            yield _problem("until_s", repr(self.until_s), _seconds("of 0 or more", self.until_s))
        for name, least in (("round_s", math.ulp(0)), ("realloc_s", 0), ("begin_s", 0)):
            value = getattr(self, name)
            if value is not None and not is_span(value, least):
                yield _problem(name, repr(value), _seconds("above 0" if least else "of 0 or more", value))
        if not (_is_number(self.profiling) and 0 <= self.profiling <= 1):
            yield _problem("profiling", repr(self.profiling), "a part from 0 to 1")
        if not (_is_number(self.interference) and 0 <= self.interference < 1):
            yield _problem("interference", repr(self.interference), "a part from 0 to below 1")
        if self.references is not None and not (_is_number(self.references, int) and self.references >= 1):
            yield _problem("references", repr(self.references), "a whole number of 1 or more")
        for name in ("global_queue", "ideal"):
            if not isinstance(getattr(self, name), bool):
                yield _problem(name, repr(getattr(self, name)), "true or false")
        if self.inflation is not None and not (_is_number(self.inflation) and 1 <= self.inflation < math.inf):
            yield _problem("inflation", repr(self.inflation), "a ratio of 1 or more")
        every_s = self.checkpoint_every_s
        if not (every_s is None or every_s == 0 or is_span(every_s, LEAST_CHECKPOINT_S)):
            expected = f"0, or {_seconds(f'from {LEAST_CHECKPOINT_S:g}', every_s, ' to')}"
            yield _problem("checkpoint_every_s", repr(every_s), expected)
        if not is_span(self.restart_s):
            yield _problem("restart_s", repr(self.restart_s), _seconds("of 0 or more", self.restart_s))
        if not isinstance(self.deschedule, tuple):
            yield _problem("deschedule", repr(self.deschedule), "a list such as ['frag_one_pod:0.05']")
        for name, what in (("out", "a folder"), ("log", "a file")):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and value):
                yield _problem(name, repr(value), what)
        for name in ("name", "compat", "queue", "quotas", "weights", "failures"):
            if not isinstance(getattr(self, name), str):
                expected = "a text or a dict" if name in ("quotas", "weights", "failures") else "a text"
                yield _problem(name, kind_of(getattr(self, name)), expected)


Scenario.__doc__ = documented(Scenario.__doc__, PARAMETERS, {})


def _problem(path: str, found: str, expected: str) -> Problem:
    error = ScenarioError(path, found, expected)
    return Problem(path, str(error), error)


def _seconds(bounds: str, value: object, until: str = ", at most") -> str:
    """What a length of time may be; units are news to those who wrote a text alone."""
    either = f", or {WITH_UNITS}" if isinstance(value, str) else ""
    return f"seconds {bounds}{until} {MOST_SECONDS_TEXT}{either}"


def _refuse_code(values: Mapping[str, Any], where: str, allowed: bool) -> None:
    if "policy" in values:
        refuse_user_code(values["policy"], where, allowed)


def _quotas(table: Any) -> str:
    return quotas_text(quotas_from(table))


def _weights(table: Any) -> str:
    return weights_text(weights_from(table))


def _prices(table: Any) -> str:
    for model, price in table.items():
        if not _is_number(price):
            raise ScenarioError(f"prices: {model}", repr(price), "$ for an hour of one GPU")
    return f"fixed?{'&'.join(f'{quoted(str(model))}={price:.17g}' for model, price in table.items())}"


def _counted(mistakes: int) -> str:
    return "1 mistake" if mistakes == 1 else f"{mistakes} mistakes"


def _is_number(value: object, kind: type | tuple[type, ...] = (int, float)) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _same(value: object, default: object) -> bool:
    # Tables compare element by element, so only plain values are compared at all.
    return value is default or (
        type(value) is type(default) and isinstance(value, str | int | float | tuple | bool) and value == default
    )


def _plain(name: str, value: Any) -> Any:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, tuple):
        return [str(item) for item in value]
    if name == "policy":
        return str(value)
    found = f"an object in memory ({type(value).__name__})"
    raise ScenarioError(name, found, "a text that can be written down", "save it to a file and give its path")


def _has_text(policy: Any) -> bool:
    """Whether the text of a policy brings it back: not of the user's own classes, nor of functions without a name."""
    if isinstance(policy, str):
        return True
    text = str(policy)
    try:
        CHECKS["policy"](text)
    except FastsimError:
        return False
    return not UNNAMED_FUNCTION.search(text)


def _toml(value: Any) -> str:
    # JSON and TOML spell values alike, but for two kinds of characters: TOML has no surrogate pairs, and DEL
    # must be escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _identity(value: Any) -> Any:
    checksum = getattr(value, "checksum", None)
    if callable(checksum):
        return f"sha256:{checksum()}"
    if value is None or isinstance(value, str | int | float | bool):
        return value.strip() if isinstance(value, str) else value
    return [_identity(item) for item in value] if isinstance(value, tuple) else str(value)


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "bytes that are not UTF-8"
        raise ScenarioError(str(path), reason or str(error), "a readable file") from None
