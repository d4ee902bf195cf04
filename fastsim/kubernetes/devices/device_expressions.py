"""Expressions that select devices of Dynamic Resource Allocation: the part of CEL that drivers and claims use.

An expression looks at one ``device``: its ``driver``, its ``attributes`` and its ``capacity``, both by domain and name.
Known are texts, numbers, ``true``, ``false``, lists, ``quantity("40Gi")``, ``semver("12.4.0")``; comparisons, ``in``,
``&&``, ``||``, ``!``, ``? :``, parentheses; ``has``, ``cel.bind``, ``.?name``, ``orValue``; and the methods of
``METHODS``. A fault on one side of ``&&`` or ``||`` does not matter where the other side decides. Anything else is
unsupported, and a name that a device lacks is a fault: so is a comparison of values of different types by size.

>>> from fastsim.kubernetes.devices.device_expressions import expression_of
>>> device = {"driver": "gpu.example.com", "attributes": {"gpu.example.com": {"model": "T4"}}, "capacity": {}}
>>> expression_of('device.attributes["gpu.example.com"].model.startsWith("T")').holds(device)
True
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from fastsim.errors import InputError
from fastsim.kubernetes.quantity import quantity

MOST_TOKENS, DEEPEST = 800, 60
"""Most names, constants and signs of an expression, and most levels of parentheses in it."""
DISTINCT = 1 << 12
"""Expressions that are kept: those of a cluster repeat few of them."""
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>[rR]?(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))|(?P<number>\d+(?:\.\d+)?)|"""
    r"""(?P<name>[A-Za-z_]\w*)|(?P<sign>&&|\|\||[=!<>]=|\.\?|\[\?|[-+*/%!<>?:.,()\[\]]))""",
    re.ASCII,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII)

Scope = Mapping[str, Any]
Value = Callable[[Scope], Any]


class UnsupportedExpression(Exception):
    """An expression has a part that is not known, which is the text of the exception."""


class EvaluationFault(Exception):
    """An expression has no value for a device."""


class Version(NamedTuple):
    """A semantic version as a key of its order: a version without a pre-release comes behind those with one."""

    numbers: tuple[int, int, int]
    released: bool = True
    parts: tuple[tuple[bool, int, str], ...] = ()


class Maybe(NamedTuple):
    """The value of a part that may be absent, such as ``device.attributes["a"].?b``; empty without one."""

    values: tuple[Any, ...] = ()


class Expression(NamedTuple):
    """An expression and its value as a function of the names in it."""

    text: str
    value: Value

    def holds(self, device: Mapping[str, Any]) -> bool:
        """Whether a device is selected; EvaluationFault if the expression is neither true nor false for it."""
        return _truth(self.value({"device": device}))


@lru_cache(DISTINCT)
def expression_of(text: str) -> Expression:
    """The expression of a text; UnsupportedExpression names the part of it that is not known."""
    parser = _Parser(text)
    found = parser.choice()
    if parser.sign():
        raise UnsupportedExpression(parser.sign())
    return Expression(text, found.value)


def version_of(text: str) -> Version:
    """The semantic version in a text; ValueError without one."""
    form = _VERSION.fullmatch(text)
    if form is None or len(text) > 256:
        raise ValueError(text)
    parts = [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in (form[4] or "").split(".")]
    return Version((int(form[1]), int(form[2]), int(form[3])), not form[4], tuple(parts) if form[4] else ())


class _Node(NamedTuple):
    """A part of an expression; of ``parent.field`` both are known, for ``has``."""

    value: Value
    parent: Value | None = None
    field: str = ""


