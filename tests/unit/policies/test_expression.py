"""The text form of policies, with made-up policies: what is read, what is exact, and what is refused where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

from fastsim.errors import PolicyError
from fastsim.policies.expression import policy_from_text


@dataclass
class Named:
    """A policy that only remembers how it was written."""

    terms: dict[str, Fraction]
    checks: list[str] = field(default_factory=list)

    def __add__(self, other: Named) -> Named:
        return Named({**self.terms, **other.terms})

    def __rmul__(self, weight: Fraction) -> Named:
        return Named({name: weight * own for name, own in self.terms.items()})

    def check(self) -> None:
        """Remember having been asked."""
        self.checks.append("checked")


class Alone:
    """A policy that cannot be part of a sum."""


def read(text: str) -> Any:
    def create(name: str, parameters: Mapping[str, object]) -> Any:
        if name == "alone":
            return Alone()
        words = ",".join(f"{key}={value!r}" for key, value in parameters.items())
        return Named({f"{name}({words})" if words else name: Fraction(1)})

    return policy_from_text(text, create)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("a", {"a": 1}),
        ("  lab.deep.a ", {"lab.deep.a": 1}),
        ("0.1*a + b", {"a": Fraction(1, 10), "b": 1}),  # the decimal, not its nearest double
        ("2*3*a/4", {"a": Fraction(3, 2)}),
        ("a*(1/3)", {"a": Fraction(1, 3)}),
        ("2*(a + 0.5*b)", {"a": 2, "b": 1}),
        ("1e-3*a", {"a": Fraction(1, 1000)}),
        ("0*a", {"a": 0}),
    ],
)
def test_weights_are_exact_arithmetic(text: str, terms: dict[str, Fraction]) -> None:
    assert read(text).terms == terms


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a(x=1, y=2.5)", "a(x=1,y=2.5)"),
        ("a(x=word, y='two words')", "a(x='word',y='two words')"),
        ("a(x=-3, y=mod.name)", "a(x=-3,y='mod.name')"),
        ("a(x=None, y=True)", "a(x=None,y=True)"),
        ("lab.a()", "lab.a"),
    ],
)
def test_parameters_are_words_numbers_and_texts(text: str, name: str) -> None:
    assert list(read(text).terms) == [name]


def test_the_policy_is_checked_once_it_is_whole() -> None:
    assert read("a + 2*b").checks == ["checked"]
    assert isinstance(read("alone"), Alone)


@pytest.mark.parametrize(
    ("text", "found", "expected"),
    [
        ("alone + a", "Alone in a sum", "policies that score nodes"),
        ("2*alone", "Alone in a sum", "policies that score nodes"),
        ("a*-1", "a minus sign", "weights of 0 or more"),
        ("a(**b)", "'a(**b)'", "named parameters such as a(name=value)"),
        ("a(x=b(1))", "'b(1)'", "a word, a number or a quoted text as parameter"),
        ("a(x=-'y')", "\"-'y'\"", "a word, a number or a quoted text as parameter"),
        ("a[0](x=1)", "'a[0]'", "a policy name"),
        ("1e999*a", "a weight that is not finite", "a finite weight"),
        ("6/3", "a number alone", "a sum such as 0.9*fgd + 0.1*pwr"),
        ("a//2", "'a // 2'", "a sum such as 0.9*fgd + 0.1*pwr"),
        ("a if b else c", "'a if b else c'", "a sum such as 0.9*fgd + 0.1*pwr"),
        ("a; b", "text that cannot be read", "a sum such as 0.9*fgd + 0.1*pwr"),
        ("a\x00b", "text that cannot be read", "a sum such as 0.9*fgd + 0.1*pwr"),
        ("0x" + "f" * 5000 + "*a", "text that cannot be read", "a sum such as 0.9*fgd + 0.1*pwr"),
    ],
)
def test_what_is_no_policy_is_told_with_its_place(text: str, found: str, expected: str) -> None:
    with pytest.raises(PolicyError) as error:
        read(text)
    assert (error.value.found, error.value.expected) == (found, expected)


def test_a_long_text_is_cut_in_the_message() -> None:
    with pytest.raises(PolicyError) as error:
        read("a + " * 40 + "1")
    assert error.value.where == f"policy {('a + ' * 40)[:77] + '...'!r}"
    with pytest.raises(PolicyError) as error:
        read("a" * 78 + "+1")
    assert "..." not in error.value.where
