"""Orders of jobs, for rounds in which GPUs are given out one job after the other: each is a sort key.

What a job gets beside its GPUs is the mechanism: ``las + tune`` is ``las(mechanism=tune)``; ``+ place`` keeps
gangs together.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self

from fastsim.errors import PolicyError
from fastsim.policies.registry import about, policy
from fastsim.policies.round_policy import RoundRule
from fastsim.scenario.sort_keys import MOST_TERMS, ORDERS, key_fault, key_of

if TYPE_CHECKING:
    from fastsim.engine.orders.plan import OrderPlan
    from fastsim.engine.rounds.options import Setting

SYNERGY = """@inproceedings{mohan2022synergy,
  title = {Looking Beyond {GPU}s for {DNN} Scheduling on Multi-Tenant Clusters},
  author = {Mohan, Jayashree and Phanishayee, Amar and Kulkarni, Janardhan and Chidambaram, Vijay},
  booktitle = {OSDI},
  year = {2022}
}"""
TIRESIAS = """@inproceedings{gu2019tiresias,
  title = {Tiresias: A {GPU} Cluster Manager for Distributed Deep Learning},
  author = {Gu, Juncheng and Chowdhury, Mosharaf and Shin, Kang G. and Zhu, Yibo and Jeon, Myeongjae and Qian, Junjie
    and Liu, Hongqiang and Guo, Chuanxiong},
  booktitle = {NSDI},
  year = {2019}
}"""
GANDIVA = """@inproceedings{xiao2018gandiva,
  title = {Gandiva: Introspective Cluster Scheduling for Deep Learning},
  author = {Xiao, Wencong and Bhardwaj, Romil and Ramjee, Ramachandran and Sivathanu, Muthian and Kwatra, Nipun
    and Han, Zhenhua and Patel, Pratyush and Peng, Xuan and Zhao, Hanyu and Zhang, Quanlu
    and Yang, Fan and Zhou, Lidong},
  booktitle = {OSDI},
  year = {2018}
}"""
GRANDL = """@inproceedings{grandl2014tetris,
  title = {Multi-resource Packing for Cluster Schedulers},
  author = {Grandl, Robert and Ananthanarayanan, Ganesh and Kandula, Srikanth and Rao, Sriram and Akella, Aditya},
  booktitle = {SIGCOMM},
  year = {2014}
}"""
GHODSI = """@inproceedings{ghodsi2011drf,
  title = {Dominant Resource Fairness: Fair Allocation of Multiple Resource Types},
  author = {Ghodsi, Ali and Zaharia, Matei and Hindman, Benjamin and Konwinski, Andy and Shenker, Scott
    and Stoica, Ion},
  booktitle = {NSDI},
  year = {2011}
}"""
THEMIS = """@inproceedings{mahajan2020themis,
  title = {Themis: Fair and Efficient {GPU} Cluster Scheduling},
  author = {Mahajan, Kshiteej and Balasubramanian, Arjun and Singhvi, Arjun and Venkataraman, Shivaram
    and Akella, Aditya and Phanishayee, Amar and Chawla, Shuchi},
  booktitle = {NSDI},
  year = {2020}
}"""
LIU = """@article{liu1973scheduling,
  title = {Scheduling Algorithms for Multiprogramming in a Hard-Real-Time Environment},
  author = {Liu, C. L. and Layland, James W.},
  journal = {Journal of the ACM},
  volume = {20},
  number = {1},
  year = {1973}
}"""
MECHANISMS = ("fair", "greedy", "tune", "opt")
"""Mechanisms by name: how CPUs and memory are divided."""


@dataclass(frozen=True)
class Order(RoundRule):
    """Jobs in an order; every round gives out all GPUs anew."""

    citation: ClassVar[str] = SYNERGY
    engine: ClassVar[str] = "orders"
    key: ClassVar[tuple[str, ...]] = ()
    """Terms of the sort key, see ``fastsim.scenario.sort_keys``; -starving comes before them."""

    mechanism: str = field(
        default="fair",
        metadata=about(
            "CPUs and memory: GPUs' part of the server; demand or nothing; fitted; largest sum of speedups",
            choices=MECHANISMS,
        ),
    )
    place: bool = field(default=False, metadata=about("a gang on one server if it fits, single GPUs on full servers"))
    skewed: str = field(
        default="", metadata=about("place is for these workloads, joined by |, and all others spread; empty: for all")
    )
    starving_h: float = field(
        default=1000.0, metadata=about("a job that has waited longer goes before all others", unit="h")
    )

    sticky: bool = field(
        default=False, metadata=about("a job that is served again keeps its GPUs; others get theirs after that")
    )
    blocking: bool = field(
        default=False,
        metadata=about("the first job that gets no GPUs makes all behind it wait, but for those that keep theirs"),
    )
    admit: float = field(
        default=math.inf,
        metadata=about("new jobs are admitted while admitted ones request at most so many times the GPUs"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, expected in (("starving_h", "hours above 0"), ("admit", "a number above 0")):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise PolicyError(self.where(name), repr(value), expected)
        if not isinstance(self.skewed, str):
            raise PolicyError(self.where("skewed"), repr(self.skewed), "names of workloads, such as 'alexnet|vgg16'")

    def filled(self, word: str) -> Self:
        """The same order with a mechanism, or with ``place``."""
        if word == "place":
            return dataclasses.replace(self, place=True)
        if self.mechanism not in ("fair", word):
            raise PolicyError(f"policy {self}", f"a second mechanism, {word}", "one of them")
        return dataclasses.replace(self, mechanism=word)

    def begin(self, setting: Setting) -> OrderPlan:
        """The plan of a run."""
        from fastsim.engine.orders.plan import OrderPlan

        chooser = None
        if self.mechanism == "opt":
            from fastsim.policies.programs.opt_allocation import PointChooser

            chooser = PointChooser()
        return OrderPlan(
            order=self.terms,
            mechanism=self.mechanism,
            place=self.place,
            level_s=self.level_s,
            starving_s=3600 * self.starving_h,
            narrow=self.narrow,
            sticky=self.sticky,
            blocking=self.blocking,
            admit=self.admit,
            chooser=chooser,
            skewed=tuple(filter(None, map(str.strip, self.skewed.split("|")))),
        )

    @property
    def terms(self) -> tuple[str, ...]:
        """The whole sort key."""
        return ("-starving", *self.key)

    @property
    def level_s(self) -> tuple[float, ...]:
        """GPU seconds at which a job goes to the next level."""
        return ()

    @property
    def narrow(self) -> bool:
        """Whether only jobs are served that would run if they needed GPUs alone."""
        return False


@policy("fcfs")
@dataclass(frozen=True)
class FirstComeFirstServed(Order):
    """Serve jobs in order of arrival; one whose GPUs are not free lets later ones pass. Also written ``fifo + fair``.

    key[j] = arrival[j]
    """

    @property
    def terms(self) -> tuple[str, ...]:
        """Arrival alone; the limit of ``starving_h`` does not apply."""
        return ORDERS["fcfs"]


@policy("srtf")
@dataclass(frozen=True)
class ShortestRemainingTime(Order):
    """Serve the job first that takes the shortest time from here.

    key[j] = (remaining[j], arrival[j]); remaining = steps left x seconds of a step with what the job needs.
    """

    key: ClassVar[tuple[str, ...]] = ORDERS["srtf"]


@policy("srsf")
@dataclass(frozen=True)
class ShortestRemainingService(Order):
    """Serve the job first that takes the fewest GPU seconds from here.

    key[j] = (remaining[j] x gpus[j], arrival[j])
    """

    citation: ClassVar[str] = TIRESIAS
    key: ClassVar[tuple[str, ...]] = ORDERS["srsf"]


@policy("las")
@dataclass(frozen=True)
class LeastAttainedService(Order):
    """Serve the job first that has had the fewest GPU seconds.

    key[j] = (seconds run[j] x gpus[j], arrival[j])
    """

    citation: ClassVar[str] = TIRESIAS
    per_gpu: bool = field(default=True, metadata=about("GPU seconds; false: seconds, however many GPUs"))
    las_serves_few: bool = field(
        default=False,
        metadata=about("only jobs that would run if they needed GPUs alone are served; tune: the largest gangs first"),
    )

    @property
    def terms(self) -> tuple[str, ...]:
        """By GPU seconds, or by seconds."""
        return ("-starving", *(ORDERS["las"] if self.per_gpu else ("attained", "arrival")))

    @property
    def narrow(self) -> bool:
        """The parameter ``las_serves_few``."""
        return self.las_serves_few


MOST_QUEUES = 10_000
"""Most queues of one order."""
MOST_LOG_H = 700.0
"""Logarithm of the latest end of a queue, GPU hours; its seconds are still a number."""


@policy("tiresias")
@dataclass(frozen=True)
class Tiresias(Order):
    """Serve jobs by queues: the more GPU seconds a job has had, the later its queue; first come, first served in each.

    key[j] = (queue[j], arrival[j]); queue q ends at first_h x factor^q GPU hours, the last one never.
    """

    citation: ClassVar[str] = TIRESIAS
    key: ClassVar[tuple[str, ...]] = ORDERS["tiresias"]
    queues: int = field(default=2, metadata=about("how many queues there are"))
    first_h: float = field(default=1.0, metadata=about("end of the first one", unit="GPU hours"))
    factor: float = field(default=10.0, metadata=about("end of a queue over that of the one before"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.queues, bool) or not isinstance(self.queues, int) or not 1 <= self.queues <= MOST_QUEUES:
            raise PolicyError(self.where("queues"), repr(self.queues), f"a whole number from 1 to {MOST_QUEUES:,}")
        for name, low in (("first_h", 0.0), ("factor", 1.0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > low:
                raise PolicyError(self.where(name), repr(value), f"a number above {low:g}")
        if math.log(self.first_h) + (self.queues - 1) * math.log(self.factor) > MOST_LOG_H:
            found = f"{self.queues} queues, each {self.factor:g} times as long"
            raise PolicyError(self.where("queues"), found, "fewer, the last of which ends at some time")

    @property
    def level_s(self) -> tuple[float, ...]:
        """Ends of all queues but the last one."""
        return tuple(3600.0 * self.first_h * self.factor**q for q in range(self.queues - 1))


@policy("round_robin")
@dataclass(frozen=True)
class RoundRobin(Order):
    """Serve the job first that has not run for the longest time: GPUs change hands every round.

    key[j] = (end of the last round of[j], arrival[j])
    """

    citation: ClassVar[str] = GANDIVA
    key: ClassVar[tuple[str, ...]] = ORDERS["round_robin"]


@policy("ftf")
@dataclass(frozen=True)
class FinishTimeRatio(Order):
    """Serve the job first that is furthest behind a run without any wait.

    key[j] = (-(now - arrival[j] + remaining[j]) / seconds alone[j], arrival[j])
    """

    citation: ClassVar[str] = THEMIS
    ftf_smallest_first: bool = field(default=False, metadata=about("the job that is least behind comes first"))

    @property
    def terms(self) -> tuple[str, ...]:
        """The largest ratio first, unless the switch is on."""
        return ("-starving", *(("finish_ratio", "arrival") if self.ftf_smallest_first else ORDERS["ftf"]))


@policy("edf")
@dataclass(frozen=True)
class EarliestDeadline(Order):
    """Serve the job first whose deadline is the earliest; jobs without one come last.

    key[j] = (deadline[j], arrival[j]); deadline = deadline_s, or without it arrival + slo x seconds alone.
    """

    citation: ClassVar[str] = LIU
    key: ClassVar[tuple[str, ...]] = ORDERS["edf"]


MOST_OWN = MOST_TERMS - 1
"""Most terms of a key of the user's, because -starving comes before them."""


