"""Estimates of the rates of pairs that share GPUs, from a few measurements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from fastsim.errors import PolicyError
from fastsim.policies.registry import about
from fastsim.policies.round_policy import RoundRule

if TYPE_CHECKING:
    from fastsim.engine.rounds.options import Setting
    from fastsim.policies.allocators.pair_rate_estimates import Estimates


@dataclass(frozen=True)
class Estimator(RoundRule):
    """Measure a job with some of the reference jobs, complete its profile, and match it with the most alike reference.

    profile[i, g, k] = rate of i with k / rate of i alone, on model g. Missing entries come from matrix factorisation;
    alike = smallest cosine distance of profiles. estimated rate of a with b = profile[ref(a), g, ref(b)] * rate of a
    alone; the true rate once the pair has run on the model. Not a policy: any policy for pairs may use it.
    """

    policy_name: ClassVar[str] = "estimator"
    profiled: float = field(default=1.0, metadata=about("part of the measurements that are made, drawn for each job"))
    references: int = field(default=0, metadata=about("number of reference workloads, drawn from all; 0 = all of them"))
    workloads: tuple[str, ...] = field(
        default=(),
        metadata=about("workloads in the order in which draws count them; none = those of the rates, in their order"),
    )
    estimator_column_bug: bool = field(
        default=False,
        metadata=about("as the original: measured with the wrong workloads, unless all are references"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.profiled, bool) or not isinstance(self.profiled, int | float) or not 0 <= self.profiled <= 1:
            raise PolicyError(self.where("profiled"), repr(self.profiled), "a number from 0 to 1")
        if isinstance(self.references, bool) or not isinstance(self.references, int) or self.references < 0:
            raise PolicyError(self.where("references"), repr(self.references), "an integer of 0 or more")

    def begin(self, setting: Setting) -> Estimates:
        """The estimates of a run in this setting, before the first arrival."""
        from fastsim.policies.allocators.pair_rate_estimates import Estimates

        where, known = self.where("workloads"), {name for name, num_gpu in setting.oracle.kinds if num_gpu == 1}
        for name in self.workloads:
            if name not in known:
                raise PolicyError(where, repr(name), "workloads with rates on 1 GPU")
        names = self.workloads or tuple(dict.fromkeys(name for name, num_gpu in setting.oracle.kinds if num_gpu == 1))
        if self.references > len(names):
            raise PolicyError(self.where("references"), self.references, f"at most {len(names)}, as many as workloads")
        references = self.references or len(names)
        return Estimates(setting, names, references, float(self.profiled), self.estimator_column_bug)
