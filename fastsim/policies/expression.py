"""The text form of a policy: a weighted sum of named policies with parameters.

The grammar is the arithmetic part of Python's own: names (``fgd``, ``lab.mine``), calls with keyword
parameters (``dot_product(dim=share)``), ``+`` between policies, ``*`` and ``/`` with numbers, and
brackets. Python's parser reads the text; nothing is evaluated. A mechanism may be added to an order of jobs:
``las + tune``, ``srtf + greedy + place``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from fastsim.errors import PolicyError

if TYPE_CHECKING:
    from fastsim.engine.online.plan import OnlinePolicy
    from fastsim.engine.shares.plan import RoundPolicy

Create = Callable[[str, Mapping[str, object]], "OnlinePolicy | RoundPolicy"]

UNREADABLE = "text that cannot be read"
EXPECTED = "a sum such as 0.9*fgd + 0.1*pwr"
FILLED = ("fair", "greedy", "tune", "opt", "place")
"""Words that may be added to an order of jobs: mechanisms and ``place``."""


@runtime_checkable
class Checked(Protocol):
    """A policy that can check its parameters without a cluster."""

    def check(self) -> None:
        """Raise :class:`PolicyError` if the policy contradicts itself."""


class NestedTooDeep(PolicyError):
    """A text has more brackets than can be read here; where fewer calls are running, the same text may be read."""


def policy_from_text(text: str, create: Create) -> OnlinePolicy | RoundPolicy:
    """The policy ``text`` describes; ``create`` makes the policy of one name."""
    where = f"policy {_short(text)!r}"
    try:
        tree = ast.parse(text.strip(), mode="eval")
        value = _Reader(where, create).read(tree.body)
    except (SyntaxError, ValueError):
        raise PolicyError(where, UNREADABLE, EXPECTED) from None
    except (RecursionError, MemoryError):
        raise NestedTooDeep(where, UNREADABLE, EXPECTED) from None
    if isinstance(value, Fraction):
        raise PolicyError(where, "a number alone", EXPECTED)
    if isinstance(value, Checked):
        value.check()
    return cast("OnlinePolicy | RoundPolicy", value)


class _Reader:
    """Turns a syntax tree into a policy or, inside a product, into an exact number."""

    def __init__(self, where: str, create: Create) -> None:
        self.where, self.create = where, create

    def read(self, node: ast.expr) -> Any:
        """The policy or number a node stands for."""
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return self._number(node.value)
        if isinstance(node, ast.Name | ast.Attribute):
            return self.create(self._name(node), {})
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.BinOp):
            return self._arithmetic(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            raise self._error("a minus sign", "weights of 0 or more")
        raise self._error(f"{ast.unparse(node)!r}")

    def _arithmetic(self, node: ast.BinOp) -> Any:
        if isinstance(node.op, ast.Add) and isinstance(node.right, ast.Name) and node.right.id in FILLED:
            return self._filled(self.read(node.left), node.right.id)
        left, right = self.read(node.left), self.read(node.right)
        numbers = isinstance(left, Fraction) + isinstance(right, Fraction)
        if isinstance(node.op, ast.Add) and numbers == 0:
            return self._summand(left) + self._summand(right)
        if isinstance(node.op, ast.Mult) and numbers == 2:
            return left * right
        if isinstance(node.op, ast.Mult) and numbers == 1:
            weight, policy = (left, right) if isinstance(left, Fraction) else (right, left)
            return weight * self._summand(policy)
        if isinstance(node.op, ast.Div) and isinstance(right, Fraction) and right != 0:
            return left / right if isinstance(left, Fraction) else (1 / right) * self._summand(left)
        raise self._error(f"{ast.unparse(node)!r}")

    def _filled(self, policy: Any, word: str) -> Any:
        if not hasattr(policy, "filled"):
            raise self._error(f"{word!r} added to {policy}", "an order of jobs before it, such as las + tune")
        return policy.filled(word)

    def _call(self, node: ast.Call) -> Any:
        name = self._name(node.func)
        if node.args or any(word.arg is None for word in node.keywords):
            raise self._error(f"{ast.unparse(node)!r}", f"named parameters such as {name}(name=value)")
        return self.create(name, {str(word.arg): self._value(word.value) for word in node.keywords})

    def _value(self, node: ast.expr) -> object:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self._value(node.operand)
            if isinstance(inner, int | float):
                return -inner
        if isinstance(node, ast.Name | ast.Attribute):
            return self._name(node)
        raise self._error(f"{ast.unparse(node)!r}", "a word, a number or a quoted text as parameter")

    def _name(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute):
            return f"{self._name(node.value)}.{node.attr}"
        if isinstance(node, ast.Name):
            return node.id
        raise self._error(f"{ast.unparse(node)!r}", "a policy name")

    def _number(self, value: object) -> Fraction:
        if value == float("inf"):
            raise self._error("a weight that is not finite", "a finite weight")
        return Fraction(repr(value))

    def _summand(self, policy: Any) -> Any:
        if not hasattr(policy, "__add__"):
            raise self._error(f"{type(policy).__name__} in a sum", "policies that score nodes")
        return policy

    def _error(self, found: str, expected: str = EXPECTED) -> PolicyError:
        return PolicyError(self.where, found, expected)


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."
