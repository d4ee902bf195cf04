"""Expressions that select devices: values, faults, and what is not supported."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from fastsim.kubernetes.devices.device_expressions import (
    Domains,
    EvaluationFault,
    UnsupportedExpression,
    expression_of,
    version_of,
)  # fmt: skip

OWN = "device.attributes['gpu.nvidia.com']"
MEMORY = "device.capacity['gpu.nvidia.com'].memory"
DEVICE: dict[str, Any] = {
    "driver": "gpu.nvidia.com",
    "attributes": Domains({
        "gpu.nvidia.com": {"type": "gpu", "productName": "NVIDIA A100", "index": 3, "mig": False,
                           "driverVersion": version_of("580.12.0"), "tags": ["a", "b"]},
        "resource.kubernetes.io": {"pcieRoot": "pci0000:03"},
    }),
    "capacity": Domains({"gpu.nvidia.com": {"memory": Fraction(40 << 30)}}),
    "allowMultipleAllocations": False,
}  # fmt: skip


@pytest.mark.parametrize("text", [
    "device.driver == 'gpu.nvidia.com'",
    f'{OWN}.type == "gpu" && {OWN}["productName"] != "NVIDIA H100"',
    f"{MEMORY}.compareTo(quantity('40Gi')) == 0",
    f"{MEMORY}.compareTo(quantity('80Gi')) < 0 && {MEMORY} == quantity('40960Mi')",
    f"{MEMORY}.isGreaterThan(quantity('39Gi')) && !{MEMORY}.isLessThan(quantity('40Gi'))",
    f"{OWN}.productName.startsWith('NVIDIA') && {OWN}.productName.endsWith('100') && {OWN}.productName.contains(' A')",
    f"{OWN}.productName.matches('^NVIDIA (A|H)100$') && {OWN}.productName.lowerAscii() == 'nvidia a100'",
    f"{OWN}.index in [1, 3] && {OWN}.index >= 3 && {OWN}.index < 3.5 && -1 < {OWN}.index",
    f"!({OWN}.mig || false) && {OWN}.mig == false",
    f"{OWN}.driverVersion.isGreaterThan(semver('580.9.1')) && {OWN}.driverVersion.compareTo(semver('580.12.0')) == 0",
    f"'type' in {OWN} && !('nix' in {OWN}) && has({OWN}.type) && !has({OWN}.nix)",
    "device.attributes['resource.kubernetes.io'].pcieRoot.size() == 10",
    f"{OWN}.?nix.orValue('none') == 'none' && {OWN}.?type.hasValue() && device.attributes[?'nix'].?b.orValue(1) == 1",
    f"cel.bind(own, {OWN}, own.type == 'gpu' && own.index > 2)",
    f"{OWN}.type == 'gpu' ? {OWN}.index == 3 : false",
    f"{OWN}.tags.includes('b') && {OWN}.type.includes('gpu') && 'a' in {OWN}.tags && {OWN}.tags[0] == 'a'",
    r"r'a\d' == 'a\\d' && 'A' == '\x41' && size('') == 0",
    "!!true && ((true)) || false",
])  # fmt: skip
def test_what_holds(text: str) -> None:
    assert expression_of(text).holds(DEVICE)
    assert not expression_of(f"!({text})").holds(DEVICE)


@pytest.mark.parametrize("text", [
    f"{OWN}.nix == 'gpu'",  # a name that is not there is an error
    "device.attributes['other.example.com'].model == 'x'",  # the domain is an empty map, which has no model
    f"{OWN}.index == 'x' || {OWN}.index < 'x'",  # values of two types have no order
    f"{OWN}.type",  # the result is no truth
    f"{OWN}.type && true",
    f"{OWN}.productName.matches('(')",
    f"{OWN}.index.startsWith('3')",
    f"{MEMORY}.compareTo('40Gi') == 0",
    "quantity('many').compareTo(quantity('1')) > 0",
    "semver('1.2') == semver('1.2.0')",
    f"{OWN}.type.orValue('x') == 'x'",
    "device.memory == 1", "device.driver.size == 1", f"{OWN}.tags[7] == 'a'", "size(3) == 3",
])  # fmt: skip
def test_what_has_no_value_is_a_fault(text: str) -> None:
    with pytest.raises(EvaluationFault):
        expression_of(text).holds(DEVICE)


def test_a_fault_does_not_matter_where_the_other_side_decides() -> None:
    """CEL's && and || take the side that decides, whichever it is."""
    fault = f"{OWN}.nix == 1"
    assert expression_of(f"{fault} || true").holds(DEVICE) and expression_of(f"true || {fault}").holds(DEVICE)
    assert not expression_of(f"{fault} && false").holds(DEVICE)
    assert not expression_of(f"device.driver == 'other' && {fault}").holds(DEVICE)
    for text in (f"{fault} || false", f"{fault} && true", f"true && {fault}"):
        with pytest.raises(EvaluationFault):
            expression_of(text).holds(DEVICE)


def test_values_of_two_types_are_not_equal() -> None:
    assert expression_of(f"{OWN}.index != '3' && {OWN}.mig != 0 && 1 == 1.0 && !(true in [1])").holds(DEVICE)


@pytest.mark.parametrize(("text", "part"), [
    (f"{OWN}.index + 1 == 4", "+"), ("device.attributes.all(d, true)", "d"), (f"{OWN}.type.split('g')", "split()"),
    ("other.driver == 'x'", "other"), ("device.driver ==", "the end"), ("", "the end"), ("(true", "the end"),
    ("true)", ")"), ("device.driver == #", "#"), ("-device.driver", "-"), ("device.driver.matches()", "matches()"),
    ("has(device)", "has"), ("cel.other(a, 1, a)", "cel."), ("'a' 'b'", "b"), ("[1", "the end"), ("device.", "."),
    ("cel.bind(device, 1, true)", "cel.bind(device"), ("'open", "'open"), ("(" * 100 + "true" + ")" * 100, "levels"),
    ("true" + " && true" * 1000, "names and signs"),
])  # fmt: skip
def test_what_is_not_supported_is_named(text: str, part: str) -> None:
    with pytest.raises(UnsupportedExpression) as error:
        expression_of(text)
    assert part in str(error.value)


def test_versions_are_in_the_order_of_semver() -> None:
    texts = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0", "1.0.1+b"]
    assert sorted(texts, key=version_of, reverse=True) == texts[::-1]
    for text in ("1.0", "01.0.0", "1.0.0.0", "v1.0.0", "1.0.0-é"):
        with pytest.raises(ValueError, match="1"):
            version_of(text)