class _Parser:
    """The tokens of an expression, read from left to right."""

    def __init__(self, text: str) -> None:
        self.tokens, self.place, self.depth = _tokens(text), 0, 0
        self.names = {"device"}

    def sign(self) -> str:
        """The next token; "" at the end."""
        return self.tokens[self.place][1] if self.place < len(self.tokens) else ""

    def took(self, *signs: str) -> str:
        """The next token if it is one of these signs, which is then read; else ""."""
        if self.place < len(self.tokens) and self.tokens[self.place] in [("sign", sign) for sign in signs]:
            self.place += 1
            return self.tokens[self.place - 1][1]
        return ""

    def needed(self, sign: str) -> None:
        if not self.took(sign):
            raise UnsupportedExpression(self.sign() or f"the end, where {sign} is missing")

    def choice(self) -> _Node:
        """``condition ? then : otherwise``, or a part without a choice."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise UnsupportedExpression(f"more than {DEEPEST} levels")
        condition = self.joined(0)
        if self.took("?"):
            then = self.choice().value
            self.needed(":")
            otherwise, test = self.choice().value, condition.value
            condition = _Node(lambda scope: then(scope) if _truth(test(scope)) else otherwise(scope))
        self.depth -= 1
        return condition

    def joined(self, level: int) -> _Node:
        """Parts with ``||`` (level 0) or ``&&`` (level 1) between them."""
        if level == 2:
            return self.compared()
        left = self.joined(level + 1)
        while self.took(("||", "&&")[level]):
            left = _Node(_either(left.value, self.joined(level + 1).value, decides=level == 0))
        return left

    def compared(self) -> _Node:
        left = self.single()
        while operator := self.took("==", "!=", "<", "<=", ">", ">=") or self.took_in():
            left = _Node(_comparison(operator, left.value, self.single().value))
        if self.sign() in ("+", "-", "*", "/", "%") and self.tokens[self.place][0] == "sign":
            raise UnsupportedExpression(self.sign())
        return left

    def took_in(self) -> str:
        """``in`` if it comes next, which is then read; else ""."""
        if self.place < len(self.tokens) and self.tokens[self.place] == ("name", "in"):
            self.place += 1
            return "in"
        return ""

    def single(self) -> _Node:
        """A part with ``!`` or a minus in front of it, or with fields, indices and methods behind it."""
        if self.took("!"):
            even = False
            while self.took("!"):
                even = not even
            value = self.single().value
            return _Node(lambda scope: _truth(value(scope)) is even)
        if self.took("-"):
            kind, number = self.tokens[self.place] if self.place < len(self.tokens) else ("", "")
            if kind != "number":
                raise UnsupportedExpression("-")
            self.place += 1
            return _Node(_constant(-_number(number)))
        node = self.start()
        while sign := self.took(".", ".?", "[", "[?"):
            node = self.inside(node, sign)
        return node

    def inside(self, node: _Node, sign: str) -> _Node:
        """A field, an index or a method of a part."""
        target = node.value
        if sign in ("[", "[?"):
            key = self.choice().value
            self.needed("]")
            return _Node(_indexed(target, key, sign == "[?"))
        kind, name = self.tokens[self.place] if self.place < len(self.tokens) else ("", "")
        if kind != "name":
            raise UnsupportedExpression(f"{sign}{name}")
        self.place += 1
        if sign == "." and self.took("("):
            return _Node(_called(name, target, self.arguments()))
        return _Node(_indexed(target, _constant(name), sign == ".?"), target, name)

    def arguments(self, end: str = ")") -> list[Value]:
        values: list[Value] = []
        while not self.took(end):
            if values:
                self.needed(",")
            values.append(self.choice().value)
        return values

    def start(self) -> _Node:
        """A constant, a name, a list, a function, or a part in parentheses."""
        if self.took("("):
            node = self.choice()
            self.needed(")")
            return _Node(node.value)
        if self.took("["):
            items = self.arguments("]")
            return _Node(lambda scope: [item(scope) for item in items])
        if self.place >= len(self.tokens) or self.tokens[self.place][0] == "sign":
            raise UnsupportedExpression(self.sign() or "the end")
        kind, text = self.tokens[self.place]
        self.place += 1
        if kind != "name":
            return _Node(_constant(_number(text) if kind == "number" else _unescaped(text)))
        return self.named(text)

    def named(self, name: str) -> _Node:
        if name in ("true", "false"):
            return _Node(_constant(name == "true"))
        if name == "has" and self.took("("):
            asked = self.choice()
            self.needed(")")
            if asked.parent is None:
                raise UnsupportedExpression("has without a field")
            parent, field = asked.parent, asked.field
            return _Node(lambda scope: field in _map(parent(scope)))
        if name == "cel" and self.took("."):
            return self.bound()
        if name in FUNCTIONS and self.took("("):
            return _Node(_applied(FUNCTIONS[name], name, self.arguments()))
        if name in self.names:
            return _Node(lambda scope: scope[name])
        raise UnsupportedExpression(name)

    def bound(self) -> _Node:
        """``cel.bind(name, value, part)``, in which the name stands for the value."""
        if self.tokens[self.place : self.place + 2] != [("name", "bind"), ("sign", "(")]:
            raise UnsupportedExpression("cel." + self.sign())
        self.place += 2
        kind, name = self.tokens[self.place] if self.place < len(self.tokens) else ("", "")
        self.place += 1
        self.needed(",")
        if kind != "name" or name in self.names:
            raise UnsupportedExpression(f"cel.bind({name}")
        value = self.choice().value
        self.needed(",")
        self.names.add(name)
        part = self.choice().value
        self.names.remove(name)
        self.needed(")")
        return _Node(lambda scope: part({**scope, name: value(scope)}))


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens, place = [], 0
    text = text.strip()
    while place < len(text):
        form = _TOKEN.match(text, place)
        if form is None or form.lastgroup is None:
            raise UnsupportedExpression(text[place:].split()[0][:20])
        tokens.append((form.lastgroup, form[form.lastgroup]))
        place = form.end()
        if len(tokens) > MOST_TOKENS:
            raise UnsupportedExpression(f"more than {MOST_TOKENS} names and signs")
    return tokens


def _unescaped(text: str) -> str:
    if text[0] in "rR":
        return text[2:-1]
    return _ESCAPE.sub(lambda form: chr(int(form[1] or form[2], 16)) if form[1] or form[2] else
                       _ESCAPED.get(form[3], form[3]), text[1:-1])  # fmt: skip


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text[:40])


def _constant(value: Any) -> Value:
    return lambda scope: value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise EvaluationFault("neither true nor false")
    return value


def _map(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise EvaluationFault("no fields")
    return value


def _either(left: Value, right: Value, decides: bool) -> Value:
    """``||`` if true decides, ``&&`` if false does; a fault on one side counts only if the other does not decide."""

    def value(scope: Scope) -> bool:
        try:
            if _truth(left(scope)) is decides:
                return decides
        except EvaluationFault:
            if _truth(right(scope)) is decides:
                return decides
            raise
        return _truth(right(scope))

    return value


def _indexed(target: Value, key: Value, optional: bool) -> Value:
    """A field of a map or an item of a list; a domain that a device lacks is an empty map."""

    def value(scope: Scope) -> Any:
        whole, name = target(scope), key(scope)
        inner = isinstance(whole, Maybe)
        if inner and not whole.values:
            return whole
        whole = whole.values[0] if inner else whole
        if isinstance(whole, list) and type(name) is int and 0 <= name < len(whole):
            found: tuple[Any, ...] = (whole[name],)
        elif isinstance(whole, Domains) and isinstance(name, str):
            found = (whole.get(name, {}),)
        else:
            found = (whole[name],) if isinstance(whole, Mapping) and isinstance(name, str) and name in whole else ()
        if optional or inner:
            return Maybe(found)
        if not found:
            raise EvaluationFault(f"no such key: {name}")
        return found[0]

    return value


class Domains(dict[str, Mapping[str, Any]]):
    """Attributes or capacities of a device by domain; a domain that is not there is empty."""


def _same(first: Any, second: Any) -> bool:
    """Equality; values of different types differ, but for numbers."""
    numbers = (int, float)
    alike = type(first) is type(second) or (type(first) in numbers and type(second) in numbers)
    return bool(alike and first == second)


def _comparison(operator: str, left: Value, right: Value) -> Value:
    def value(scope: Scope) -> bool:
        first, second = left(scope), right(scope)
        if operator in ("==", "!="):
            return _same(first, second) is (operator == "==")
        if operator == "in":
            if isinstance(second, list):
                return any(_same(first, item) for item in second)
            return isinstance(first, str) and first in _map(second)
        alike = type(first) is type(second) or {type(first), type(second)} == {int, float}
        if not alike or not isinstance(first, int | float | str):
            raise EvaluationFault(f"no such overload: {operator}")
        order = int(first > second) - int(first < second)
        return {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[operator]

    return value


def _order(first: Any, second: Any) -> int:
    if type(first) is not type(second) or not isinstance(first, Fraction | Version):
        raise EvaluationFault("no such overload: compareTo")
    return int(first > second) - int(first < second)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise EvaluationFault("no text")
    return value


def _matches(value: Any, pattern: Any) -> bool:
    """Whether a pattern of RE2 is somewhere in a text; that engine's time does not grow out of bounds."""
    try:
        return bool(pc.match_substring_regex(pa.array([_text(value)], pa.string()), _text(pattern))[0].as_py())
    except (pa.ArrowInvalid, UnicodeEncodeError):
        raise EvaluationFault("no pattern of RE2") from None


