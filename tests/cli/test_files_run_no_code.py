"""No file runs code: every verb, every kind of file, every way to write the name of the policy that imports."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from fastsim.cli.grammar.option_defaults import REFUSED
from fastsim.cli.main import exit_code
from fastsim.experiments.executors.executor import PLACES, Executor, Serial
from fastsim.experiments.sweep import run
from fastsim.experiments.sweep.store import store_at
from fastsim.experiments.sweep.sweep import Sweep
from fastsim.reports.charts import chart_files
from tests.hostile_files import COMMANDS, MODULE, NAMES, PODS, SPELLINGS, plant, toml, verbs, write_files, write_runs

VERBS = dict(verbs())
ALLOWING = [name for name, verb in VERBS.items() if any(param.name == "allow_code" for param in verb.params)]

ALL_ALLOWING = [(verb, command) for verb in ALLOWING for command in COMMANDS[verb]]
PART, WHOLE = 4, ("plain, alone", "one letter, last")
"""A spelling is tried with every fourth of these commands, but for two that are tried with all of them."""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    write_runs(folder)
    return folder


@pytest.fixture
def mark(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The mark of the planted module, which can be imported, in a copy of the saved runs."""
    work = tmp_path / "work"
    shutil.copytree(saved, work)
    monkeypatch.chdir(work)
    monkeypatch.setattr(sys, "path", [str(work), *sys.path])
    sys.modules.pop(MODULE, None)
    yield plant(work)
    sys.modules.pop(MODULE, None)


def ran(verb: str, words: str) -> int:
    return exit_code([*verb.split(), *words.split()])


