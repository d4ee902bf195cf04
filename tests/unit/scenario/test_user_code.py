"""Files are data: a policy that imports code is refused wherever a file names it, unless the user allows it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import fastsim as fs
from fastsim.cli.main import exit_code
from fastsim.decisions.explain import explained
from fastsim.errors import FastsimError, ScenarioError
from fastsim.experiments.sweep.sweep import Sweep, sweep_from_toml
from fastsim.policies import registry
from fastsim.reports.comparison import compare
from fastsim.scenario import user_code
from fastsim.scenario.scenario import Scenario
from fastsim.scenario.user_code import refuse_user_code

SMALL = {"cluster": "openb:5", "workload": "synth:openb?pods=5&seed=1"}
POLICY = "0.5*fgd + 0.5*python(scorer='planted:points')"
TOLD = "allow it: --allow-code, allow_code=True"


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that appears as soon as the module is imported."""
    mark = tmp_path / "imported"
    (tmp_path / "planted.py").write_text(
        f"import numpy\nopen({str(mark)!r}, 'w').close()\n"
        "def points(nodes, pod):\n    return numpy.zeros(len(nodes.cpu_free), numpy.int64)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "planted", raising=False)
    monkeypatch.chdir(tmp_path)
    return mark


def written(path: Path, policy: str = POLICY) -> Path:
    lines = [f"{name} = {json.dumps(value)}" for name, value in {**SMALL, "policy": policy}.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_only_policies_that_import_are_refused() -> None:
    for policy in ("fgd", "0.9*fgd + 0.1*pwr", "no_python", "fgd +"):
        refuse_user_code(policy, "here", False)
    refuse_user_code(POLICY, "here", True)
    for other in (None, object(), ["python"]):
        with pytest.raises(ScenarioError, match=r"here: policy: found .* expected a text"):
            refuse_user_code(other, "here", True)
    for policy in (POLICY, "python ( scorer = 'os:abort' )", "fgd+python(scorer='a:b')"):
        with pytest.raises(ScenarioError, match=f"here: policy: found .*{TOLD}"):
            refuse_user_code(policy, "here", False)


def test_no_other_parameter_of_a_policy_is_a_place_of_code(planted: Path) -> None:
    places = [(name, one.name) for name in registry.names() for one in registry.describe(name).parameters]
    texts = {place: "{}({}='planted:points')".format(*place) for place in places}
    assert [place for place in places if user_code.names_user_code(texts[place])] == [("python", "scorer")]
    assert len(places) > 100 and not planted.exists()


def test_nothing_is_allowed_before_a_policy_can_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_code, "ANSWERS", [])
    assert user_code.names_user_code("fgd")


def test_a_text_is_judged_alike_however_many_calls_are_running() -> None:
    deep = "-" * 3000 + "python(scorer='planted:points')"
    for calls in range(0, 600, 50):
        assert at_depth(calls, deep) is at_depth(0, deep) is True


def at_depth(calls: int, text: str) -> bool:
    return at_depth(calls - 1, text) if calls else user_code.names_user_code(text)


def test_files_of_scenarios_and_sweeps_import_nothing(planted: Path, tmp_path: Path) -> None:
    path = written(tmp_path / "s.toml")
    for load in (Scenario.from_toml, Sweep.from_toml, sweep_from_toml):
        with pytest.raises(FastsimError, match=TOLD):
            load(path)
        load(path, allow_code=True)  # a text alone imports nothing either
    with pytest.raises(ScenarioError, match=TOLD):
        Scenario.from_json(json.dumps({"policy": POLICY}))
    assert Scenario.from_json(json.dumps({"policy": POLICY}), allow_code=True).policy == POLICY
    assert not planted.exists()


def test_a_policy_put_together_from_parts_is_refused_too(planted: Path, tmp_path: Path) -> None:
    path = written(tmp_path / "s.toml", "fgd")
    path.write_text(path.read_text().replace('"fgd"', json.dumps(["fgd", POLICY])))
    with pytest.raises(FastsimError, match=TOLD):
        sweep_from_toml(path)
    assert not planted.exists()


def test_verbs_say_how_to_allow_it(planted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "s.toml")
    sweep = ["sweep", path, "--out", "out"]
    for words in (
        ["run", "--scenario", path],
        sweep,
        [*sweep, "--dry-run"],
        ["plan", "--scenario", path, "--add", "g2"],
    ):
        assert exit_code([str(word) for word in words]) == 2
        assert "--allow-code" in capsys.readouterr().err
    assert not planted.exists()
    assert (
        exit_code(["sweep", str(path), "--out", "out", "--dry-run", "--allow-code"]) == 0
    )  # asks the policy for its plan
    assert planted.exists() and not Path("out").exists()
    planted.unlink()
    sys.modules.pop("planted", None)
    assert exit_code(["run", "--scenario", str(path), "--allow-code"]) == 0
    assert planted.exists()


def test_a_fork_names_the_checkpoint_whose_policy_it_refuses(planted: Path, tmp_path: Path) -> None:
    kept = tmp_path / "run.checkpoint"
    out = tmp_path / "run"
    fs.simulate(SMALL["cluster"], SMALL["workload"], POLICY, out=out, checkpoint_pods=2, keep_checkpoint=True)
    planted.unlink()
    with pytest.raises(ScenarioError, match=f"^{kept}: .*{TOLD}"):
        fs.fork(out, tmp_path / "new")
    assert not planted.exists() and not (tmp_path / "new").exists()


def test_an_edited_record_runs_nothing(planted: Path, tmp_path: Path) -> None:
    fs.simulate(SMALL["cluster"], SMALL["workload"], out=tmp_path / "run")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    record["provenance"]["scenario"]["policy"] = POLICY
    (tmp_path / "run" / "run.json").write_text(json.dumps(record))
    with pytest.raises(ScenarioError, match=TOLD):
        explained(tmp_path / "run", [0])
    compare([fs.Result.load(tmp_path / "run")])
    assert not planted.exists()
