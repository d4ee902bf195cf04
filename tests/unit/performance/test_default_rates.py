"""The rates that ship with fastsim: one number by hand, and what any sensible model says."""

from __future__ import annotations

import numpy as np
import pytest

from fastsim.performance.gavel_rates import JOB_NAMES
from fastsim.performance.oracle import Oracle

ORACLE = Oracle.default()


def rate(workload: str, num_gpu: int, gpu_model: str) -> float:
    return float(ORACLE.alone__kg[ORACLE.kind_index[workload, num_gpu], ORACLE.gpu_models.index(gpu_model)])


def test_rates_by_hand() -> None:
    name = "ResNet-18 (batch size 64)"
    busy_s = 64 * 1.7 / (0.35 * 15_700)
    assert rate(name, 1, "v100") == pytest.approx(1 / (0.012 + busy_s))
    assert rate(name, 4, "v100") == pytest.approx(4 / (0.012 + busy_s + 2 * 3 / 4 * 45 / 20_000))
    one, two = (ORACLE.kind_index[n, 1] for n in (name, "A3C"))
    a3c_s = 20 / (0.35 * 15_700)
    load = busy_s / (0.012 + busy_s) + a3c_s / (0.140 + a3c_s)
    assert ORACLE.shared__kkg[one, two, 2] == pytest.approx(rate(name, 1, "v100") / (1.05 * max(1, load)))


def test_every_job_type_and_gang_has_rates() -> None:
    assert {name for name, _ in ORACLE.kinds} == set(JOB_NAMES) and len(ORACLE.kinds) == 26 + 3 * 19
    assert ORACLE.fastest_first == ("v100", "p100", "k80")
    assert not np.isnan(ORACLE.alone__kg).any()
    assert (ORACLE.alone__kg[:, 2] > 0).all()


def test_what_does_not_fit_cannot_run() -> None:
    big = ORACLE.kind_index["ResNet-50 (batch size 128)", 1]
    assert ORACLE.alone__kg[big].tolist()[0] == 0 and ORACLE.alone__kg[big, 1] > 0
    assert not ORACLE.shared__kkg[big, big].any()


def test_company_never_helps_one_but_often_both_together() -> None:
    singles = [index for index, (_, n) in enumerate(ORACLE.kinds) if n == 1]
    shared = ORACLE.shared__kkg[np.ix_(singles, singles)]
    alone = ORACLE.alone__kg[singles]
    assert (shared <= alone[:, None, :]).all()
    relative = np.divide(shared, alone[:, None, :], out=np.zeros_like(shared), where=alone[:, None, :] > 0)
    both = relative + relative.transpose(1, 0, 2)
    assert 0.05 < (both > 1.0).mean() < 1 and both.max() < 2


def test_only_gangs_of_one_size_share() -> None:
    sizes = np.array([n for _, n in ORACLE.kinds])
    other = sizes[:, None] != sizes[None, :]
    assert np.isnan(ORACLE.shared__kkg[other]).all() and not np.isnan(ORACLE.shared__kkg[~other]).any()
    assert ORACLE.table().num_rows == ORACLE.alone__kg.size + (~other).sum() * 3
