"""OpenMetrics text: what is written, what is read, and every trap of the server that reads it."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastsim.errors import InputError, ScenarioError
from fastsim.telemetry.metric_names import PROFILES
from fastsim.telemetry.openmetrics import DAY_S, read_files, write_files
from fastsim.telemetry.readings_table import NoNumber
from fastsim.telemetry.sample_lines import NotUnderstood
from tests.telemetry import table

TWO_DAYS = table({
    "power_w": [(0, 27.123), (500, 38.9), (86_400_000, 30.0)], "memory_used_mib": [(0, 0.0), (1001, 6994.0)],
    "util_pct": [(0, 55.0)], "energy_j": [(0, 12.5)],
})  # fmt: skip


@pytest.mark.parametrize("profile", PROFILES)
def test_what_is_written_is_read_again(tmp_path: Path, profile: str) -> None:
    paths = write_files(TWO_DAYS, tmp_path, profile=profile)
    assert [path.name for path in paths] == ["000000000000.om", "000000086400.om"]
    found = read_files(*paths)
    # The labels of the first generation tell no model and no pod.
    untold = ["model", "namespace", "pod", "container"] if profile == "dcgm1" else []
    assert all(set(found[name].to_pylist()) == {None} for name in untold)
    assert found.drop_columns(untold) == TWO_DAYS.drop_columns(untold)


def test_the_text(tmp_path: Path) -> None:
    (path, _) = write_files(TWO_DAYS, tmp_path, epoch_s=2 * DAY_S)
    text = path.read_bytes().decode()
    labels = 'gpu="0",UUID="GPU-1",modelName="V100",Hostname="n1",namespace="ns",pod="p",container="c"'
    assert text.startswith("# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n")
    assert f"DCGM_FI_DEV_POWER_USAGE{{{labels}}} 38.9 172800.500\n" in text
    assert text.endswith("\n# EOF\n") and "\r" not in text and text.count("# EOF") == 1
    assert "# UNIT" not in text and "\n\n" not in text


@settings(max_examples=25)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1, max_size=20), st.floats(0, 1e12))
def test_any_label_and_any_number_come_back(tmp_path_factory: pytest.TempPathFactory, pod: str, value: float) -> None:
    source = table({"power_w": [(1, value)]}, pod=pod, node=None)
    assert read_files(*write_files(source, tmp_path_factory.mktemp("om"))) == source


def test_a_dump_is_read(tmp_path: Path) -> None:
    path = tmp_path / "dump.txt"
    path.write_text('{__name__="dcgm_power_usage", gpu="0", uuid="GPU-1"} 27.5 1598969161000\n'
                    '{__name__="up", instance="n1:9100"} 1 1598969161000\n')  # fmt: skip
    unknown: Counter[str] = Counter()
    (row,) = read_files(path, unknown=unknown).to_pylist()
    assert (row["value"], row["gpu_uuid"], row["ts"].timestamp(), unknown["up"]) == (27.5, "GPU-1", 1598969161, 1)


GOOD = 'dcgm_fb_used{gpu="0"} 5 1\n'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (GOOD, "expected # EOF"),
        (GOOD + "# EOF\n\n", ":3"),
        (GOOD + "# EOF\n" + GOOD, "nothing after"),
        (GOOD + GOOD + "# EOF\n", "in order of time"),
        ('dcgm_fb_used{gpu="0"}\n# EOF\n', "a name, labels, a value and a time"),
        ('dcgm_fb_used{gpu="0"} 5 1 1\n# EOF\n', "a name, labels, a value and a time"),
        (2 * 'dcgm_fb_used{gpu="0"} 5\n', "one of a series, as none has a time"),
        ('dcgm_fb_used{gpu="0} 5 1\n# EOF\n', "a name, labels, a value"),
        ('dcgm_fb_used{gpu="0"} much 1\n# EOF\n', "a value and a time"),
        ('{gpu="0"} 5 1\n', "a name"),
        ('dcgm_fb_used{gpu="0"} 5 9e11\n# EOF\n', "a value and a time"),
        ('dcgm_fb_used{gpu="0"} 5 8000000000000000\n# EOF\n', "a value and a time"),
        ('dcgm_fb_used{gpu="0"} 5 inf\n# EOF\n', "a value and a time"),
    ],
)
def test_bad_text_is_named_by_file_and_line(tmp_path: Path, text: str, found: str) -> None:
    path = tmp_path / "a.om"
    path.write_text(text)
    with pytest.raises(InputError, match=r"a\.om") as raised:
        read_files(path)
    assert found in str(raised.value)


def test_what_cannot_be_told_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="before 1970"):
        write_files(TWO_DAYS, tmp_path, epoch_s=-1)
    with pytest.raises(InputError, match="metric: found 'noise_db'"):
        write_files(table({"noise_db": [(0, 1.0)]}), tmp_path)
    with pytest.raises(ScenarioError, match="slice_s"):
        write_files(TWO_DAYS, tmp_path, slice_s=DAY_S + 1)
    with pytest.raises(InputError, match=r"none\.om"):
        read_files(tmp_path / "none.om")
    assert list(tmp_path.iterdir()) == []


SCRAPED = """# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",device="nvidia0",modelName="Tesla T4",Hostname="n1",pod="p",namespace="ns"} 37
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-2",device="nvidia1",modelName="Tesla T4",Hostname="n1",pod="",namespace=""} NaN
"""


@pytest.mark.parametrize("end", ["", "# EOF\n"])
def test_what_an_exporter_serves_was_read_when_the_file_was_written(tmp_path: Path, end: str) -> None:
    path = tmp_path / "scrape.txt"
    path.write_text(SCRAPED + end)
    os.utime(path, (0, 1_700_000_000.25))
    with pytest.warns(NoNumber, match=f"^{path}: samples that are NaN or infinite, which are left out: 1$"):
        (row,) = read_files(path).to_pylist()
    assert (row["value"], row["metric"], row["pod"], row["node"]) == (37, "util_pct", "p", "n1")
    assert row["ts"].timestamp() == 1_700_000_000.25


def values(path: Path, text: str) -> list[tuple[float, float]]:
    """Seconds and value of every reading in a file of this text."""
    path.write_text(text)
    os.utime(path, (0, 1_700_000_000))
    return [(row["ts"].timestamp(), row["value"]) for row in read_files(path).to_pylist()]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('dcgm_fb_used{gpu="0"} 5\n' + GOOD, (1_700_000_000, 5)),
        (GOOD + 'dcgm_fb_used{gpu="0"} 6 9e11\n# EOF\n', (1, 5)),
        (GOOD + 'dcgm_fb_used{gpu="0"} 6\n# EOF\n', (1, 5)),
        ('dcgm_fb_used{pod="0} q"}5 1\ndcgm_fb_used{pod="0} 5 2\n# EOF\n', (1, 5)),
        ('dcgm_fb_used{gpu="0"} 5 1763632800000\ndcgm_fb_used{gpu="0"} 6 1763632801.5\n', (1763632800, 5)),
    ],
)
def test_a_line_that_is_not_understood_is_left_out(tmp_path: Path, text: str, found: tuple[float, float]) -> None:
    with pytest.warns(NotUnderstood, match=r"a\.om:2: lines that are not understood, which are left out: 1, the first"):
        assert values(tmp_path / "a.om", text) == [found]


def test_federated_text_has_milliseconds_and_no_last_line(tmp_path: Path) -> None:
    text = "# TYPE dcgm_fb_used untyped\n" + "".join(
        f'dcgm_fb_used{{gpu="0",instance="n1:9400"}} {value} {1763632800000 + 500 * value}\n' for value in (5, 6)
    )
    expected = [(1763632802.5, 5), (1763632803, 6)]
    assert values(tmp_path / "f", text) == values(tmp_path / "f", "up 1 1763632802500\n" + text) == expected
    with pytest.raises(InputError, match="an end without a last line"):
        values(tmp_path / "f", 'dcgm_fb_used{gpu="0"} 5 1763632800.500\n')


def test_exemplars_and_quoted_names(tmp_path: Path) -> None:
    exemplar = ' # {trace_id="} 7"} 0.67 1520879607.789'
    text = "".join(f'dcgm_fb_used{{gpu="0"}} {value} {value}{exemplar}\n' for value in (5, 6))
    assert values(tmp_path / "a", f"foo_bucket 5 1{exemplar}\n{text}# EOF\n") == [(5, 5), (6, 6)]
    quoted = '{"dcgm_fb_used", gpu="0","a.b"="c"} 5\n{"dcgm.other",gpu="0"} 5\n{"dcgm_fb_used"} 7\n'
    assert values(tmp_path / "a", quoted) == [(1_700_000_000, 7), (1_700_000_000, 5)]


def test_lines_about_other_things_are_counted_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('up 1\nup much\nhist{le="} {"} {count:5,sum:7}\ndcgm_fb_used 5\n')
    unknown: Counter[str] = Counter()
    assert read_files(tmp_path / "a", unknown=unknown)["value"].to_pylist() == [5]
    assert unknown == {"up": 2, "hist": 1}