def test_the_table_has_every_verb() -> None:
    assert COMMANDS.keys() == VERBS.keys()
    assert {name for name, all_ in COMMANDS.items() if any(one.runs for one in all_)} == set(ALLOWING)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_verbs_that_run_policies_refuse_code_in_files(
    spelling: str, mark: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_files(Path(), SPELLINGS[spelling])
    number = list(SPELLINGS).index(spelling)
    for at, (verb, command) in enumerate(ALL_ALLOWING):
        if at % PART == number % PART or spelling in WHOLE:
            code = ran(verb, command.words)
            err = capsys.readouterr().err
            assert code == 2 and not mark.exists(), (verb, command.words, err)
            assert err.count("\n") == 1 and "internal error" not in err, (verb, command.words, err)
            assert not Path("f").exists() and not Path("o").exists() and not Path("new").exists()


@pytest.mark.parametrize("place", PLACES)
def test_sweeps_refuse_code_before_a_worker_is_started(
    place: str, mark: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []

    def noted(*arguments: Any) -> Executor:
        opened.append(arguments[0])
        return Serial()

    monkeypatch.setattr(run, "executor_on", noted)
    write_files(Path(), SPELLINGS["one letter, last"])
    assert ran("sweep run", f"w.toml -o o --on {place}") == 2 and not opened and not mark.exists()
    assert "--allow-code" in capsys.readouterr().err
    assert ran("sweep run", f"w.toml -o o --on {place} --allow-code") == 0 and opened == [place] and mark.exists()


def test_a_worker_runs_nothing_that_a_stored_run_names(mark: Path) -> None:
    write_files(Path(), SPELLINGS["one letter, last"])
    store = store_at(Path("swept"))
    for one in Sweep({**PODS, "policy": ["fgd", "best_fit"], "seed": [0, 1, 2]}).runs:
        assert run.run_to_store(run.Assignment(one.scenario, one.name, store, "x", None, str(Path.cwd()), 0)) == []
    assert not mark.exists() and store.frame("policy=fgd/seed=2", "summary").height == 1


def undrawn(spec: str, **options: Any) -> bytes:
    """A picture that takes no time."""
    return b"a picture"


def test_all_other_verbs_run_nothing_that_a_file_names(
    mark: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drawing = SimpleNamespace(**dict.fromkeys(("vegalite_to_png", "vegalite_to_svg", "vegalite_to_pdf"), undrawn))
    monkeypatch.setattr(chart_files, "picturing", lambda: drawing)
    monkeypatch.setattr(chart_files, "_bundle", lambda: "// programs")
    write_files(Path(), SPELLINGS["full-width, alone"])
    for verb in sorted(VERBS.keys() - set(ALLOWING)):
        for command in COMMANDS[verb]:
            code = ran(verb, command.words)
            err = capsys.readouterr().err
            assert code in (0, 1, 2) and not mark.exists() and "internal error" not in err, (verb, command.words, err)


@pytest.mark.parametrize("verb", ALLOWING)
def test_the_same_files_run_it_if_that_is_allowed(verb: str, mark: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_files(Path(), SPELLINGS["one letter, last"])
    ran(verb, f"{COMMANDS[verb][0].words} --allow-code")
    err = capsys.readouterr().err
    if verb in ("fairness", "sweep knee"):  # their jobs have no nodes to score
        assert "allow" not in err
    else:
        assert mark.exists(), err


@pytest.mark.parametrize("policy", [[SPELLINGS["plain, alone"]], {"scorer": "planted:points"}, 5, True, [[]], ""])
def test_a_policy_that_is_no_text_is_refused(policy: Any, mark: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_files(Path(), policy)
    for verb in ALLOWING:
        if verb.startswith("sweep") and not isinstance(policy, int | str):
            continue  # a list or a table of a sweep stands for several runs
        for allowed in ("", " --allow-code"):
            code = ran(verb, COMMANDS[verb][0].words + allowed)
            err = capsys.readouterr().err
            assert code == 2 and "internal error" not in err and not mark.exists(), (verb, policy, err)


def options() -> Iterator[tuple[str, str, click.Option]]:
    """Every option that a file of defaults may set: verb, word, option."""
    for name, verb in VERBS.items():
        for option in verb.params:
            if isinstance(option, click.Option) and option.expose_value and option.name not in REFUSED:
                yield name, next(word for word in option.opts if word.startswith("--"))[2:], option


def write_default(verb: str, word: str, option: click.Option, value: str, file: str) -> None:
    """Write a file of defaults with one value."""
    table = ".".join(["tool.fastsim"] * (file == "pyproject.toml") + verb.split())
    many = option.multiple or option.nargs != 1
    Path(file).write_text(f"[{table}]\n" + toml({word: [value] if many else value}))


@pytest.mark.parametrize("file", ["fastsim.toml", "pyproject.toml"])
def test_no_option_takes_code_from_a_file_of_defaults(
    file: str, mark: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policies = [SPELLINGS[spelling] for spelling in WHOLE]
    for number, (verb, word, option) in enumerate(options()):  # the other spelling is tried with the other file
        write_default(verb, word, option, policies[(number + (file == "fastsim.toml")) % 2], file)
        code, err = exit_code(["list", "policies"]), capsys.readouterr().err
        if isinstance(option.type, click.Path):  # a strange name of a file, and no policy
            assert code in (0, 2), (verb, word, err)
        else:
            assert code == 2 and f"{verb.split()[-1]}: {word}: found " in err, (verb, word, err)
        assert not mark.exists()


def test_a_policy_of_a_file_of_defaults_imports_nothing(mark: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "--cluster openb:3 --workload synth:openb?pods=3"
    verbs_ = (("run", words), ("plan", f"{words} --add g2"), ("fork", "stopped -o f"))
    spellings = [name for name in SPELLINGS if not name.startswith(("circled", "upper"))]
    for number, spelling in enumerate(spellings):
        for verb, rest in verbs_ if spelling in WHOLE else [verbs_[number % len(verbs_)]]:
            Path("fastsim.toml").write_text(f"[{verb}]\n" + toml({"policy": SPELLINGS[spelling]}))
            code, err = ran(verb, rest), capsys.readouterr().err
            assert code == 2 and err.count("\n") == 1 and not mark.exists(), (verb, err)


def test_policies_that_import_nothing_may_be_defaults(mark: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policies = [(verb, word, option) for verb, word, option in options() if word == "policy"]
    assert {verb for verb, *_ in policies} == {"run", "plan", "fork", "serve-extender", "reproduce"}
    for verb, word, option in policies:
        for policy in ("fgd", "0.9*fgd + 0.1*dot_product(dim=share)", "max_min_fairness(mode=packed)"):
            write_default(verb, word, option, policy, "fastsim.toml")
            assert exit_code(["list", "policies"]) == 0, capsys.readouterr().err
    assert not mark.exists()


def test_what_the_user_types_is_allowed(mark: Path) -> None:
    policy = f"{NAMES['plain']}(scorer='{MODULE}:points')"
    assert exit_code(["run", "--cluster", "openb:3", "--workload", "synth:openb?pods=3", "--policy", policy]) == 0
    assert mark.exists()
