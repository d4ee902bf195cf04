"""Objects of another kind than asked for: one error that says what to write instead, nothing read letter by letter."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import fastsim as fs
from fastsim.engine.online.plan import QUEUES
from fastsim.engine.result import Result
from fastsim.errors import FastsimError, InputError, PolicyError, ResultError, ScenarioError, plain_name
from fastsim.policies import registry
from fastsim.scenario.carbon import Carbon
from fastsim.telemetry.telemetry import Telemetry
from fastsim.workload.generators.recipes import GENERATORS
from fastsim.workload.texts import PUBLISHED
from tests.needs import skip_without

skip_without("altair")

CLUSTER = fs.Cluster.uniform(nodes=1, gpu="V100M32", gpus=4)
FRAME = pl.DataFrame({"submit_s": [0.0], "num_gpu": [1], "duration_s": [1.0]})
PODS = fs.Workload.from_polars(FRAME)


def first_fit(nodes: Any, pod: Any) -> Any:
    """No points for any node."""
    return np.zeros(len(nodes.cpu_free))


REMEDIES: list[tuple[str, Any, str]] = [
    (
        "policy",
        fs.policies.FGD,
        "found the class FGD, expected a policy, which is an object of such a class; write FGD()",
    ),
    ("policy", fs.policies.Sia, "write Sia()"),
    ("policy", first_fit, "found the function first_fit, expected a text or an object with a method plan"),
    ("policy", first_fit, "write fs.policies.PythonScorer(first_fit)"),
    ("policy", ["fgd", "pwr"], "fs.simulate_many takes a list of scenarios"),
    ("policy", FRAME, "found a DataFrame, expected a text or an object"),
    ("policy", None, "found None, expected a text or an object"),
    ("workload", FRAME, "write fs.Workload.from_polars(frame)"),
    ("workload", FRAME.to_arrow(), "write fs.Workload.from_arrow(table)"),
    ("workload", [{"num_gpu": 1}], "write fs.Workload.from_polars(polars.DataFrame(rows))"),
    ("workload", CLUSTER, "expected a text, a path or a Workload"),
    ("workload", fs.Workload, "write the object and not its class"),
    ("cluster", FRAME, "write fs.Cluster.from_polars(frame)"),
    ("cluster", {"num_gpu": [1]}, "write fs.Cluster.from_polars(polars.DataFrame(rows))"),
    ("cluster", PODS, "expected a text, a path or a Cluster"),
    ("typical", FRAME, "write fs.Workload.from_polars(frame)"),
    ("queue", first_fit, "queue: found "),
    ("gpu_pick", FRAME, "gpu_pick: found a DataFrame, expected one of best"),
    ("record", FRAME, "record: found "),
    ("telemetry", FRAME, "telemetry: found "),
    ("telemetry", Telemetry, "telemetry: found the class Telemetry, expected seconds such as 15"),
    ("carbon", FRAME, "carbon: found a DataFrame, expected g of CO2 for a kWh"),
    ("carbon", Carbon, "carbon: found the class Carbon"),
    ("prices", FRAME, "prices: found a DataFrame, expected $/h by GPU model as a dict, a text fixed?MODEL=PRICE"),
    ("prices", fs.Prices, "prices: found the class Prices"),
    ("prices", 3.0, "prices: found 3.0 (float)"),
    ("failures", FRAME, "failures: found a DataFrame, expected a text or a dict"),
    ("quotas", 8, "quotas: found 8 (int), expected a text or a dict"),
    ("weights", ["anna"], "weights: found ['anna'] (list), expected a text or a dict"),
    ("maintenance", 3, "maintenance: found 3, expected a file's path, a table, or rows"),
    ("rates", FRAME, "rates: found a DataFrame, expected a text, a path, an Oracle"),
    ("rates", fs.Oracle, "rates: found the class Oracle"),
    ("deschedule", 3, "deschedule: found "),
    ("deschedule", "frag_one_pod", "deschedule: found 'frag_one_pod', expected a text such as 'frag_one_pod:0.05'"),
    ("deschedule", [7], "deschedule: found 7 (int), expected a text such as"),
    ("deschedule", fs.Deschedule(first_fit, 0.1), "expected an object with a method victims"),  # type: ignore[arg-type]
    ("deschedule", [fs.Deschedule(None, 0.1)], "deschedule: policy: found None"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("name", "value", "text"), REMEDIES)
def test_a_wrong_object_is_one_error_with_a_remedy(name: str, value: Any, text: str, tmp_path: Path) -> None:
    given: Any = {"cluster": CLUSTER, "workload": PODS, "policy": "las" if name == "rates" else "fgd", name: value}
    with pytest.raises((ScenarioError, PolicyError, InputError), match=re.escape(text)) as caught:
        fs.simulate(**given, out=tmp_path / "run")
    assert str(caught.value).startswith(name) and caught.value.exit_code == 2
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("value", [fs.policies.FGD, first_fit])
def test_other_verbs_say_the_same(value: Any) -> None:
    scenario = fs.Scenario(CLUSTER, PODS, policy=value)
    table: Any = {"cluster": "openb", "workload": "synth:openb?pods=3", "policy": value}
    for call in (lambda: fs.simulate_many([scenario]), lambda: fs.explain(scenario, 0), lambda: fs.Sweep(table)):
        with pytest.raises(
            FastsimError, match=re.escape(f"write {'FGD()' if value is not first_fit else 'fs.policies'}")
        ):
            call()


def test_forks_and_resumed_runs_say_the_same(tmp_path: Path) -> None:
    asked: list[int] = []

    def failing(nodes: Any, pod: Any) -> Any:
        asked.append(1)
        return np.zeros(len(nodes.cpu_free)) if len(asked) != 30 else 1 / 0

    pods = fs.Workload.synth("openb", pods=50)
    with pytest.raises(PolicyError, match="ZeroDivisionError"):
        fs.simulate("openb:4", pods, fs.policies.PythonScorer(failing), out=tmp_path / "run", checkpoint_pods=5)
    for wrong, text in ((fs.policies.FGD, "write FGD()"), (first_fit, "write fs.policies.PythonScorer(first_fit)"),
                        (None, "found None, expected a text or an object"), (3, "found 3 (int)")):  # fmt: skip
        for again in (fs.resume, partial(fs.fork, out=tmp_path / "other", allow_code=True)):
            with pytest.raises(PolicyError, match=rf"^policy: .*{re.escape(text)}"):
                again(tmp_path / "run", workload=pods, policy=wrong)
    with pytest.raises(ScenarioError, match=r"plan: found .* expected .*python.* as before"):
        fs.resume(tmp_path / "run", workload=pods, policy="fgd")
    result = fs.resume(tmp_path / "run", workload=pods, policy=fs.policies.PythonScorer(failing))
    assert result.summary["pods"].item() == 50 and len(asked) > 30
    assert not (tmp_path / "other").exists()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run."""
    folder = tmp_path_factory.mktemp("runs") / "a"
    fs.simulate(CLUSTER, PODS, "fgd", out=folder)
    return folder


