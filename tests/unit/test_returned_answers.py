"""Answers of users' objects in every socket of the engines: each wrong one is one error with where, found, expected."""

from __future__ import annotations

import ast
import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fastsim as fs
import fastsim.engine
from fastsim.engine.adaptive.plan import AdaptivePlan, Offer, Place
from fastsim.engine.monitored.plan import Binding, MonitoredPlan, SchedulerStep
from fastsim.engine.orders.plan import OrderPlan
from fastsim.engine.shares.plan import SharePlan
from fastsim.errors import PolicyError
from fastsim.policies.registry import parse

SHARED = ("gavel:2:2:2", "synth:gavel?jobs=6&seed=1&rate_per_hour=20")
ORDERED = ("synergy:1", "synth:synergy?jobs=4&rate_per_hour=9&seed=1")
ADAPTIVE = ("sia:1:1:1", "synth:sia?jobs=2&seed=1")
MONITORED = ("uniform?nodes=1&gpu=V100M32&gpus=1", "synth:detectors?jobs=3&over=0")
PODS = ("uniform?nodes=3&gpu=T4&gpus=1", "synth:openb?pods=2")
Answer = Callable[..., Any]


class Estimates:
    """The true rates of pairs, unless given others."""

    def __init__(self, rates: Answer | None = None, arrive: Answer = lambda job, kind: kind) -> None:
        self.rates, self.arrive = rates, arrive

    def __call__(self, view: Any, first: Any, second: Any) -> Any:
        """The rates."""
        shared, one, two = view.setting.oracle.shared__kkg, view.kind[first], view.kind[second]
        true = shared[one, two], shared[two, one]
        return true if self.rates is None else self.rates(*true)

    def observe(self, job_a: int, job_b: int, model: int) -> None:
        """Nothing."""

    def leave(self, job: int) -> None:
        """Nothing."""


@dataclasses.dataclass
class Mine:
    """A policy with one method, which returns what the function does."""

    method: str
    answer: Answer
    adaptive: bool = False

    def __post_init__(self) -> None:
        setattr(self, self.method, self.answer)


def mine(method: str, answer: Answer, adaptive: bool = False) -> Any:
    """A policy of a user's own, as any object with the method is one."""
    return Mine(method, answer, adaptive)


def packed(estimates: Any) -> None:
    published: Any = parse("max_min_fairness(mode=packed)")
    fs.simulate(
        *SHARED, mine("begin", lambda setting: dataclasses.replace(published.begin(setting), estimates=estimates))
    )


def shares(answer: Answer) -> None:
    allocator = SimpleNamespace(allocate=answer, state=dict, restore=print)
    fs.simulate(*SHARED, mine("begin", lambda setting: SharePlan(allocator)))


def ordered(parts: Answer, solver_s: Any = 0.0) -> None:
    chooser = SimpleNamespace(parts=parts, solver_s=solver_s)
    plan = OrderPlan(("arrival",), mechanism="opt", chooser=chooser)
    fs.simulate(*ORDERED, mine("begin", lambda setting: plan), round_s=300.0)


def points(**changed: Any) -> Answer:
    """A function that answers with a small point for each kind, with changed numbers."""
    usual = {"cpu": 1.0, "memory_gb": 1.0, "speedup": 1.0}
    return lambda demands, counts, servers: [
        SimpleNamespace(**{"kind": kind, "jobs": jobs, **usual, **changed}) for kind, jobs in enumerate(counts) if jobs
    ]


def adaptive(decide: Answer, solver_s: Any = 0.0) -> None:
    decider = SimpleNamespace(decide=decide, solver_s=solver_s)
    fs.simulate(*ADAPTIVE, mine("begin", lambda setting: AdaptivePlan(decider), adaptive=True), round_s=60.0)


def first_job(view: Any) -> Any:
    """One GPU for the first job."""
    return {view.jobs[0].id: Place(0, (0,))}


def offered(*offers: Any) -> None:
    """The explanation of the first round of a run whose decider offers these."""
    decider = SimpleNamespace(decide=first_job, solver_s=0.0, offers=lambda view: offers[0])
    plan = AdaptivePlan(decider)
    scenario = fs.Scenario(*ADAPTIVE, mine("begin", lambda setting: plan, adaptive=True), round_s=60.0)
    fs.explain(scenario, t=480.0)  # the first round


def offer(**changed: Any) -> list[Offer]:
    """An offer of one GPU to the first job, with changed fields."""
    return [Offer(0, 0, 1, 1, 1.0, 1.0)._replace(**changed)]


def watched(factory: Any) -> None:
    fs.simulate(*MONITORED, mine("watch", lambda: MonitoredPlan(factory)))


def stepped(step: Answer) -> None:
    """A run whose scheduler answers with a function of the pods that have arrived and the time."""
    waiting: list[int] = []
    scheduler = SimpleNamespace(
        arrive=lambda pod, request: waiting.append(pod), step=lambda now_s, view: step(waiting, now_s)
    )
    watched(lambda capacity, begin_s: scheduler)


