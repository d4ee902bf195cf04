"""Policies by name, their descriptions and their text form."""

from __future__ import annotations

import ast
import copy
import dataclasses
import importlib
import math
import pkgutil
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import fastsim as fs
import fastsim.policies
from fastsim.errors import PolicyError
from fastsim.policies import registry
from fastsim.policies.registry import ORIGINAL_NAMES

BUILT_IN = ["best_fit", "dot_product", "fgd", "gpu_clustering", "gpu_packing", "pwr", "python", "random", "simon"]
ROUNDS = [
    "finish_time_fairness", "max_min_fairness", "max_min_fairness_water_filling", "max_sum_throughput",
    "min_total_duration", "strategy_proof",
]  # fmt: skip


def test_every_family_is_registered() -> None:
    assert {*BUILT_IN, *ROUNDS} <= set(registry.names())


@pytest.mark.parametrize("name", ROUNDS)
def test_policies_of_the_rounds_engine_are_told_apart(name: str) -> None:
    described = registry.describe(name)
    assert described.engine == "shares"
    assert described.title.endswith(".") and all(parameter.text for parameter in described.parameters)
    assert described.citation.startswith("@")
    assert registry.describe("fgd").engine == "pods"


def test_parameters_of_a_round_policy_are_read_and_written() -> None:
    text = "max_min_fairness(mode=packed, solution=vertex)"
    assert str(registry.parse(text)) == text
    assert str(registry.parse("max_min_fairness(mode=perf)")) == "max_min_fairness"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("0.5*fgd + 0.5*max_min_fairness", "MaxMinFairness in a sum"),
        ("2*max_min_fairness", "policies that score nodes"),
        ("max_min_fairness(mode=best)", "one of base, perf, packed"),
        ("max_min_fairness", "one that places pods"),
    ],
)
def test_a_round_policy_has_no_place_among_pods(text: str, part: str) -> None:
    with pytest.raises(PolicyError, match=part):
        registry.placing(text)


@pytest.mark.parametrize("name", BUILT_IN)
def test_descriptions_are_complete(name: str) -> None:
    described = registry.describe(name)
    assert described.title.endswith(".")
    assert "score =" in described.text or "raw =" in described.text
    assert all(parameter.text for parameter in described.parameters)
    assert described.citation.startswith("@") or name in ("random", "python")


@pytest.mark.parametrize("name", registry.names())
def test_a_value_of_another_kind_is_refused_by_the_name_of_its_parameter(name: str) -> None:
    """Words where numbers stand, and the reverse: a policy, or one clear error, whatever the parameter."""
    for parameter in registry.describe(name).parameters:
        for value in ("x", "nan", "true", "none", "''", "True", "1.5", "-1", "1e308", "1e400"):
            with suppress(PolicyError):
                assert str(registry.parse(f"{name}({parameter.name}={value})"))
        for wrong in {bool: ["x"], int: ["x", "1.5"], float: ["True"], str: ["1.5"]}.get(type(parameter.default), []):
            with pytest.raises(PolicyError, match=rf"parameter {parameter.name}: found|{parameter.name}"):
                registry.parse(f"{name}({parameter.name}={wrong})")


@pytest.mark.parametrize("name", registry.names())
def test_objects_are_checked_as_their_texts_are(name: str) -> None:
    usual: Any = registry.policy_class(name)(*(["fastsim:Cluster"] if name == "python" else []))
    registry.check_parameters(usual)
    for field in dataclasses.fields(usual):
        kind = str(field.type) if field.init else ""
        wrongs: dict[str, list[object]] = {"bool": ["x"], "int": ["x", 1.5], "float": [True, math.nan], "str": [1.5]}
        for wrong in wrongs.get(kind, []):
            changed = copy.copy(usual)
            object.__setattr__(changed, field.name, wrong)
            with pytest.raises(PolicyError, match=f"policy {name}, parameter {field.name}: found"):
                registry.check_parameters(changed)


def test_truth_in_small_letters_is_no_truth() -> None:
    with pytest.raises(PolicyError, match=r"api_pace: found 'false', expected True or False; write api_pace=False"):
        registry.parse("monitored(api_pace=false)")