@policy("order")
@dataclass(frozen=True)
class OwnOrder(Order):
    """Serve jobs by a key of your own: columns of the workload, and terms of published orders.

    key[j] = (first term[j], second term[j], ...); the least comes first, after a minus sign the largest; jobs without a
    value in a column come last, ties go by arrival. All terms: python -m pydoc fastsim.scenario.sort_keys
    """

    citation: ClassVar[str] = ""
    key: str = field(  # type: ignore[assignment, misc]
        default="arrival", metadata=about("up to 3 terms joined by commas, such as -column(value), remaining")
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if fault := key_fault(key_of(str(self.key), MOST_OWN), most=MOST_OWN):
            raise PolicyError(self.where("key"), *fault)

    @property
    def terms(self) -> tuple[str, ...]:
        """The whole sort key."""
        return ("-starving", *key_of(self.key, MOST_OWN))


@policy("drf")
@dataclass(frozen=True)
class DominantShare(Order):
    """Serve the job first whose largest part of the cluster is the smallest.

    key[j] = (max over GPUs, CPUs, memory of need[j] / cluster, arrival[j])
    """

    citation: ClassVar[str] = GHODSI
    key: ClassVar[tuple[str, ...]] = ORDERS["drf"]


@policy("tetris")
@dataclass(frozen=True)
class Tetris(Order):
    """Serve the job first that is small and short.

    key[j] = (sum over GPUs, CPUs, memory of need[j] / cluster x remaining[j], arrival[j])
    """

    citation: ClassVar[str] = GRANDL
    key: ClassVar[tuple[str, ...]] = ORDERS["tetris"]