def test_folders_of_runs_are_results(saved: Path) -> None:
    run = Result.load(saved)
    assert fs.compare([saved, str(saved), run]).names == ("fgd", "fgd (2)", "fgd (3)")
    assert fs.compare(saved).table["pods"].to_list() == [1]
    assert fs.compare(str(saved.parent), ["mine"]).names == ("mine",)
    assert len(fs.report(str(saved)).labelled_runs) == len(fs.report(run).labelled_runs) == 1


Call = Callable[[Any], Any]
RUN = fs.simulate(CLUSTER, PODS, "fgd")
SEQUENCES: dict[str, tuple[Call, str | None]] = {
    "Cluster.mix: parts": (fs.Cluster.mix, "a list of (nodes, shape)"),
    "Cluster.reordered: order": (CLUSTER.reordered, "a list of positions"),
    "Comparison.charts: metrics": (lambda text: fs.compare(RUN).charts(text), None),
    "Comparison.to_html: metrics": (lambda text: fs.report(RUN, charts=text), "an unknown"),
    "Comparison.to_png: metrics": (lambda text: fs.compare(RUN).charts(text), None),
    "Comparison.to_svg: metrics": (lambda text: fs.compare(RUN).charts(text), None),
    "Oracle.restricted: gpu_models": (fs.Oracle.default().restricted, None),
    "Prices.from_folder: clouds": (lambda text: fs.Prices.from_folder("none", text), None),
    "Prices.from_folder: gpu_models": (lambda text: fs.Prices.from_folder("none", gpu_models=text), None),
    "Prices.restricted: gpu_models": (fs.Prices.fixed({"v100": 1.0}).restricted, None),
    "Report.to_markdown: pictures": (lambda text: _markdown(text), None),
    "Scenario: deschedule": (lambda text: fs.Scenario(CLUSTER, PODS, deschedule=text).check(), None),
    "Sensitivity.demands: kinds": (
        lambda text: fs.Sensitivity.default().demands(text, None),  # type: ignore[arg-type]
        "a list of (workload, GPUs)",
    ),
    "Sensitivity.oracle: gpu_models": (lambda text: fs.Sensitivity.default().oracle(text), ""),
    "Sensitivity.oracle: sizes": (lambda text: fs.Sensitivity.default().oracle(["v100"], text), "a list of numbers"),
    "compare: names": (lambda text: fs.compare([RUN], text), "a list of names"),
    "compare: results": (fs.compare, None),
    "stats: names": (lambda text: fs.stats([RUN], names=text), "a list of names"),
    "stats: runs": (fs.stats, None),
    "explain: pods": (lambda text: fs.explain(fs.Scenario(CLUSTER, PODS), text), None),
    "explain: jobs": (lambda text: fs.explain(fs.Scenario(CLUSTER, PODS), jobs=text), None),
    "job_chart: loads": (lambda text: fs.job_chart([RUN], loads=text), "a list of jobs per hour"),
    "job_chart: names": (lambda text: fs.job_chart([RUN], names=text), "a list of names"),
    "job_chart: results": (fs.job_chart, "a list of results"),
    "paired_jobs: a": (lambda text: fs.paired_jobs(text, RUN), None),
    "paired_jobs: b": (lambda text: fs.paired_jobs(RUN, text), None),
    "paired_jobs: names": (lambda text: fs.paired_jobs(RUN, RUN, text), "a list of two names"),
    "report: charts": (lambda text: fs.report([RUN], charts=text), None),
    "report: names": (lambda text: fs.report([RUN], text), "a list of names"),
    "report: results": (fs.report, None),
    "report: window": (lambda text: fs.report([RUN], window=text), "a beginning and an end"),
    "simulate: deschedule": (lambda text: fs.simulate(CLUSTER, PODS, deschedule=text), None),
    "simulate: window": (lambda text: fs.simulate("gavel:1:1:1", "synth:gavel?jobs=2", "fifo", window=text), None),
    "simulate_many: scenarios": (fs.simulate_many, "a list of scenarios"),
}
"""Public parameters that take sequences: a call with a text, and the sequence for which a text is refused.

None: the text is one element, which the error names whole. "": any text is one element."""


