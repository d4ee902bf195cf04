"""An equal part of the cluster for everybody."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from fastsim.policies.registry import about, policy
from fastsim.policies.rounds.checked import Checked

if TYPE_CHECKING:
    from fastsim.round_plan import RoundPlan, Setting


@policy("isolated")
@dataclass(frozen=True)
class Isolated(Checked):
    """Give each of the m jobs the time that 1/m of the cluster would give it, as if it had that part to itself.

    share[j, g] = N[g] / m / s[j], divided by max(1, sum over g); N[g] = GPUs of a model, s[j] = GPUs of the job.
    """

    citation: ClassVar[str] = """@inproceedings{narayanan2020gavel,
  title = {Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads},
  author = {Narayanan, Deepak and Santhanam, Keshav and Kazhamiaka, Fiodar and Phanishayee, Amar and Zaharia, Matei},
  booktitle = {USENIX OSDI},
  year = {2020}
}"""

    per_gpu: bool = field(
        default=True,
        metadata=about("a job on s GPUs gets 1/s of the time; false: the part is of time, however many GPUs it takes"),
    )

    def begin(self, setting: Setting) -> RoundPlan:
        """Rounds of drawn order: the shares say nothing of which model is the better one."""
        from fastsim.policies.shares.equal import IsolatedShares
        from fastsim.round_plan import RoundPlan

        return RoundPlan(IsolatedShares(self.per_gpu), visit="shuffled")
