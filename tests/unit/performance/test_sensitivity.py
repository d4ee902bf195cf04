"""What jobs ask servers for: clipping, interpolation, jobs of several servers, own tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fastsim.cluster.server import Server
from fastsim.errors import InputError
from fastsim.performance.sensitivity import QUIRKS, Sensitivity, attached
from fastsim.performance.sensitivity_table import Grid, WorkloadProfile

SERVER = Server(8, 24, 500, 500, 40)
HUNGRY = WorkloadProfile("hungry", "image", 1, 0.5, 9, 125, 100, 3.0, None)


def test_the_shipped_models_stand_in_the_order_of_their_classes() -> None:
    default = Sensitivity.default()
    assert default.tasks == ("image", "language", "speech")
    assert default.workloads[:3] == ("alexnet", "res18", "res50") and default.workloads[-1] == "deepspeech"
    assert Sensitivity.default(6).profile("alexnet").cpu == 24
    assert all(p.grid is not None and p.grid.at(3, 62.5) == 1 for p in default.profiles)


def test_a_demand_within_a_server_is_the_profile_times_the_gpus() -> None:
    assert attached(HUNGRY, 2, SERVER) == (18, 250, 200, 3)


def test_the_scarcest_resource_says_what_a_cut_demand_still_gains() -> None:
    # 4 GPUs want 36 CPUs of which 12 are theirs, 500 GB and 400 MB/s: half of the further CPUs are there.
    assert attached(HUNGRY, 4, SERVER) == (24, 500, 400, 2)
    # A whole server is no more than the share of 8 GPUs.
    assert attached(HUNGRY, 8, SERVER).speedup == 1
    thirsty = HUNGRY._replace(cpu=3, memory_gb=187.5)
    assert attached(thirsty, 4, SERVER).speedup == 2  # 500 of 750 GB, 250 of which are its share
    with pytest.raises(InputError, match="just the fair share"):
        attached(thirsty, 4, SERVER, QUIRKS)


def test_a_job_of_several_servers_gets_its_share_of_what_one_cannot_give() -> None:
    assert attached(HUNGRY, 16, SERVER) == (48, 1000, 1000, 1)
    assert attached(HUNGRY._replace(cpu=1, memory_gb=20), 16, SERVER) == (16, 320, 1000, 1)


def test_storage_counts_only_where_servers_tell_theirs() -> None:
    assert attached(HUNGRY, 2, Server(8, 24, 500)).storage_mb_s == 0
    assert attached(HUNGRY, 2, SERVER, ["storage_demand_fixed"]).storage_mb_s == 125


def test_columns_stand_in_the_order_of_the_kinds() -> None:
    found = Sensitivity.default().demands([("m5", 1), ("gnmt", 2)], SERVER)
    assert found.cpu__k.tolist() == [6, 2] and found.memory_gb__k.tolist() == [187.5, 40]
    fair, met = found.iterations(300.0)
    assert fair.tolist() == [500, 2500] and met.tolist() == [1250, 2500]


def test_no_whole_iteration_fits_where_a_point_stands_still() -> None:
    grid = Grid(np.array([1.0, 2]), np.array([1.0]), np.array([[0.0], [1.0]]))
    own = Sensitivity((HUNGRY._replace(grid=grid), HUNGRY._replace(workload="flat")))
    steps, none = own.demands([("hungry", 1), ("flat", 1)], SERVER).grid_iterations(300.0)
    assert steps is not None and steps.tolist() == [[0], [600]] and none is None


def test_unknown_workloads_and_sizes_are_refused() -> None:
    with pytest.raises(InputError, match=r"found 'res51', expected one of alexnet.*did you mean 'res50'"):
        Sensitivity.default().demands([("res51", 1)], SERVER)
    with pytest.raises(InputError, match=r"num_gpu: found 0"):
        attached(HUNGRY, 0, SERVER)


def test_own_profiles_replace_and_extend_and_survive_a_file(tmp_path: Path) -> None:
    own = Sensitivity((HUNGRY, HUNGRY._replace(workload="m5")))
    both = Sensitivity.default().extended(own)
    assert both.workloads == (*Sensitivity.default().workloads, "hungry")
    assert both.profile("m5").iteration_s == 0.5
    assert both.write(tmp_path / "s.parquet") == 11 + 9 * 45  # 11 demands, and the grids that are left
    again = Sensitivity.from_file(tmp_path / "s.parquet")
    assert again.demands([("hungry", 4)], SERVER).speedup__k.tolist() == [2]
    assert both.write(tmp_path / "s.csv", 3) == 11 + 9 * 45
    assert Sensitivity.from_file(tmp_path / "s.csv", 3).table() == again.table()
    assert Sensitivity.from_table(own.table()).workloads == ("hungry", "m5")


def test_rates_for_other_policies_are_those_of_the_fair_share() -> None:
    oracle = Sensitivity.default().oracle(("v100",), (1, 2))
    assert oracle.kind_index[("m5", 2)] and not oracle.shared__kkg.any()
    assert oracle.alone__kg[oracle.kind_index[("m5", 2)], 0] == 1 / 0.6