def bound(twice: bool = False, **changed: Any) -> Answer:
    """A step that binds the first pod at once, with changed fields."""
    return lambda pods, now_s: SchedulerStep([Binding(pods[0], 0, now_s)._replace(**changed)] * (1 + twice))


def method_of(name: str) -> Callable[[Any], None]:
    where = {"plan": PODS, "begin": SHARED, "watch": MONITORED}[name]

    def call(answer: Any) -> None:
        fs.simulate(*where, mine(name, lambda *given: answer))

    return call


Wrong = tuple[Callable[[Any], Any], Any, str]
NO_SECONDS = r"solver_s: found .*, expected CPU seconds, a number of 0 or more"
NO_TABLES = r"estimates Estimates at .* s: found .*, expected two tables of steps/s, 0 or more, each of 15 pairs x 3"


def each(call: Callable[[Any], Any], text: str, *answers: Any) -> list[Wrong]:
    return [(call, answer, text) for answer in answers]


def fields(
    call: Callable[[Any], Any], made: Callable[..., Any], table: dict[str, tuple[str, list[Any]]]
) -> list[Wrong]:
    return [
        (call, made(**{name: value}), f"{name}.*: found .*, expected {expected}")
        for name, (expected, values) in table.items()
        for value in values
    ]


AMOUNTS = ["1", math.nan, -1, math.inf, None, True]
POINT: dict[str, tuple[str, list[Any]]] = {
    "kind": ("the number of a kind, 0 to", [99, -1, "a", True]),
    "jobs": ("a number of jobs, 0 or more", [-1, 0.5, None]),
    "cpu": ("CPUs, 0 or more", AMOUNTS),
    "memory_gb": ("GB, 0 or more", AMOUNTS),
    "speedup": ("times the fair share's speed, 0 or more", AMOUNTS),
}
BINDING: dict[str, tuple[str, list[Any]]] = {
    "pod": ("a pod that has arrived", [77, -1, 0.0, "0", [], False]),
    "gpu": ("the number of a GPU, 0 to 0", [1, -1, 0.5, "0", None, False]),
    "at_s": ("a second from 0 on", [-1.0, math.nan, math.inf, "now", None]),
    "stage": ("a text", [3, None, ["direct"]]),
}
OFFER: dict[str, tuple[str, list[Any]]] = {
    "job": ("the id of an active job", [77, -1, 0.0, "0", None, False]),
    "group": ("a number of -1 to 2", [3, -2, 0.5, "0", None, True]),
    "nodes": ("a number of 1 or more", [0, 0.5, None]),
    "gpus": ("a number of 1 or more", [0, "1", True]),
    "goodput": ("a finite number", ["1", math.nan, math.inf, None, True]),
    "value": ("a finite number", ["1", math.nan, -math.inf, None]),
}
"""Wrong values of the fields of answers, with a part of what is expected."""