def test_classes_are_found_by_their_name_and_listed_for_type_checkers() -> None:
    names = {cls.__name__ for cls in registry.classes() if cls.__module__.startswith("fastsim.")}
    assert all(getattr(fastsim.policies, name).__name__ == name for name in names)
    tree = ast.parse(Path(fastsim.policies.__file__).read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert names <= imported
    assert names <= set(dir(fastsim.policies))
    with pytest.raises(AttributeError):
        _ = fastsim.policies.Missing


def test_the_registry_does_not_import_numpy() -> None:
    code = (
        "import sys; from fastsim.policies import registry;"
        "registry.parse('0.9*fgd + 0.1*pwr'); registry.describe('fgd');"
        "assert not {'numpy', 'polars', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("fgd", "fgd"),
        ("0.9*fgd + 0.1*pwr", "9*fgd + pwr"),
        ("900*fgd+100*pwr", "9*fgd + pwr"),
        ("pwr*100 + 9e2*fgd", "9*fgd + pwr"),
        ("0.3*fgd + 0.1*pwr + 0.6*fgd", "9*fgd + pwr"),
        ("(fgd*9 + pwr)/10", "9*fgd + pwr"),
        ("1/3*fgd + 2/3*pwr", "fgd + 2*pwr"),
        ("fgd + 0*pwr", "fgd"),
        ("0.1*dot_product(dim=share, norm='node')", "dot_product(dim=share, norm=node)"),
        ("dot_product(dim=merge)", "dot_product"),
        ("fgd(gpu_pick=best)", "fgd(gpu_pick=best)"),
        ("python(scorer='math:hypot', normalise=min_max_0)", "python(scorer='math:hypot', normalise=min_max_0)"),
    ],
)
def test_text_is_read_into_one_canonical_form(text: str, canonical: str) -> None:
    policy = registry.parse(text)
    assert str(policy) == canonical
    assert str(registry.parse(str(policy))) == canonical


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("sia(power=1e400)", "parameter power: found inf, expected a finite number"),
        (f"sia(power=-{'9' * 400})", "parameter power: found a number of"),
        ("fdg", "did you mean 'fgd'?"),
        ("nothing.like_it", "unknown name"),
        ("dot_product(dim=diagonal)", "one of merge, share, divide, extend"),
        ("dot_product(dmi=share)", "did you mean 'dim'?"),
        ("dot_product('share')", "named parameters"),
        ("0*fgd", "sum to nothing"),
        ("0*fgd + 0.0*pwr", "sum to nothing"),
        ("-1*fgd", "0 or more"),
        ("fgd - pwr", "expected a sum"),
        ("fgd*pwr", "expected a sum"),
        ("fgd + 1", "expected a sum"),
        ("1 + fgd", "expected a sum"),
        ("fgd/0", "expected a sum"),
        ("2/fgd", "expected a sum"),
        ("1e999*fgd", "finite"),
        ("True*fgd", "expected a sum"),
        ("9**9**9*fgd", "expected a sum"),
        ("", "cannot be read"),
        ("fgd(", "cannot be read"),
        ("(" * 5000, "cannot be read"),
        ("3", "a number alone"),
        ("fgd(gpu_pick=best) + pwr(gpu_pick=worst)", "one gpu_pick"),
        ("python", "module:function"),
        ("python(scorer='math')", "module:function"),
        ("1e-30*fgd + 1e30*pwr", "64-bit"),
        ("fgd[0]", "expected a sum"),
        ("fgd(gpu_pick=[])", "a word, a number"),
        ("(fgd)(gpu_pick=best)(x=1)", "a policy name"),
    ],
)
def test_bad_text_is_one_clear_error(text: str, part: str) -> None:
    with pytest.raises(PolicyError) as caught:
        registry.parse(text)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_name_belongs_to_one_class() -> None:
    with pytest.raises(PolicyError, match="one class for each name"):

        @registry.policy("fgd")
        class Another:
            """A second claim on the name."""


def test_other_packages_add_policies_through_entry_points(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "lab_policies.py").write_text(
        "from dataclasses import dataclass\n"
        "from fastsim.engine.online.plan import ScoreTerm\n"
        "from fastsim.policies.online.weighted_sum import Summand\n"
        "from fastsim.policies.registry import policy\n"
        "@policy('lab.mine')\n"
        "@dataclass(frozen=True)\n"
        "class Mine(Summand):\n"
        "    '''Best fit under another name.'''\n"
        "    def term(self): return ScoreTerm('best_fit', normalise='min_max_0')\n"
    )
    points = {
        "lab.mine": EntryPoint("lab.mine", "lab_policies:Mine", registry.ENTRY_POINT_GROUP),
        "lab.gone": EntryPoint("lab.gone", "no_such_module:Gone", registry.ENTRY_POINT_GROUP),
    }
    monkeypatch.syspath_prepend(tmp_path)
    assert list(registry.classes())  # loaded now, so that they register themselves in the true table
    monkeypatch.setattr(registry, "_entry_points", lambda: points)
    monkeypatch.setattr(registry, "_classes", dict(registry._classes))
    assert {"lab.mine", "lab.gone"} <= set(registry.names())
    assert str(registry.parse("0.5*lab.mine + 0.5*fgd")) == "lab.mine + fgd"
    assert registry.describe("lab.mine").title == "Best fit under another name."
    with pytest.raises(PolicyError, match="no_such_module"):
        registry.parse("lab.gone")


