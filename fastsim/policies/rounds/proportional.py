"""Time on each GPU model in proportion to how many there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fastsim.policies.registry import policy
from fastsim.policies.rounds.checked import Checked

if TYPE_CHECKING:
    from fastsim.round_plan import RoundPlan, Setting


@policy("proportional")
@dataclass(frozen=True)
class Proportional(Checked):
    """Let every job spend its whole time on the models in the proportion in which the cluster has them.

    share[j, g] = N[g] / sum of N; N[g] = GPUs of a model. More is promised than there is if jobs outnumber GPUs.
    """

    citation: ClassVar[str] = """@inproceedings{narayanan2020gavel,
  title = {Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads},
  author = {Narayanan, Deepak and Santhanam, Keshav and Kazhamiaka, Fiodar and Phanishayee, Amar and Zaharia, Matei},
  booktitle = {USENIX OSDI},
  year = {2020}
}"""

    def begin(self, setting: Setting) -> RoundPlan:
        """Rounds of drawn order: the shares say nothing of which model is the better one."""
        from fastsim.policies.shares.equal import ProportionalShares
        from fastsim.round_plan import RoundPlan

        return RoundPlan(ProportionalShares(), visit="shuffled")