ANSWERS: dict[str, list[Wrong]] = {
    "Scorer.__call__": each(
        lambda answer: fs.simulate(*PODS, fs.policies.PythonScorer(lambda nodes, pod: answer)),
        r"scorer [\w.]+:.*<lambda>: found .*, expected 3 numbers",
        None, "a", [1, 2],
    ),
    "OnlinePolicy.plan": each(method_of("plan"), r"plan\(\): found .*, expected an OnlinePlan", None, 3, SharePlan),
    "RoundPolicy.begin": each(method_of("begin"), r"begin\(\): found .*, expected .*SharePlan", None, 3, SharePlan),
    "AdaptivePolicy.begin": each(
        lambda answer: fs.simulate(*ADAPTIVE, mine("begin", lambda setting: answer, adaptive=True), round_s=60.0),
        r"begin\(\): found .*, expected an AdaptivePlan", None, {}, AdaptivePlan,
    ),
    "PairRates.__call__": each(
        lambda rates: packed(Estimates(rates=rates)), NO_TABLES,
        lambda one, two: None, lambda one, two: one, lambda one, two: (one, two, one),
        lambda one, two: (one[0], two), lambda one, two: (one, two * np.nan), lambda one, two: (-1 - one, two),
        lambda one, two: (one + np.inf, two), lambda one, two: (one.astype(str), two),
        lambda one, two: (np.ma.masked_less(one, 9e9), two), lambda one, two: ([[1.0], []], two),
    ),
    "PairRateEstimates.arrive": each(
        lambda answer: packed(Estimates(arrive=lambda job, kind: answer)),
        r"estimates Estimates: arrive\(\): found .*, expected a kind of setting.oracle.kinds, 0 to \d+$",
        None, "a", 3.5, 1.0, True, -1, 10**6, 2**40,
    ),
    "ShareAllocator.allocate": each(
        lambda answer: shares(lambda view: answer), r"allocate\(\): found .*, expected an Allocation or None",
        3, {}, "a",
    ),
    "Chooser.parts": [
        *each(ordered, r"parts\(\): found .*, expected a list of points", lambda *given: None, lambda *given: 3),
        *each(ordered, r"parts\(\): point 0: found .*, expected a list of points", lambda *given: [3]),
        *each(ordered, r"parts\(\): found points for 0 jobs of kind", lambda *given: [], points(jobs=0)),
        *each(ordered, r"parts\(\): found points for 9 jobs of kind \d+, expected points for 1", points(jobs=9)),
        *fields(ordered, points, POINT),
    ],
    "Chooser.solver_s": each(lambda value: ordered(points(), value), NO_SECONDS, None, "a", math.nan, -1.0, True),
    "Decider.decide": each(
        lambda answer: adaptive(lambda view: answer), r"decide\(\): found .*, expected a dict", None, [3], "a"
    ),
    "Decider.solver_s": each(
        lambda value: adaptive(first_job, value), NO_SECONDS, None, "a", math.nan, -1.0, math.inf, True
    ),
    "OfferingDecider.offers": [
        *each(offered, r"offers\(\): found .*, expected a list of Offers", None, 3, {}, "a"),
        *each(offered, r"offers\(\): offer 0: found .*, expected an Offer", [3], [(0, 0, 1, 1, 1.0, 1.0)]),
        *fields(offered, offer, OFFER),
    ],
    "SchedulerFactory.__call__": each(
        lambda answer: watched(lambda capacity, begin_s: answer),
        r"scheduler\(\): found .*, expected an object with arrive\(\) and step\(\)", None, 3, SimpleNamespace,
    ),
    "Scheduler.step": [
        *each(
            lambda answer: stepped(lambda pods, now_s: answer),
            r"scheduler at 0 s: step\(\): found .*, expected a SchedulerStep", None, 3, ((), 1.0), SchedulerStep,
        ),
        *each(
            lambda answer: stepped(lambda pods, now_s: SchedulerStep(answer)),
            r"step\(\): bindings: found .*, expected a (list of Bindings|Binding\()", None, {}, "a", iter(()),
            [(0, 0, 0.0)], [None],
        ),
        *fields(stepped, bound, BINDING),
        *each(stepped, r"pod: found pod 0, which is bound already", bound(twice=True)),
        *each(
            lambda answer: stepped(lambda pods, now_s: SchedulerStep((), answer)),
            "next_s: found .*, expected (seconds, infinite|a second after 0)",
            None, "1", math.nan, 0.0, -math.inf, True,
        ),
    ],
}  # fmt: skip
"""Wrong answers of every method whose answer an engine takes: the run, the answer, and the error."""

NO_ANSWERS = {
    "ResourcePoint": "parts of the answers of Chooser.parts", "NodeColumns": "given to users", "View": "given to users",
    "PairRateEstimates.observe": "nothing is taken", "PairRateEstimates.leave": "nothing is taken",
    "Scheduler.arrive": "nothing is taken",
    "PairRateEstimates.state": "of checkpoints", "PairRateEstimates.restore": "of checkpoints",
    "ShareAllocator.state": "of checkpoints", "ShareAllocator.restore": "of checkpoints",
    "StatefulDecider.state": "of checkpoints", "StatefulDecider.restore": "of checkpoints",
}  # fmt: skip
"""Protocols and methods whose answers no engine takes during a run, and why."""


def socket_methods() -> set[str]:
    """The methods of the protocols in every ``plan.py`` of the engines."""
    found = set()
    for path in Path(fastsim.engine.__file__).parent.rglob("plan.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and any(getattr(base, "id", "") == "Protocol" for base in node.bases):
                found |= {f"{node.name}.{item.name}" for item in node.body if isinstance(item, ast.FunctionDef)}
    return found


def test_every_method_of_a_socket_stands_in_a_table() -> None:
    asked = {name for name in socket_methods() if name.partition(".")[0] not in NO_ANSWERS}
    assert asked == set(ANSWERS) | {name for name in NO_ANSWERS if "." in name}


@pytest.mark.parametrize(
    ("call", "answer", "text"),
    [pytest.param(*case, id=f"{name}-{at}") for name, cases in ANSWERS.items() for at, case in enumerate(cases)],
)
def test_a_wrong_answer_is_one_error(call: Callable[[Any], Any], answer: Any, text: str) -> None:
    with pytest.raises(PolicyError, match=text) as caught:
        call(answer)
    assert caught.value.exit_code == 2 and "\n" not in str(caught.value)


def test_right_answers_of_other_types_are_taken() -> None:
    binding: Any = Binding
    rates = lambda one, two: [one.tolist(), two.astype(np.float32)]  # noqa: E731
    packed(Estimates(rates, lambda job, kind: np.int32(kind)))
    ordered(points(cpu=np.float32(1), memory_gb=1), np.float64(0.5))
    adaptive(lambda view: {job.id: Place(job.id % 3, (np.int64(0),)) for job in view.jobs}, 1)  # type: ignore[arg-type]
    stepped(lambda pods, now_s: SchedulerStep([binding(np.int64(pods.pop()), np.int8(0), now_s)] if pods else []))