@pytest.mark.parametrize(
    ("text", "modules"),
    [
        ("0.9*fgd + 0.1*pwr", ["online.fgd", "online.pwr"]),
        ("las", ["orders"]),
        ("least_utilised", ["online.by_readings"]),
        ("max_min_fairness_water_filling", ["shares.water_filling"]),
    ],
)
def test_naming_a_policy_loads_its_module_alone(text: str, modules: list[str]) -> None:
    code = (
        "import sys\nfrom fastsim.policies import registry\n"
        f"registry.parse({text!r})\n"
        "print(*sorted(home for home in set(registry.MODULES.values()) if f'fastsim.policies.{home}' in sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == modules


def test_the_table_lists_every_policy_with_its_module() -> None:
    prefix = "fastsim.policies."
    for module in pkgutil.walk_packages(fastsim.policies.__path__, prefix):
        importlib.import_module(module.name)
    loaded = {cls.policy_name: cls.__module__ for cls in registry.classes() if cls.__module__.startswith(prefix)}
    assert {name: module.removeprefix(prefix) for name, module in loaded.items()} == registry.MODULES


def test_a_policy_of_ones_own_cannot_take_a_name_that_is_not_loaded_yet() -> None:
    code = (
        "from fastsim.policies import registry\n"
        "registry.policy('gandiva')(type('Mine', (), {}))\n"
        "registry.policy_class('gandiva')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "PolicyError: policy 'gandiva': found a second class" in done.stderr


def known(text: str) -> bool:
    """Whether the policy of a text is registered."""
    return text.partition("(")[0] in registry.names()


@pytest.mark.parametrize("name", [name for name, text in ORIGINAL_NAMES.items() if known(text)])
def test_a_name_is_a_round_policy(name: str) -> None:
    policy = registry.parse(ORIGINAL_NAMES[name])
    assert registry.describe(ORIGINAL_NAMES[name].partition("(")[0]).engine == "shares"
    assert registry.parse(str(policy)) == policy


def test_no_two_names_mean_the_same() -> None:
    texts = [str(registry.parse(text)) for text in ORIGINAL_NAMES.values() if known(text)]
    assert len(set(texts)) == len(texts) > 0


def test_every_policy_names_its_engine_and_has_its_method() -> None:
    for cls in registry.classes():
        assert registry.engine_of(cls) == cls.engine and callable(getattr(cls, registry.METHODS[cls.engine])), cls


def test_a_class_without_the_attribute_is_known_by_its_methods() -> None:
    places, gives, reads = (type(name, (), {method: print}) for name, method in
                            (("Places", "plan"), ("Gives", "begin"), ("Reads", "watch")))  # fmt: skip
    assert [registry.engine_of(cls()) for cls in (places, gives, reads)] == ["pods", "shares", "monitored"]
    assert registry.engine_of(type("Sorts", (gives,), {"ordered": True})()) == "orders"
    assert registry.engine_of(type("Adapts", (gives,), {"adaptive": True})()) == "adaptive"
    assert registry.engine_of(3) == ""


@pytest.mark.parametrize(
    ("engine", "found"),
    [
        ("rounds", "policy Mine: engine: found 'rounds', expected one of pods, shares, orders, adaptive, monitored"),
        (3, "policy Mine: engine: found 3, expected one of pods"),
        ("monitored", r"policy Mine: found engine 'monitored' without a method, expected watch\(...\)"),
    ],
)
def test_an_engine_that_is_none_or_lacks_its_method_is_refused(engine: object, found: str) -> None:
    mine = type("Mine", (), {"engine": engine, "begin": print})()
    with pytest.raises(PolicyError, match=found):
        fs.simulate("gavel:2:2:2", "synth:gavel?jobs=3", mine)
