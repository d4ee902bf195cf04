"""Gavel's throughput files: what is read, and what is refused and where."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from fastsim.errors import InputError
from fastsim.performance.gavel_rates import JOB_NAMES, JOB_TABLES, JOB_TYPES, import_rates
from fastsim.performance.oracle import Oracle

ONE, TWO = "('LM (batch size 5)', 1)", "('A3C', 1)"
GOOD: dict[str, Any] = {
    "v100": {ONE: {"null": 40, TWO: [30.5, 2]}, TWO: {"null": 3.5, ONE: [2.0, 30.5]}},
    "v100_unconsolidated": {ONE: {"null": 7.0}},
    "k80": {"('it's (odd)', 4)": {"null": 0}},
}


def written(path: Path, document: Any) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


def test_jobs_companions_and_spread_gpus(tmp_path: Path) -> None:
    rows = import_rates(written(tmp_path / "r.json", GOOD)).to_pylist()
    values = [tuple(row.values()) for row in rows]
    assert values == [
        ("A3C", "v100", 1, None, True, None, 3.5, None),
        ("A3C", "v100", 1, None, True, "LM (batch size 5)", 2.0, 30.5),
        ("LM (batch size 5)", "v100", 1, None, True, None, 40.0, None),
        ("LM (batch size 5)", "v100", 1, None, True, "A3C", 30.5, 2.0),
        ("LM (batch size 5)", "v100", 1, None, False, None, 7.0, None),
        ("it's (odd)", "k80", 4, None, True, None, 0.0, None),
    ]


def test_gzip_says_the_same(tmp_path: Path) -> None:
    plain, packed = written(tmp_path / "r.json", GOOD), tmp_path / "r.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert import_rates(packed) == import_rates(plain)
    oracle = Oracle.from_json(packed)
    assert oracle.kinds == (("A3C", 1), ("LM (batch size 5)", 1), ("it's (odd)", 4))
    assert oracle.alone__kg[1].tolist()[1] == 40.0


def test_keys_of_2019_name_no_number_of_gpus(tmp_path: Path) -> None:
    lm, a3c = "LM (batch size 5)", "A3C"
    early = {"k80": {lm: {"null": 40, a3c: [30.5, 2], lm: [20, 21]}, a3c: {"null": 3.5, lm: [2, 30.5], a3c: [1, 1]}}}
    oracle = Oracle.from_json(written(tmp_path / "r.json", early))
    assert oracle.kinds == tuple((name, size) for name in (a3c, lm) for size in (1, 2, 4, 8))
    assert oracle.alone__kg[:, 0].tolist() == [3.5] * 4 + [40.0] * 4
    both = oracle.shared__kkg[oracle.kind_index[lm, 4], :, 0]
    assert both[oracle.kind_index[a3c, 4]] == 30.5 and both[oracle.kind_index[lm, 4]] == 20.5
    assert oracle.shared__kkg[oracle.kind_index[a3c, 8], oracle.kind_index[lm, 8], 0] == 2.0


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{,", r"r\.json:1: found .* at column 2, expected JSON"),
        ('{"v100": {}, "v100": {}}', "the key 'v100' twice"),
        ('{"v100": {"(\'a\', 1)": {"null": NaN}}}', "the constant NaN"),
        ([1], r"r\.json: found \[1\], expected an object of worker type"),
        ({"v100": 3}, r"r\.json: v100: found 3, expected an object"),
        ({"v100": {"LM": {"null": 1}}}, r"v100: LM: found 'LM', expected a job such as"),
        ({"v100": {"('a', 0)": {"null": 1}}}, "expected a job such as"),
        *(({"v100": {f"('a', {size})": {"null": 1}}}, "expected a job such as") for size in (2**31, 2**63, "9" * 5000)),
        ({"v100": {ONE: {"null": -1}}}, r"batch size 5\)', 1\): null: found -1, expected 0 or more steps/s"),
        ({"v100": {ONE: {"null": 10**400}}}, "null: found 1000.*, expected 0 or more"),
        ({"v100": {ONE: {"null": [1]}}}, "null: found .1., expected 0 or more"),
        ({"v100": {ONE: {"null": True}}}, "null: found true, expected 0 or more"),
        ({"v100": {ONE: {"null": 1, TWO: [1]}}}, "found .1., expected two rates"),
        ({"v100": {ONE: {"null": 1, TWO: 1}}}, "found 1, expected two rates"),
        ({"v100": {ONE: {"null": 1, "('A3C', 2)": [1, 1]}}}, "found 2 GPUs, expected 1, as many"),
        ({"v100": {"A3C": {"null": 1, "('A3C', 2)": [1, 1]}}}, "found 2 GPUs, expected 1, 2, 4, 8, as many"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, document: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        import_rates(written(tmp_path / "r.json", document))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        import_rates(tmp_path / "none.json")
    (tmp_path / "r.json.gz").write_bytes(b"plain")
    with pytest.raises(InputError, match=r"r\.json\.gz: found .*gzipped"):
        import_rates(tmp_path / "r.json.gz")


def test_rates_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    odd = {"v100": {ONE: {"null": 40, TWO: [30.5, 2]}, TWO: {"null": 3.5, ONE: [2.0, 31]}}}
    with pytest.raises(InputError, match="expected one rate"):
        Oracle.from_json(written(tmp_path / "r.json", odd))


def test_the_order_that_random_choices_count() -> None:
    assert len(JOB_NAMES) == len(set(JOB_NAMES)) == 26
    assert JOB_NAMES[0] == "ResNet-18 (batch size 16)" and JOB_NAMES[-2:] == ("A3C", "CycleGAN")
    names = list(JOB_TABLES["2020-05"])
    assert names[13:16] == ["Transformer (batch size 256)", "A3C", "LM (batch size 5)"]
    assert [name for name in names if name != "A3C"] == [name for name in JOB_NAMES if name != "A3C"]
    families = list(dict.fromkeys(name.split(" (")[0] for name in JOB_NAMES))
    assert families == ["ResNet-18", "ResNet-50", "Transformer", "LM", "Recommendation", "A3C", "CycleGAN"]


def test_fields_fit_into_a_line() -> None:
    for kind in JOB_TYPES:
        assert not any("\t" in text or not text for text in kind[:4]) and "{" not in kind.command
        size = kind.name.partition("batch size ")[2].rstrip(")")
        assert size in kind.command
        assert kind.needs_data == ("%s" in kind.command)