def _size(value: Any) -> int:
    if not isinstance(value, str | list | Mapping):
        raise EvaluationFault("no size")
    return len(value)


def _quantity(text: Any) -> Fraction:
    try:
        return quantity(_text(text))
    except InputError:
        raise EvaluationFault("no quantity") from None


def _version(text: Any) -> Version:
    try:
        return version_of(_text(text))
    except ValueError:
        raise EvaluationFault("no semantic version") from None


def _or_value(maybe: Any, other: Any) -> Any:
    if not isinstance(maybe, Maybe):
        raise EvaluationFault("orValue of a value that is there")
    return maybe.values[0] if maybe.values else other


def _includes(value: Any, item: Any) -> bool:
    return any(_same(one, item) for one in (value if isinstance(value, list) else [value]))


FUNCTIONS: Mapping[str, tuple[int, Callable[..., Any]]] = {
    "quantity": (1, _quantity), "semver": (1, _version), "size": (1, _size),
}  # fmt: skip
"""Functions: number of their arguments, and what they are."""
METHODS: Mapping[str, tuple[int, Callable[..., Any]]] = {
    "compareTo": (2, _order),
    "isGreaterThan": (2, lambda first, second: _order(first, second) > 0),
    "isLessThan": (2, lambda first, second: _order(first, second) < 0),
    "matches": (2, _matches),
    "startsWith": (2, lambda text, part: _text(text).startswith(_text(part))),
    "endsWith": (2, lambda text, part: _text(text).endswith(_text(part))),
    "contains": (2, lambda text, part: _text(part) in _text(text)),
    "lowerAscii": (1, lambda text: _text(text).lower()),
    "upperAscii": (1, lambda text: _text(text).upper()),
    "size": (1, _size),
    "includes": (2, _includes),
    "orValue": (2, _or_value),
    "hasValue": (1, lambda maybe: isinstance(maybe, Maybe) and bool(maybe.values)),
}
"""Methods: number of their arguments with the value that they belong to, and what they are."""


def _called(name: str, target: Value, arguments: list[Value]) -> Value:
    if name not in METHODS:
        raise UnsupportedExpression(f"{name}()")
    return _applied(METHODS[name], name, [target, *arguments])


def _applied(function: tuple[int, Callable[..., Any]], name: str, arguments: list[Value]) -> Value:
    count, applied = function
    if len(arguments) != count:
        raise UnsupportedExpression(f"{name}() with {len(arguments)} values")
    return lambda scope: applied(*[argument(scope) for argument in arguments])