def _markdown(text: str) -> None:
    """A text that is a picture is the only picture."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        written = fs.report([RUN]).to_markdown(Path(folder) / "a.md", text).read_text()
    assert written.count("![") == 1
    raise ResultError(f"one picture, {text}")


def public_sequences() -> set[str]:
    """Every parameter of a public function or method that is typed as a sequence and that users give."""
    found = set()
    for name in fs.__all__:
        item = getattr(fs, name)
        if inspect.isfunction(item):
            methods: dict[str, Any] = {name: item}
        elif inspect.isclass(item) and not issubclass(item, BaseException):
            methods = {f"{name}.{key}": value for key, value in inspect.getmembers(item, callable) if key[0] != "_"}
            methods[name] = item
        else:
            continue
        for key, method in methods.items():
            for parameter in inspect.signature(method).parameters.values():
                if re.search(r"\b(Sequence|Iterable|tuple|list)\[|\bRuns\b", str(parameter.annotation)):
                    found.add(f"{key}: {parameter.name}")
    return found


RECORDS = (
    "Comparison",
    "Oracle",
    "PairedJobs",
    "Prices",
    "Report",
    "Result",
    "Sensitivity",
    "Telemetry",
    "TypicalPods",
    "Workload",
)
"""Classes whose constructors take columns that other functions have made."""
WITHIN = {"Result.labelled: citations", "Workload.found: key", "Scenario.problems: known"}
"""Parameters that only fastsim gives."""


def test_every_public_sequence_has_a_case() -> None:
    public = {key for key in public_sequences() if key.partition(":")[0] not in RECORDS} - WITHIN
    assert public == set(SEQUENCES)


@pytest.mark.parametrize("name", SEQUENCES)
def test_no_text_is_read_letter_by_letter(name: str) -> None:
    call, refused = SEQUENCES[name]
    if refused == "":
        call("qz")
        return
    with pytest.raises((ScenarioError, InputError, ResultError, PolicyError)) as caught:
        call("qz")
    assert "qz" in str(caught.value) and "'q'" not in str(caught.value)
    assert refused in (None, "an unknown") or f"found 'qz' (str), expected {refused}" in str(caught.value)


def test_rules_of_the_queue_are_no_policies_and_policies_no_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_entry_points", dict)  # reading those of all packages takes a while
    policies = fs.policies.names()
    for rule in (rule for rule in QUEUES if rule not in policies):
        for spelled in (rule, rule.upper(), rule.replace("_", "-")):
            with pytest.raises(PolicyError, match=f"did you mean the rule of the queue, queue='{rule}'"):
                fs.policies.parse(spelled)
    rules = {plain_name(rule): rule for rule in QUEUES}
    for policy in policies:
        problems = {one.path: str(one) for one in fs.Scenario(CLUSTER, PODS, queue=policy.upper()).problems()}
        same = rules.get(plain_name(policy))
        guess = f"did you mean '{same}'?" if same else f"did you mean the policy, policy='{policy}'?"
        assert problems.keys() == {"queue"} and guess in problems["queue"]


def test_names_are_guessed_whatever_their_capitals_and_hyphens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_entry_points", dict)  # reading those of all packages takes a while
    for policy in fs.policies.names():
        spellings = {policy.upper(), policy.title(), policy.replace("_", "-")} - {policy}
        for spelled in spellings:
            with pytest.raises(PolicyError, match=f"did you mean '{policy}'"):
                fs.policies.parse(spelled)
    with pytest.raises(AttributeError, match="did you mean 'FGD'"):
        _ = fs.policies.Fgd


def test_columns_of_uniform_nodes_are_keywords() -> None:
    with pytest.raises(InputError, match=r"write columns as keywords: gpu_idle_w=50\.0"):
        fs.Cluster.uniform(nodes=1, gpu="T4", columns={"gpu_idle_w": 3.0})
    with pytest.raises(InputError, match="did you mean 'gpu_idle_w'"):
        fs.Cluster.uniform(nodes=1, gpu="T4", gpu_idle=3.0)


def test_options_of_importers_are_named() -> None:
    path = "none.csv"
    makers: list[Callable[[], object]] = [partial(fs.Workload.synth, kind, nonsense=1) for kind in GENERATORS]
    makers += [partial(fs.Workload.from_trace, kind, path, nonsense=1) for kind in PUBLISHED]
    makers += [partial(one, path, nonsense=1) for one in (fs.Workload.from_openb, fs.Workload.from_philly)]
    for maker in makers:
        with pytest.raises(ScenarioError, match=r"found unknown option 'nonsense', expected options among \w+, "):
            maker()
