"""The socket: its words stand in the order the compiled floors count in, and plans are values."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fastsim.engine.online import plan
from fastsim.engine.online.plan import OnlinePlan, PodRequest, ScoreTerm
from tests.needs import in_checkout

ENUMS = {"Kernel": "KERNELS", "Normaliser": "NORMALISERS", "GpuPick": "GPU_PICKS", "DotDim": "DIMS", "DotNorm": "NORMS",
         "Queue": "RULES"}  # fmt: skip
SPOKEN = {"norm_none": "none", "dot": "dot_product"}
HERE = Path(__file__).resolve().parents[4] / "fastsim_ext"


@pytest.mark.parametrize(("enum", "words"), ENUMS.items())
def test_words_stand_in_the_order_the_kernels_count_in(enum: str, words: str) -> None:
    text = "".join(in_checkout(HERE / name).read_text(encoding="utf-8") for name in ("types.pxd", "online/loop.pxd"))
    found = re.search(rf"cdef enum:  # {enum}: order of fastsim.engine.online.plan.{words}\n\s+(.+)\n", text)
    assert found
    spoken = [re.sub("^(pick|by)_", "", name.lower()) for name in found[1].split(", ")]
    assert tuple(SPOKEN.get(name, name) for name in spoken) == getattr(plan, words)


def test_a_bare_term_and_plan_are_the_published_defaults() -> None:
    term = ScoreTerm("fgd")
    assert (term.weight, term.normalise, term.dim, term.norm, term.scorer) == (1, "none", "merge", "max", None)
    cluster_of_t4 = OnlinePlan((term,))
    assert (cluster_of_t4.gpu_pick, cluster_of_t4.gpu_dim, cluster_of_t4.gpu_norm, cluster_of_t4.queue) == (
        "best",
        "merge",
        "max",
        "drop",
    )


def test_plans_and_requests_are_values() -> None:
    assert OnlinePlan((ScoreTerm("fgd"),)) == OnlinePlan((ScoreTerm("fgd"),)) != OnlinePlan((ScoreTerm("fgd", 2),))
    assert len({PodRequest(1, 2, 1, 500, ("A",)), PodRequest(1, 2, 1, 500, ("A",)), PodRequest(1, 2, 1, 500, ())}) == 2
    with pytest.raises(AttributeError):
        ScoreTerm("fgd").weight = 2  # type: ignore[misc]
