"""Saved benchmark runs are compared by their ratios, whatever machine they come from."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from bench.history import Run, chosen, compared, earlier, failures, history, run_of, saved_runs, short
from bench.revision import RevisionError


def report(
    figures: dict[str, Any], when: str = "2026-01-01T10:00:00", commit: str = "abcdef123",
    iqr: float = 0.1, rounds: int = 5, dirty: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """A report as pytest-benchmark writes it, cut down to what is read; a figure is a ratio, or (ratio, budget)."""
    benchmarks = []
    for name, figure in figures.items():
        ratio, budget = figure if isinstance(figure, tuple) else (figure, 9.0)
        benchmarks.append({
            "name": f"bench_{name}", "fullname": f"bench/bench_x.py::bench_{name}", "param": None,
            "stats": {"min": ratio / 10, "median": 2.0, "iqr": 2 * iqr, "rounds": rounds},
            "extra_info": {"ratio": ratio, "budget": budget, "per_s": 7},
        })  # fmt: skip
    return {
        "machine_info": {"cpu": {"brand_raw": "Abacus"}, "python_version": "3.11.7"},
        "commit_info": {"id": commit, "dirty": dirty}, "datetime": when, "benchmarks": benchmarks,
    }  # fmt: skip


def saved(folder: Path, *reports: dict[str, Any], machine: str = "Linux-64bit") -> Path:
    """A storage folder with these runs."""
    place = folder / machine
    place.mkdir(parents=True, exist_ok=True)
    for number, made in enumerate(reports, 1):
        (place / f"{number:04}_x_{number}.json").write_text(json.dumps(made))
    return folder


def run(figures: dict[str, Any], **options: Any) -> Run:
    """A run with these figures."""
    return run_of(report(figures, **options), "0001")


def called(storage: Path, *words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of the command."""
    done = CliRunner().invoke(history, [*words, "--storage", str(storage)], env={"COLUMNS": "120"})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def test_a_report_becomes_a_run() -> None:
    found = run({"a": 2.5, "peer": (4.0, None)}, iqr=0.2, dirty=True)
    assert (found.machine, found.commit, found.when) == ("Abacus, CPython 3.11.7", "abcdef1+", "2026-01-01T10:00:00")
    a, peer = found.figures.values()
    assert (a.ratio, a.noise, a.ours, peer.ours) == (2.5, 0.2, True, False)
    assert math.isnan(run({"a": 1.0}, rounds=1).figures["bench/bench_x.py::bench_a"].noise)


def test_benchmarks_without_a_ratio_are_left_out() -> None:
    made = report({"a": 1.0, "b": 1.0})
    del made["benchmarks"][0]["extra_info"]["ratio"]
    assert [short(name) for name in run_of(made, "x").figures] == ["b"]


def test_what_both_runs_have_is_compared() -> None:
    changes = compared(
        run({"a": 2.0, "gone": 1.0, "b": 4.0}, iqr=0.03), run({"b": 5.0, "fresh": 1.0, "a": 1.0}, iqr=0.04)
    )
    assert [(short(change.name), change.times) for change in changes] == [("b", 1.25), ("a", 0.5)]
    assert changes[0].noise == pytest.approx(0.05)  # two independent spreads


def test_only_our_own_benchmarks_fail() -> None:
    changes = compared(run({"a": 2.0, "b": 1.0, "peer": (1.0, None)}), run({"a": 2.5, "b": 1.2, "peer": (9.0, None)}))
    assert [short(change.name) for change in failures(changes, 1.2)] == ["a"]
    assert [short(change.name) for change in failures(changes, 1.25)] == []
    assert [short(change.name) for change in failures(changes, 1.1)] == ["a", "b"]


def test_runs_of_all_machines_by_time(tmp_path: Path) -> None:
    first, second, third = (report({"a": 1.0}, when=f"2026-01-0{day}T00:00:00") for day in (1, 2, 3))
    saved(tmp_path, first, third)
    saved(tmp_path, second, machine="Darwin-64bit")
    assert [found.when[:10] for found in saved_runs(tmp_path)] == ["2026-01-01", "2026-01-02", "2026-01-03"]


def test_the_run_before_shares_a_benchmark() -> None:
    a, b, again = run({"a": 1.0}), run({"b": 1.0}), run({"a": 2.0})
    assert earlier([a, b, again]) is a
    assert earlier([b, again]) is None and earlier([again]) is None


def test_a_run_is_chosen_by_number_or_commit() -> None:
    runs = [run_of(report({}, commit=c * 10), f"000{n}") for n, c in enumerate("abc", 1)]
    assert chosen(runs, "2") is runs[1] and chosen(runs, "0003") is runs[2]
    assert chosen(runs, "aaaa") is runs[0] and chosen(runs, "bbbbbbbbb") is runs[1]
    with pytest.raises(click.UsageError, match="--with 7: found no such run"):
        chosen(runs, "7")


def test_the_command_lists_and_compares(tmp_path: Path) -> None:
    storage = saved(tmp_path, report({"a[x]": 2.0}), report({"a[x]": 3.0}, commit="fedcba987", rounds=1))
    code, out, _ = called(storage)
    assert code == 0 and "abcdef1" in out and "Abacus" in out
    (line,) = (line for line in out.splitlines() if "a[x]" in line)
    assert [cell.strip() for cell in line.strip("│ ").split("│")] == ["a[x]", "2", "3", "1.500", "one round"]


def test_slower_than_allowed_is_exit_code_1(tmp_path: Path) -> None:
    storage = saved(tmp_path, report({"a": 2.0, "b": 1.0}), report({"a": 3.0, "b": 1.0}))
    assert called(storage, "--fail-above", "1.5")[0] == 0
    code, _, err = called(storage, "--fail-above", "1.4")
    assert (code, err) == (1, "slower than 1.4 times: a 1.50\n")
    assert called(storage, "--with", "2", "--fail-above", "1.4")[0] == 0


def test_nothing_to_compare_with(tmp_path: Path) -> None:
    code, out, _ = called(saved(tmp_path, report({"a": 1.0})))
    assert code == 0 and "no earlier run" in out


@pytest.mark.parametrize("words", [("--with", "9"), ("--with", "1", "--revision", "HEAD"), ("--only", "x.py")])
def test_wrong_options(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert called(saved(tmp_path, report({"a": 1.0})), *words)[0] == 2


def test_no_runs_and_damaged_runs(tmp_path: Path) -> None:
    code, _, err = called(tmp_path)
    assert code == 2 and "--benchmark-autosave" in err
    saved(tmp_path, {"benchmarks": [{}]})
    code, _, err = called(tmp_path)
    assert code == 2 and "0001_x_1.json: found no benchmark report" in err


def test_with_a_revision_today_is_compared_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def made(revision: str, files: Any, root: Path) -> dict[str, Any]:
        asked.append((revision, tuple(files)))
        return report({"a": 1.0}, dirty=True)

    monkeypatch.setattr("bench.history.measured", made)
    storage = saved(tmp_path, report({"a": 2.0}))
    code, out, err = called(storage, "--revision", "v1", "--only", "bench/bench_x.py", "--fail-above", "1.9")
    assert asked == [("v1", ("bench/bench_x.py",))]
    assert code == 1 and "v1 (abcdef1) -> 0001 (abcdef1)" in out and err == "slower than 1.9 times: a 2.00\n"

    def failing(*_: Any) -> dict[str, Any]:
        raise RevisionError("v1: no benchmark ran there")

    monkeypatch.setattr("bench.history.measured", failing)
    code, _, err = called(storage, "--revision", "v1")
    assert code == 2 and "no benchmark ran there" in err
