"""Optimus: further GPUs go to the job whose completion they bring nearest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from fastsim.errors import PolicyError
from fastsim.policies.registry import about, policy
from fastsim.policies.round_policy import RoundRule

if TYPE_CHECKING:
    from fastsim.engine.adaptive.plan import AdaptivePlan, AdaptiveSetting

OPTIMUS = """@inproceedings{peng2018optimus,
  title = {Optimus: An Efficient Dynamic Resource Scheduler for Deep Learning Clusters},
  author = {Peng, Yanghua and Bao, Yixin and Chen, Yangrui and Wu, Chuan and Guo, Chuanxiong},
  booktitle = {EuroSys},
  year = {2018}
}"""


@policy("optimus")
@dataclass(frozen=True)
class Optimus(RoundRule):
    """Give every job a GPU, and each further one to the job whose end it brings nearest; batch sizes stay as requested.

    gain[j, k] = (seconds left[j] with k GPUs - with more) / further GPUs; the largest goes first. A job of mode rigid
    gets its request, one of mode scale-gpus at most that. Where GPUs are short, the shortest time left goes first.
    Speeds and iterations left are known, where the publication estimates them.

    With `oracle=True` as in the Pollux paper's simulator, whose interval is 0: GPUs go out one by one, jobs whose size
    stays keep their nodes, and others take the emptiest nodes.
    """

    citation: ClassVar[str] = OPTIMUS
    engine: ClassVar[str] = "adaptive"

    interval_s: float = field(
        default=600.0, metadata=about("time between two choices of all sizes; jobs that arrive start small", unit="s")
    )

    oracle: bool = field(default=False, metadata=about("one GPU at a time, as in the simulator of the Pollux paper"))

    def __post_init__(self) -> None:
        super().__post_init__()
        value = self.interval_s
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise PolicyError(self.where("interval_s"), repr(value), "seconds of 0 or more")

    def begin(self, setting: AdaptiveSetting) -> AdaptivePlan:
        """Rounds in which jobs grow and shrink; batch sizes stay fixed."""
        from fastsim.engine.adaptive.plan import AdaptivePlan
        from fastsim.policies.deciders.optimus_decider import OptimusDecider
        from fastsim.policies.deciders.optimus_oracle import OracleOptimusDecider

        decider = OracleOptimusDecider if self.oracle else OptimusDecider
        return AdaptivePlan(decider(setting, self.interval_s), tuned=False)
